"""MIOpen, AMD's library of convolutions and layers: kernels in HIP, OpenCL and assembly, known by identifier.

``igemm_fwd_gtcx2_nhwc_bf16_…_bt128x128x32_…`` is a convolution as an implicit GEMM: pass, matrix cores (``x``), layout,
type and block tile. Sources: ``src/kernels`` and ``src/solver`` of MIOpen.
"""

from __future__ import annotations

import re

from warpline.kernels.catalogue import Catalogue, CatalogueEntry
from warpline.kernels.draft import Draft
from warpline.kernels.normalise import NormalName
from warpline.kernels.types import dtype_of

_IGEMM = re.compile(r"igemm_(fwd|bwd|wrw)_gtc(x\d*)?_(c?n\w{2,5}?)(?:_(bf16|fp16|fp32|int8))?(?:_|$)")
_BLOCK_TILE = re.compile(r"_bt(\d{1,4}x\d{1,4}x\d{1,4})(?=_|$)")
_LOSS = re.compile(r"[A-Z]\w{0,60}?Loss\w{0,30}?(?:Forward|Backward)")
_PASSES = {"fwd": ("conv_fprop", "fwd"), "bwd": ("conv_dgrad", "bwd"), "wrw": ("conv_wgrad", "bwd")}
_STORED = {"fp16", "bf16", "fp32", "fp64", "int8"}
_TABLE = Catalogue("miopen")


def decode(name: NormalName) -> Draft | None:
    """Kernels of MIOpen."""
    base = name.base
    if base.startswith("igemm_"):
        return _igemm(name)
    entry = _TABLE.find(base)
    if entry is None and _LOSS.match(base):
        entry = CatalogueEntry("elementwise", "loss")
    if entry is None:
        return None
    draft = Draft("miopen", "miopen")
    draft.token(base, entry.op.replace("_", " "))
    draft.kind(entry.kernel_class, entry.op, f"{base} of MIOpen", tensor_core=entry.tensor_core)
    if base.startswith("naive_conv"):
        which = next((word for word in base.split("_") if word in _PASSES), None)
        if which:
            draft.set("op", _PASSES[which][0], which)
            draft.set("direction", _PASSES[which][1], which)
    elif entry.direction:
        draft.set("direction", entry.direction, base)
    stored = next((word for word in base.lower().split("_") if word in _STORED), None)
    if stored:
        draft.types(f"{stored} in the name", a=dtype_of(stored))
    return draft


def _igemm(name: NormalName) -> Draft:
    draft = Draft("miopen", "miopen")
    found, tile = _IGEMM.match(name.base), _BLOCK_TILE.search(name.base)
    draft.token("igemm", "convolution as an implicit GEMM")
    if found is None:
        return draft.kind("conv", "conv", "igemm: implicit GEMM convolution")
    which, matrix, layout, kind = found.groups()
    op, direction = _PASSES[which]
    draft.kind("conv", op, f"igemm_{which}", tensor_core=bool(matrix))
    draft.reasons["tensor_core"] = "gtcx: tensor contraction on XDLOPS matrix cores" if matrix else "gtc: vector units"
    draft.set("direction", direction, which)
    draft.token(which, op.replace("_", " "))
    draft.set("layout", layout, layout)
    draft.token(layout, "order of the tensors' dimensions")
    if kind is not None:
        element = dtype_of(kind)
        draft.types(f"{kind} in the name", a=element, b=element)
        draft.token(kind, f"element type {element}")
    if tile is not None:
        draft.set("tile", tile.group(1), tile.group())
        draft.token(tile.group()[1:], "tile of a work group, M x N x K")
    return draft
