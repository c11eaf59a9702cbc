"""Which fix was made between two runs, read off the structure of their steps.

Each recogniser names what only its fix changes: graph launches that appear, Triton kernels, tensor-core types, pinned
memory. What several fixes could have changed is not named, and neither is a mixture of more than two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from warpline.compare.structure import Structure
from warpline.kernels import identify
from warpline.kernels.identity import MATRIX_CLASSES

SOME = 0.5
"""Per step: fewer calls than this are not part of a step, such as the one wait at the end of a recording."""
FEW = 0.25
"""Part of a number that may be left for most of it to be gone."""
LARGE_BYTES = 65_536
"""Copies of fewer bytes are single values, which a wait was for."""
MOST_FIXES = 2
COPY_KERNEL, CONCATENATION = "direct_copy_kernel", "CatArrayBatchedCopy"
"""Parts of the names of ATen's kernels."""
WIDE = ("f32", "tf32", "f64")
NARROW = ("bf16", "f16")


def applied_fixes(a: Structure, b: Structure) -> tuple[str, ...]:
    """The fixes that were made, or none if that cannot be told."""
    found = [name for name, is_made in RECOGNISERS.items() if is_made(a, b)]
    for name, others in IMPLIES.items():
        if name in found:
            found = [other for other in found if other not in others]
    return tuple(found) if len(found) <= MOST_FIXES else ()


def _cuda_graph(a: Structure, b: Structure) -> bool:
    return a.calls["graph_launches"] < SOME <= b.calls["graph_launches"]


def _torch_compile(a: Structure, b: Structure) -> bool:
    return _fused(b) > _fused(a)


def _fused(one: Structure) -> int:
    return sum(times for name, times in one.kernels.items() if identify(name).fused_ops)


def _sdpa(a: Structure, b: Structure) -> bool:
    return not a.count("attention") and b.count("attention") > 0 and b.count("softmax") < a.count("softmax")


def _tf32(a: Structure, b: Structure) -> bool:
    before, after = a.matrix_types, b.matrix_types
    wide = before["f32"] + before["f64"]
    return before["tf32"] < after["tf32"] and after["f32"] + after["f64"] < wide and not _bf16(a, b)


def _bf16(a: Structure, b: Structure) -> bool:
    before, after = a.matrix_types, b.matrix_types
    rises = sum(before[kind] for kind in NARROW) < sum(after[kind] for kind in NARROW)
    return rises and sum(after[kind] for kind in WIDE) < sum(before[kind] for kind in WIDE)


def _fused_optimizer(a: Structure, b: Structure) -> bool:
    return b.count("optimizer") > a.count("optimizer") and b.total < a.total


def _channels_last(a: Structure, b: Structure) -> bool:
    same = a.count("conv") == b.count("conv") > 0 and a.matrix_types == b.matrix_types
    return same and _is_gone(a.count("layout"), b.count("layout"))


def _pad(a: Structure, b: Structure) -> bool:
    """Matrix kernels for unaligned operands gave way to others of the same type, and nothing else changed."""
    gone, new = a.kernels - b.kernels, b.kernels - a.kernels
    if not gone or gone.total() != new.total() or a.matrix_types != b.matrix_types:
        return False
    return all(identify(name).kernel_class == "gemm" for name in (*gone, *new)) and _unaligned(gone) > _unaligned(new)


def _unaligned(kernels: Counter[str]) -> int:
    return sum(times for name, times in kernels.items() if "align1" in name or "align2" in name)


def _drop_copies(a: Structure, b: Structure) -> bool:
    """All copies within the device are gone, and nothing else changed. Where some are left, a small one may have taken
    the place of a large one, which is another fix."""
    gone, new = a.kernels - b.kernels, b.kernels - a.kernels
    if new or any(COPY_KERNEL in name for name in b.kernels) or not all(COPY_KERNEL in name for name in gone):
        return False
    moved_a, moved_b = (one.copied("DtoD")[0] for one in (a, b))
    return gone.total() > 0 or _is_gone(moved_a, moved_b)


def _preallocate(a: Structure, b: Structure) -> bool:
    """Concatenations are gone, and nothing else changed."""
    gone, new = a.kernels - b.kernels, b.kernels - a.kernels
    return not new and gone.total() > 0 and all(CONCATENATION in name for name in gone)


def _batch(a: Structure, b: Structure) -> bool:
    """A few large kernels do what many small ones of the same classes did."""
    fewer = b.total <= FEW * a.total and a.calls["launches"] >= 1
    classes_a, classes_b = ({identify(name).kernel_class for name in one.kernels} for one in (a, b))
    host = ("waits", "allocations", "frees")
    same_calls = all(abs(a.calls[kind] - b.calls[kind]) < SOME for kind in host)
    same_types = set(a.matrix_types) == set(b.matrix_types)
    known = bool(classes_a & classes_b - {"unknown", "other"})
    return fewer and same_calls and same_types and known and not b.count("optimizer", "attention") and not _fused(b)


def _remove_sync(a: Structure, b: Structure) -> bool:
    same = all(a.count(kind) == b.count(kind) for kind in MATRIX_CLASSES)
    return same and _is_gone(a.calls["waits"], b.calls["waits"])


def _pin_memory(a: Structure, b: Structure) -> bool:
    return any(
        _is_gone(a.copied(way, "Pageable")[1], b.copied(way, "Pageable")[1])
        and a.copied(way, "Pageable")[1] >= LARGE_BYTES
        and _is_about(a.copied(way)[1], b.copied(way)[1])
        and _is_about(a.copied(way)[0], b.copied(way)[0])
        for way in ("HtoD", "DtoH")
    )


def _coalesce_copies(a: Structure, b: Structure) -> bool:
    return any(
        _is_gone(a.copied(way)[0], b.copied(way)[0])
        and b.copied(way)[0] >= SOME
        and _is_about(a.copied(way)[1], b.copied(way)[1])
        for way in ("HtoD", "DtoH")
    )


def _reduce_before_copy(a: Structure, b: Structure) -> bool:
    (count_a, bytes_a), (count_b, bytes_b) = a.copied("DtoH"), b.copied("DtoH")
    return bytes_a >= LARGE_BYTES * count_a > 0 and bytes_b <= FEW * bytes_a and count_b >= SOME


def _prefetch(a: Structure, b: Structure) -> bool:
    """The same kernels and copies; what hides now is the loading, or the copies."""
    if a.kernels != b.kernels or set(a.copies) != set(b.copies) or _cuda_graph(a, b):
        return False
    least = 0.1 * a.step_ns
    loading = a.idle_ns["input"] >= least and b.idle_ns["input"] <= FEW * a.idle_ns["input"]
    return loading or (a.copy_ns >= least and b.copy_ns <= FEW * a.copy_ns)


def _no_empty_cache(a: Structure, b: Structure) -> bool:
    return _is_gone(a.calls["frees"], b.calls["frees"]) and a.kernels == b.kernels


def _warm_up(a: Structure, b: Structure) -> bool:
    started = a.idle_ns["cold_start"] >= 0.5 * a.step_ns and b.idle_ns["cold_start"] <= FEW * a.idle_ns["cold_start"]
    return a.kernels == b.kernels and (a.cold_steps > b.cold_steps == 0 or started)


def _streams(a: Structure, b: Structure) -> bool:
    return b.streams > a.streams and a.kernels == b.kernels and not _cuda_graph(a, b)


def _is_gone(before: float, after: float) -> bool:
    return before >= SOME and after <= FEW * before


def _is_about(before: float, after: float) -> bool:
    return before > 0 and abs(after - before) <= FEW * before


RECOGNISERS: dict[str, Callable[[Structure, Structure], bool]] = {
    "cuda_graph": _cuda_graph,
    "torch_compile": _torch_compile,
    "sdpa": _sdpa,
    "bf16": _bf16,
    "tf32": _tf32,
    "fused_optimizer": _fused_optimizer,
    "channels_last": _channels_last,
    "pad": _pad,
    "drop_copies": _drop_copies,
    "preallocate": _preallocate,
    "batch": _batch,
    "pin_memory": _pin_memory,
    "coalesce_copies": _coalesce_copies,
    "reduce_before_copy": _reduce_before_copy,
    "remove_sync": _remove_sync,
    "no_empty_cache": _no_empty_cache,
    "prefetch": _prefetch,
    "warm_up": _warm_up,
    "streams": _streams,
}
"""Each fix by its name in `warpline whatif`."""
_COPIES = ("remove_sync", "prefetch")
_KERNELS = ("batch", "drop_copies", "preallocate", "pad")
IMPLIES: dict[str, tuple[str, ...]] = {
    "cuda_graph": ("remove_sync", "streams"),
    "torch_compile": (*_KERNELS, "fused_optimizer"),
    "sdpa": (*_KERNELS, "tf32", "bf16"),
    "fused_optimizer": _KERNELS,
    "bf16": ("channels_last", *_KERNELS),
    "tf32": ("channels_last", *_KERNELS),
    "pin_memory": _COPIES,
    "coalesce_copies": (*_COPIES, "pin_memory", *_KERNELS),
    "reduce_before_copy": (*_COPIES, "pin_memory"),
    "no_empty_cache": ("remove_sync",),
    "warm_up": ("prefetch",),
}
"""What a fix changes along with its own mark: a captured graph has no waits, a pinned copy does not wait."""
