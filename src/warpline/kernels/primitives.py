"""Device-wide primitives: CUB, Thrust and rocPRIM. The value type is often hidden (``OpaqueType<8>``)."""

from __future__ import annotations

import re

from warpline.kernels.catalogue import Catalogue, CatalogueEntry
from warpline.kernels.draft import Draft
from warpline.kernels.functors import class_of, op_name
from warpline.kernels.grammar import head, inside
from warpline.kernels.normalise import NormalName, split_arguments

_TABLE = Catalogue("primitives")
_CONFIGS = (
    ("scan", "sort_scan"),
    ("partition", "sort_scan"),
    ("radix_sort", "sort_scan"),
    ("merge_sort", "sort_scan"),
    ("sort", "sort_scan"),
    ("select", "sort_scan"),
    ("reduce_by_key", "reduction"),
    ("reduce", "reduction"),
    ("transform", "elementwise"),
)
_AGENTS = (("Reduce", "reduction"), ("Scan", "sort_scan"), ("Sort", "sort_scan"), ("Partition", "sort_scan"))
_WORDS = {
    **dict.fromkeys(
        ("scan", "sort", "merge", "radix", "partition", "select", "unique", "bucket", "splitters"), "sort_scan"
    ),
    **dict.fromkeys(("reduce", "histogram"), "reduction"),
    **dict.fromkeys(("memcpy", "copy", "fill"), "memory"),
    **dict.fromkeys(("find", "search"), "other"),
    **dict.fromkeys(("transform", "difference", "reverse"), "elementwise"),
}
"""Words of rocPRIM's own identifiers that name the primitive."""
_CONFIG = re.compile(r"\b(?:wrapped_)?(\w+?)_config\w*")


def decode(name: NormalName) -> Draft | None:
    """``cub::``, ``thrust::`` and ``rocprim::`` kernels, and CUB's bare identifiers."""
    rocm = "rocprim" in name.scope or "hipcub" in name.scope
    cub = "cub::" in name.scope
    thrust = "thrust::" in name.scope
    if not (rocm or cub or thrust or name.base.startswith("Device")):
        return None
    library = "rocprim" if rocm else "thrust" if thrust and not cub else "cub"
    if name.base == "trampoline_kernel":
        return _trampoline(name, library)
    entry = _TABLE.find(name.base)
    if entry is None and rocm:
        word = next((one for one in name.base.split("_") if one in _WORDS), None)
        entry = CatalogueEntry(_WORDS[word], word) if word is not None else None
    if entry is None or (not (rocm or cub or thrust) and not name.base.endswith("Kernel")):
        return _agent(name, library) if cub or thrust or rocm else None
    draft = Draft("device primitive", library)
    draft.token(name.base, f"{library}: {entry.op.replace('_', ' ')}")
    return draft.kind(entry.kernel_class, entry.op, f"{name.base} of {library}")


def _trampoline(name: NormalName, library: str) -> Draft:
    draft = Draft("device primitive", library)
    for found in _CONFIG.finditer(name.arguments[:2000]):
        word = found.group(1)
        for mark, kernel_class in _CONFIGS:
            if mark in word:
                draft.token(found.group(), f"the primitive: {mark}")
                return draft.kind(kernel_class, mark, f"{found.group()} selects the primitive")
    return draft.abstain("rocPRIM's trampoline without a readable configuration")


def _agent(name: NormalName, library: str) -> Draft:
    draft = Draft("device primitive", library)
    draft.token(name.base, f"generic entry of {library}")
    parts = split_arguments(name.arguments)
    agent = head(parts[0]) if parts else ""
    for mark, kernel_class in _AGENTS:
        if mark in agent:
            return draft.kind(kernel_class, mark.lower(), f"agent {agent}")
    functor = _functor(name.arguments)
    if "ParallelFor" in agent or "for_each" in name.scope or "transform" in name.scope or name.base == "static_kernel":
        if functor in ("fill_functor", "uninitialized_fill_functor", "functor") or "fill" in name.arguments[:400]:
            return draft.kind("memory", "fill", f"a fill inside {library}'s parallel for")
        op = op_name(functor) if functor else "parallel_for"
        return draft.kind(class_of(op, functor or ""), op, f"{library}'s parallel for over {functor or 'a functor'}")
    if name.base == "EmptyKernel":
        return draft.kind("other", "probe", "an empty kernel that CUB launches to learn the device")
    return draft.abstain(f"{name.base} of {library}: the primitive is not in the name")


def _functor(text: str) -> str | None:
    argument = inside(text, "ParallelForAgent<") or text
    return head(split_arguments(argument)[0]) if argument else None
