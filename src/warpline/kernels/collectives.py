"""Communication: NCCL and RCCL, the custom collectives of vLLM, SGLang, TensorRT-LLM and PyTorch, DeepEP.

Of an NCCL name only the collective and, for reductions, the data type are reliable: every operation is shown as Sum,
every protocol as LL and every algorithm except TREE as RING.
"""

from __future__ import annotations

import re

from warpline.kernels.draft import Draft
from warpline.kernels.lexicon import COLLECTIVES
from warpline.kernels.normalise import NormalName, split_arguments
from warpline.kernels.types import dtype_of

_NCCL = re.compile(r"(?:nccl|rccl)(Symk)?(?:Dev)?Kernel_?(\w*)")
_COLLECTIVES = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "SendRecv": "send_recv",
    "AllToAll": "all_to_all",
    "AllToAllPivot": "all_to_all",
    "AlltoAll": "all_to_all",
    "Generic": "generic",
}
_REDUCING = {"all_reduce", "reduce_scatter", "reduce"}
_FLOATS = {"f16", "bf16", "f32", "f64", "e4m3", "e5m2"}
_BASES = (
    ("cross_device_reduce", "all_reduce"),
    ("oneShotAllReduce", "all_reduce"),
    ("twoShotAllReduce", "all_reduce"),
    ("one_shot_all_reduce", "all_reduce"),
    ("two_shot_all_reduce", "all_reduce"),
    ("multimem_", "all_reduce"),
    ("allreduce_fusion", "all_reduce"),
    ("all_reduce", "all_reduce"),
    ("allreduce", "all_reduce"),
    ("AllReduce", "all_reduce"),
    ("moe_allreduce", "all_reduce"),
    ("lamport", "all_reduce"),
    ("userbuffers_", "userbuffers"),
    ("reduce_scatter", "reduce_scatter"),
    ("reducescatter", "reduce_scatter"),
    ("all_gather", "all_gather"),
    ("allgather", "all_gather"),
    ("all_to_all", "all_to_all"),
    ("alltoall", "all_to_all"),
    ("moea2a", "all_to_all"),
    ("nvshmem", "nvshmem"),
    ("quickreduce", "all_reduce"),
    ("allreduce_prototype", "all_reduce"),
    ("pushpull", "userbuffers"),
)
_LOWERED_BASES = tuple((mark.lower(), op) for mark, op in _BASES)
_ANY_BASE = re.compile("|".join(mark for mark, _ in _LOWERED_BASES))
_EXPERT_SCOPES = ("deep_ep::", "dpsk::ep::", "uccl::", "pplx::", "mscclpp::")


_SCOPES = ("nccl", "rccl", "mscc", "deepep", "dpsk", "uccl", "pplx", "c10d", "symmetricmemory")
_MARKS = sorted({mark.replace("_", "") for mark in (*dict(_LOWERED_BASES), *COLLECTIVES)} | {*_SCOPES})
MAY_COMMUNICATE = "(?i)" + "|".join("_*".join(mark) for mark in _MARKS)
"""Pattern of the names of which decoding can show a kernel that communicates, with underscores anywhere; a name that
does not match is not decoded just for that."""


def decode(name: NormalName) -> Draft | None:
    """Kernels that move data between devices."""
    base = name.base
    if base.startswith(("nccl", "rccl")) and "kernel" in base.lower():
        return _nccl(name)
    if base.startswith("msccl"):
        return _msccl(name)
    if name.scope.startswith(_EXPERT_SCOPES) or "deep_ep::" in name.scope:
        library = "deepep" if "ep::" in name.scope else name.scope.split("::")[0]
        draft = Draft("collective", library)
        draft.token(name.scope + base, "expert-parallel communication")
        return draft.kind("comm", base, f"{base} of the expert-parallel library {library}")
    lowered = base.lower()
    torch = "c10d::" in name.scope or "symmetric_memory" in name.scope
    for mark, op in _LOWERED_BASES if _ANY_BASE.search(lowered) else ():
        if mark in lowered and "precompute" not in lowered:
            return _named(name, op, "aten" if torch else _library(name))
    return _named(name, base, "aten") if torch else None


def _library(name: NormalName) -> str | None:
    for mark, library in (
        ("vllm", "vllm"),
        ("sglang", "sglang"),
        ("tensorrt_llm", "tensorrt-llm"),
        ("flashinfer", "flashinfer"),
        ("at::", "aten"),
        ("nvshmem", "nvshmem"),
        ("userbuffers", "transformer-engine"),
    ):
        if mark in name.text:
            return library
    return None


def _named(name: NormalName, op: str, library: str | None) -> Draft:
    draft = Draft("collective", library)
    draft.token(name.base, f"custom collective: {op.replace('_', ' ')}")
    draft.kind("comm", op, f"{name.base} communicates between devices")
    parts = split_arguments(name.arguments)
    kind = next((kind for part in parts if (kind := dtype_of(part)) in _FLOATS), None)
    if kind is not None and op in _REDUCING:
        draft.types("element type argument", a=kind)
    return draft


def _nccl(name: NormalName) -> Draft:
    found = _NCCL.fullmatch(name.base)
    draft = Draft("nccl", "rccl" if "rccl" in name.base else "nccl")
    if found is None:
        return draft.kind("comm", None, "an NCCL kernel")
    symmetric, rest = found.groups()
    words = rest.split("_")
    op = _COLLECTIVES.get(words[0])
    draft.token(name.base.split("_")[0], "NCCL" + (" on symmetric memory" if symmetric else ""))
    draft.kind("comm", op, f"NCCL's {words[0] or 'kernel'}")
    if op == "generic":
        draft.token(words[0], "the collective is not in the name")
        return draft
    if op is not None:
        draft.token(words[0], op.replace("_", " "))
    if op in _REDUCING:
        kind = next((kind for word in words[1:] if (kind := dtype_of(word)) in _FLOATS), None)
        tail = dtype_of("_".join(words[-2:])) if len(words) > 2 else None
        draft.types("element type of the reduction", a=kind or (tail if tail in _FLOATS else None))
    if not symmetric and len(words) > 1:
        draft.token("_".join(words[1:]), "operation, algorithm and protocol as printed; only the type is reliable")
    return draft


def _msccl(name: NormalName) -> Draft:
    draft = Draft("nccl", "msccl")
    draft.token(name.base, "a collective of MSCCL")
    draft.kind("comm", "msccl", "MSCCL runs collectives")
    kind = next((kind for word in name.base.split("_") if (kind := dtype_of(word)) in _FLOATS), None)
    draft.types("element type", a=kind)
    return draft
