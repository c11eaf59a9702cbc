"""What the program wrote where the CPU waits: `.item()`, `.tolist()`, `print`, by frames around the wait or its op."""

from __future__ import annotations

import re
from functools import lru_cache

from warpline.analyses.user_frames import UserFrames
from warpline.trace.arrays import NONE, Int64s
from warpline.trace.trace import Trace

AS_WRITTEN = {
    "aten::item": ".item()",
    "aten::_local_scalar_dense": ".item()",
    "aten::is_nonzero": "`if` on a tensor",
    "aten::index": "boolean mask",
    "aten::index_put_": "boolean mask",
    "aten::masked_select": "masked_select",
    "aten::nonzero": "nonzero",
    "aten::_unique2": "unique",
    "aten::unique_dim": "unique",
    "aten::unique_consecutive": "unique",
    "aten::repeat_interleave": "repeat_interleave",
    "aten::equal": "torch.equal",
    "aten::bincount": "bincount",
    "aten::one_hot": "one_hot",
    "aten::to": ".to() or .cpu()",
    "aten::copy_": "copy_",
    "cudaDeviceSynchronize": "torch.cuda.synchronize()",
    "hipDeviceSynchronize": "torch.cuda.synchronize()",
    "cudaStreamSynchronize": "stream.synchronize()",
    "hipStreamSynchronize": "stream.synchronize()",
    "cudaEventSynchronize": "event.synchronize()",
    "hipEventSynchronize": "event.synchronize()",
}
"""The code that a program contains, by the outermost op (or the call) that waits."""
STREAM_WAITS = ("cudaStreamSynchronize", "hipStreamSynchronize")

ANY_READ = "cudaStreamSynchronize, by .item(), .cpu() or similar"
"""Every read of a result waits in this call: where no ops were recorded, nobody knows which read it was."""

_BY_FRAME = (
    (
        re.compile(r"_tensor_str\.py\(|_tensor\.py\(\d+\): (__repr__|__format__)|<built-in function print>"),
        "print or str()",
    ),
    (re.compile(r"torch/serialization\.py\(\d+\): save"), "torch.save()"),
    (re.compile(r"<built-in method tolist of "), ".tolist()"),
    (re.compile(r"<built-in method numpy of |_tensor\.py\(\d+\): __array__"), ".numpy()"),
    (re.compile(r"<built-in method cpu of "), ".cpu()"),
    (re.compile(r"<built-in method item of "), ".item()"),
    (re.compile(r"<built-in method (?:nonzero|argwhere)\b"), "nonzero"),
    (re.compile(r"<built-in method _?unique\w* |torch/functional\.py\(\d+\): \w*unique"), "unique"),
    (re.compile(r"<built-in method (?:equal|allclose)\b"), "torch.equal"),
    (re.compile(r"_tensor\.py\(\d+\): __contains__"), "`in` on a tensor"),
    (
        re.compile(r"torch/cuda/\w+\.py\(\d+\): synchronize|<built-in function _cuda_synchronize>"),
        "torch.cuda.synchronize()",
    ),
)
"""Frames of Python between the user's code and the wait, the widest first: print reads values with item."""
_NUMPY = re.compile(r"<built-in method numpy of ")
MAX_FRAMES = 60
"""Frames that are climbed from a wait towards the user's code."""


def as_written(has_ops: bool) -> dict[str, str]:
    """The code that a program contains, by op or call; without recorded ops, no read is told from another."""
    return AS_WRITTEN if has_ops else {**AS_WRITTEN, **dict.fromkeys(STREAM_WAITS, ANY_READ)}


def wait_expressions(trace: Trace, calls: Int64s, ops: Int64s) -> list[str | None]:
    """What the program wrote at each of these calls, whose outermost ops are `ops`; None where neither frames nor the
    op tell."""
    frames, has_ops = trace.once(UserFrames), len(trace.ops) > 0
    by_call = {name: text for name, text in AS_WRITTEN.items() if has_ops or name not in STREAM_WAITS}
    pairs = zip(trace.ops.name.at(ops).texts, trace.api.name[calls].texts, strict=True)
    found = [AS_WRITTEN.get(op) if op else by_call.get(call) for op, call in pairs]
    if frames.exist:
        where = trace.api.thread[calls], trace.api.start_ns[calls]
        for row, (inner, outer) in enumerate(zip(frames.innermost(*where), frames.at(*where), strict=True)):
            found[row] = _by_frames(frames, int(inner), int(outer)) or found[row]
    return found


def _by_frames(frames: UserFrames, inner: int, outer: int) -> str | None:
    between: list[int] = []
    row = inner
    while row not in {NONE, outer} and len(between) < MAX_FRAMES:
        between.append(row)
        row = frames.caller(row)
    widest = min(between, key=lambda frame: _width(frames.name(frame)), default=NONE)
    if widest == NONE or _width(frames.name(widest)) == len(_BY_FRAME):
        return None
    text = _BY_FRAME[_width(frames.name(widest))][1]
    return ".cpu().numpy()" if text == ".cpu()" and _then_numpy(frames, widest) else text


@lru_cache(maxsize=10_000)
def _width(name: str) -> int:
    """Place of the first pattern that a frame's name matches; their number if none does."""
    return next((place for place, (pattern, _) in enumerate(_BY_FRAME) if pattern.search(name)), len(_BY_FRAME))


def _then_numpy(frames: UserFrames, frame: int) -> bool:
    """Whether the same function calls `.numpy()` next; frames are in order of time."""
    starts, end = frames.python.start_ns, frames.python.end_ns[frame]
    rows = range(frame + 1, min(frame + MAX_FRAMES, len(starts)))
    follower = next((row for row in rows if starts[row] >= end), None)
    if follower is None or frames.caller(follower) != frames.caller(frame):
        return False
    return bool(_NUMPY.search(frames.name(follower)))
