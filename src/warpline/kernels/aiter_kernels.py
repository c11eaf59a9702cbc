"""AITER, AMD's library of kernels for inference, in assembly, HIP and Triton.

Names of assembly print types and tiles: ``fmoe_bf16_pertokenFp8_g1u1_vs_silu_1tg_32x256``,
``bf16gemm_fp32bf16_tn_128x64_splitk``, ``PA_A16W8_BLK256_…``. So do those that FlyDSL compiles:
``hgemm_bf16_16x64x128x5_SPK8_…_TN_…`` and ``mfma_moe1_silu_mul_afp8_wfp4_fp8_t64x256x256_…``. The others are known by
identifier. Sources: the tables of the folder ``hsa``, ``csrc``, ``aiter/ops/triton`` and ``aiter/ops/flydsl`` in the
repository of AITER.
"""

from __future__ import annotations

import re

from warpline.kernels.catalogue import Catalogue
from warpline.kernels.draft import Draft
from warpline.kernels.normalise import NormalName
from warpline.kernels.types import dtype_of

_MOE = re.compile(r"fmoe_(stage1_)?(?:(bf16|fp16)_)?(\w+)")
_GEMM = re.compile(r"(bf16|fp16|f4|f8|fp8|i8|I8|mxfp8fp4)gemm_(\w+)")
_PAGED = re.compile(r"(?:PA|pa)_(?:A16W(8|16)_)?(\w+)")
_FLY_GEMM = re.compile(r"hgemm_(bf16|fp16)_(\d{1,4}x\d{1,4}x\d{1,4})(?=[x_])(\w*)")
_FLY_MOE = re.compile(
    r"mfma_moe([12])_(\w{0,40}?)_?a(\w{2,5}?)_w(\w{2,5}?)_(\w{3,4}?)_(?:\w{1,20}_)?t(\d{1,4}x\d{1,4}x\d{1,4})(?=_|$)"
)
_OWN_ATTENTION = re.compile(r"kn_(?!get_)\w{0,60}?(?:mla|mha|fmha|pa)_")
_TILE = re.compile(r"(?:^|_)(\d{1,4}x\d{1,4})(?=_|$)")
_OPERANDS = {
    "bf16": "bf16",
    "fp16": "f16",
    "f4": "e2m1",
    "fp4": "e2m1",
    "f8": "e4m3",
    "fp8": "e4m3",
    "i8": "s8",
    "int8": "s8",
    "mxfp8fp4": "e4m3",
}
_QUANTISED = (("fp8", "e4m3"), ("int8", "s8"), ("fp4", "e2m1"), ("bf16", "bf16"))
"""Operands after quantisation, as ``pertokenFp8``, ``blockscaleFp8`` and ``pertokenMXfp4`` print them."""

_TABLE = Catalogue("aiter_kernels")


def decode(name: NormalName) -> Draft | None:
    """Kernels of AITER that no other family knows."""
    base = name.base
    is_own = name.scope.startswith("aiter::")
    if (found := _MOE.match(base)) is not None:
        return _moe(base, found)
    if (found := _GEMM.match(base)) is not None and (is_own or _TILE.search(base)):
        return _gemm(base, found)
    if (found := _FLY_GEMM.match(base)) is not None:
        return _fly_gemm(base, found)
    if (found := _FLY_MOE.match(base)) is not None:
        return _fly_moe(base, found)
    if is_own and (found := _PAGED.match(base)) is not None and base.startswith("PA_"):
        draft = Draft("aiter", "aiter")
        draft.token("PA", "paged attention of decoding")
        draft.kind("attention", "paged_attention", base, tensor_core=True)
        draft.set("direction", "fwd", "AITER runs inference here")
        return draft
    if is_own and _OWN_ATTENTION.match(base):
        draft = Draft("aiter", "aiter")
        draft.token(base, "attention")
        return draft.kind("attention", "attention", f"{base} of AITER", tensor_core=True)
    entry = _TABLE.find(base)
    if entry is None:
        return None
    draft = Draft("aiter", "aiter" if is_own else None)
    draft.token(base, entry.op.replace("_", " "))
    draft.kind(entry.kernel_class, entry.op, f"{base} of AITER", tensor_core=entry.tensor_core)
    if entry.direction:
        draft.set("direction", entry.direction, base)
    if entry.either:
        draft.leave_units_open()
    return draft


def _moe(base: str, found: re.Match[str]) -> Draft:
    stage, out, rest = found.groups()
    draft = Draft("aiter", "aiter")
    draft.token("fmoe", "fused mixture of experts: the GEMMs of all experts in one kernel")
    draft.kind("moe", "moe_gemm" if stage else "fused_moe", base, tensor_core=True)
    output = dtype_of(out or "")
    quantised = next((kind for word, kind in _QUANTISED if f"{word}_" in f"{rest.lower()}_"), None)
    operands = output if "noquant" in rest else quantised
    draft.types("types in the name", a=operands, b=operands, out=output)
    if (act := re.search(r"(silu|gelu|swiglu)", rest)) is not None:
        draft.set("fused_ops", (act.group(1),), act.group(1))
    _tile(draft, rest)
    return draft


def _gemm(base: str, found: re.Match[str]) -> Draft:
    operands, rest = found.groups()
    draft = Draft("aiter", "aiter")
    draft.token(f"{operands}gemm", "GEMM in assembly")
    draft.kind("gemm", "gemm", base, tensor_core=True)
    kind = _OPERANDS[operands.lower()]
    second = "e2m1" if "fp8fp4" in f"{operands}{rest}" else kind
    draft.types("types in the name", a=kind, b=second, out=dtype_of(rest.split("_", 1)[0]))
    if (layout := re.search(r"(?:^|_)([nt]{2})(?=_|$)", rest)) is not None:
        draft.set("layout", layout.group(1), layout.group(1))
    if "splitk" in rest:
        draft.set("split_k", True, "splitk")
    _tile(draft, rest)
    return draft


def _fly_gemm(base: str, found: re.Match[str]) -> Draft:
    kind, tile, rest = found.groups()
    draft = Draft("aiter", "aiter")
    draft.token(f"hgemm_{kind}", "GEMM of 16-bit floats, compiled by FlyDSL")
    draft.kind("gemm", "gemm", base, tensor_core=True)
    draft.types("type in the name", a=_OPERANDS[kind], b=_OPERANDS[kind], out=_OPERANDS[kind])
    draft.set("tile", tile, tile)
    draft.token(tile, "tile of a work group, M x N x K")
    if (layout := re.search(r"([TN]{2})(?=_|$)", rest)) is not None:
        draft.set("layout", layout.group(1).lower(), layout.group(1))
    if (split := re.search(r"_SPK(\d{1,3})(?=_|$)", rest)) is not None and int(split.group(1)) > 1:
        draft.set("split_k", True, f"SPK{split.group(1)}")
    return draft


def _fly_moe(base: str, found: re.Match[str]) -> Draft:
    stage, act, first, second, out, tile = found.groups()
    draft = Draft("aiter", "aiter")
    draft.token(f"mfma_moe{stage}", "GEMM over the experts: " + ("gate and up" if stage == "1" else "down"))
    draft.kind("moe", "moe_gemm", base, tensor_core=True)
    draft.types(
        "types in the name: activations, weights, output",
        a=_OPERANDS.get(first),
        b=_OPERANDS.get(second),
        out=_OPERANDS.get(out),
    )
    if act:
        draft.set("fused_ops", (act.split("_")[0],), act)
    draft.set("tile", tile, f"t{tile}")
    draft.token(f"t{tile}", "tile of a work group, M x N x K")
    return draft


def _tile(draft: Draft, rest: str) -> None:
    tile = _TILE.search(rest)
    if tile is not None:
        draft.set("tile", tile.group(1), tile.group(1))
        draft.token(tile.group(1), "tile of a work group, M x N")
