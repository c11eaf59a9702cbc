"""Copies and fills by the runtime: ``Memcpy HtoD (Pinned -> Device)``, ``[CUDA memset]``, ROCm's."""

from __future__ import annotations

import re

from warpline.kernels.draft import Draft
from warpline.kernels.normalise import NormalName

_KINETO = re.compile(r"(Memcpy|Memset) ?([\w-]*) ?(?:\(([\w ]+?)(?: -> ([\w ]+))?\))?", re.IGNORECASE)
_ROCM = {
    "CopyDeviceToDevice": "memcpy DtoD",
    "CopyHostToDevice": "memcpy HtoD",
    "CopyDeviceToHost": "memcpy DtoH",
    "FillBuffer": "memset",
}
_NODE = re.compile(r"mem(?:cpy|set)\d+(?:_\w+)?|mem(?:cpy|set)_kernel\w*")
_LONG_WAYS = {"Host-to-Device": "HtoD", "Device-to-Host": "DtoH", "Device-to-Device": "DtoD", "Peer-to-Peer": "PtoP"}
_DIRECTIONS = {
    "HtoD": "host to device",
    "DtoH": "device to host",
    "DtoD": "device to device",
    "PtoP": "peer to peer",
    "HtoH": "host to host",
}


def decode(name: NormalName) -> Draft | None:
    """Runtime copies and fills, and the kernels that replace them inside CUDA graphs."""
    text = name.text
    if text in _ROCM or text.startswith("__amd_rocclr_"):
        draft = Draft("memory operation", "rocm")
        op = _ROCM.get(text) or ("memset" if "fill" in text.lower() else "memcpy")
        draft.token(text, "a copy or fill of the ROCm runtime")
        return draft.kind("memory", op, f"{text} is the ROCm runtime's own {op}")
    if _NODE.fullmatch(text):
        draft = Draft("memory operation", "cuda")
        op = text[:6]
        draft.token(text, f"a {op} node of a CUDA graph, run as a kernel")
        return draft.kind("memory", op, f"{text} is how a CUDA graph runs a {op} node on the SMs")
    lowered = text[:14].lower()
    if not lowered.startswith(("memcpy", "memset", "[cuda mem", "cuda mem")):
        return None
    found = _KINETO.search(text)
    if found is None:
        return None
    verb, way, source, target = found.groups()
    way = _LONG_WAYS.get(way, way)
    draft = Draft("memory operation", "cuda")
    op = f"{verb.lower()} {way}".strip()
    draft.kind("memory", op, "the profiler's name of a runtime copy or fill")
    draft.token(verb, "done by the runtime, not by a kernel of the program")
    if way:
        draft.token(way, _DIRECTIONS.get(way, way.replace("-", " ").lower()))
    if source and target:
        draft.token(f"{source} -> {target}", _memory_kinds(source, target))
    return draft


def _memory_kinds(source: str, target: str) -> str:
    if "Pageable" in (source, target):
        return "pageable host memory: staged through a pinned buffer, and not asynchronous"
    if "Pinned" in (source, target):
        return "pinned host memory: copied by DMA at full speed"
    return "source and target memory"
