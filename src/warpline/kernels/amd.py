"""AMD's libraries: Tensile (rocBLAS, hipBLASLt), Composable Kernel, MIOpen.

``MI16x16x1`` is the shape of the MFMA matrix instruction; a Tensile kernel without it uses vector units.
"""

from __future__ import annotations

import re

from warpline.kernels.catalogue import Catalogue
from warpline.kernels.draft import Draft
from warpline.kernels.grammar import head, tokens_of
from warpline.kernels.normalise import NormalName
from warpline.kernels.types import dtype_of

_LETTERS = {"B": "bf16", "H": "f16", "S": "f32", "D": "f64", "I": "s32", "X": "tf32", "C": "cf32", "Z": "cf64"}
_TENSILE = re.compile(r"(?:Custom_)?Cijk_A(ilk|lik)_B(ljk|jlk)_(\w+)")
_TYPES = re.compile(r"([BHSD])_?([BHSD])([SHD])|([SDCZ])")
_ISA = re.compile(r"ISA(\d{2,3}[0-9a-f]?)")
_IGEMM = re.compile(
    r"igemm_(fwd|bwd|wrw)_gtc(x\d*)?_(n\w{1,40}?)_(bf16|fp16|fp32|int8)_.{0,400}?bt(\d++x\d++x\d++)\w*+"
)
_TILE = re.compile(r"MT\d+x\d+x\d+")
_MATRIX = re.compile(r"MI\d+x\d+x\d+(?:x\d+)?")
_PASSES = {"fwd": ("conv_fprop", "fwd"), "bwd": ("conv_dgrad", "bwd"), "wrw": ("conv_wgrad", "bwd")}
_STORED = {"fp16", "bf16", "fp32", "fp64", "int8"}
_TABLE = Catalogue("""
norm batch_norm fwd: MIOpenBatchNormFwd*
norm batch_norm bwd: MIOpenBatchNormBwd*
layout im2col: Im2d2Col* Im3d2Col* Col2Im2d* Col2Im3d*
layout transpose: batched_transpose_* transpose_NCHW2CNHW* transpose_CNHW2NCHW* general_2d_transpose_*
elementwise tensor_op: SubTensorOpWithScalar* SubTensorOpWithCastTensor* OpTensor* Op1dTensor* Op2dTensor* Op4dTensor*
pooling pooling: mloPooling* MIOpenPooling*
softmax softmax: MIOpenSoftmax*
elementwise activation: MIOpenActive* MIOpenNeuron*
conv conv cores: naive_conv_* gcnAsmConv* MIOpenConv* miopenSp3AsmConv* miopenGcnAsmConv* sp3AsmConv*
conv conv tensor: mlopen_conv_xdlops*
""")


def decode(name: NormalName) -> Draft | None:
    """Tensile, MIOpen and Composable Kernel names."""
    base = name.base
    if base.startswith(("Cijk_", "Custom_Cijk_")):
        return _tensile(name)
    if base.startswith("igemm_"):
        return _igemm(name)
    if name.scope.startswith(("ck::", "ck_tile::")):
        return _composable(name)
    entry = _TABLE.find(base)
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


def _tensile(name: NormalName) -> Draft:
    base = name.base
    draft = Draft("tensile", "tensile")
    draft.token("Cijk", "C[i,j] summed over l for every batch k: a GEMM of Tensile (rocBLAS, hipBLASLt)")
    if "PostGSU" in base:
        draft.token("PostGSU", "adds the partial results of a global split-U (split-K) GEMM")
        return draft.kind("reduction", "split_k_reduce", "PostGSU adds the partial sums of a split-K GEMM")
    found = _TENSILE.fullmatch(base)
    draft.kind("gemm", "gemm", "Cijk: Tensile's GEMM")
    if found is None:
        return draft
    first, second, rest = found.groups()
    layout = ("n" if first == "ilk" else "t") + ("n" if second == "ljk" else "t")
    draft.set("layout", layout, f"A{first}_B{second}")
    draft.token(f"A{first}_B{second}", "A and B " + layout + " in BLAS terms (ilk and ljk are not transposed)")
    _tensile_types(draft, rest)
    tokens = tokens_of(rest, name.truncated)
    for token in tokens:
        if _TILE.fullmatch(token):
            draft.set("tile", token[2:], token)
            draft.token(token, "macro tile of a work group, M x N x K")
        elif _MATRIX.fullmatch(token):
            draft.set("tensor_core", True, f"{token}: MFMA matrix instruction")
            draft.token(token, "MFMA matrix instruction")
        elif (isa := _ISA.fullmatch(token)) is not None and isa.group(1) not in ("000",):
            draft.set("arch", f"gfx{isa.group(1)}", token)
            draft.token(token, "instruction set of the device")
    if "tensor_core" not in draft.values and not name.truncated and any(token.startswith("MT") for token in tokens):
        draft.set("tensor_core", False, "no MI token: vector units")
    return draft


def _tensile_types(draft: Draft, rest: str) -> None:
    prefix = re.split(r"_(?:BH|B|H)?_?(?:Bias|MT|HA|UserArgs|SAV|AS)", f"_{rest}", maxsplit=1)[0].strip("_")
    letters = prefix.removesuffix("_BH").removesuffix("_B").removesuffix("_H")
    if letters in ("SB", "DB", "CB", "ZB"):
        letters = letters[0]
    found = _TYPES.fullmatch(letters)
    if found is None:
        return
    if found.group(4):
        kind = _LETTERS[found.group(4)]
        draft.types(f"{prefix}: one letter for every operand", a=kind, b=kind, out=kind, acc=kind)
    else:
        operand, out, compute = (_LETTERS[found.group(at)] for at in (1, 2, 3))
        draft.types(f"{prefix}: operands, output, computation", a=operand, b=operand, out=out, acc=compute)
    draft.token(prefix, "types of the operands, the output and the computation")


def _igemm(name: NormalName) -> Draft:
    draft = Draft("miopen", "miopen")
    found = _IGEMM.fullmatch(name.base)
    draft.token("igemm", "convolution as an implicit GEMM")
    if found is None:
        return draft.kind("conv", "conv", "igemm: implicit GEMM convolution")
    which, matrix, layout, kind, tile = found.groups()
    op, direction = _PASSES[which]
    draft.kind("conv", op, f"igemm_{which}", tensor_core=bool(matrix))
    draft.reasons["tensor_core"] = "gtcx: tensor contraction on XDLOPS matrix cores" if matrix else "gtc: vector units"
    draft.set("direction", direction, which)
    draft.token(which, op.replace("_", " "))
    draft.set("layout", layout, layout)
    draft.token(layout, "order of the tensors' dimensions")
    element = dtype_of(kind)
    draft.types(f"{kind} in the name", a=element, b=element)
    draft.token(kind, f"element type {element}")
    draft.set("tile", tile, f"bt{tile}")
    draft.token(f"bt{tile}", "tile of a work group, M x N x K")
    return draft


def _composable(name: NormalName) -> Draft | None:
    text = name.text
    draft = Draft("composable kernel", "ck")
    inner = head(name.arguments)
    what = name.base if name.base != "kentry" else text[:600]
    draft.token(name.base, "Composable Kernel")
    matrix = "xdl" in text[:400].lower() or "wmma" in text[:400].lower() or "mfma" in text[:400].lower()
    if "Rmsnorm" in what or "Layernorm" in what or "normalization" in text[:300]:
        return draft.kind("norm", "norm", f"{inner or what}: a norm")
    if "MoeSorting" in what:
        return draft.kind("moe", "moe_sorting", "MoeSorting", tensor_core=False)
    if "moe" in what.lower()[:200]:
        return draft.kind("moe", "moe_gemm", what[:60], tensor_core=True if "gemm" in what.lower() else None)
    if "conv" in name.base or "bwd_weight" in name.base or "bwd_data" in name.base:
        draft.kind("conv", "conv", f"{name.base}: convolution", tensor_core=True if matrix else None)
        op = "fwd" if "_fwd" in name.base else "bwd" if "_bwd" in name.base else None
        draft.set("direction", op, name.base)
        return draft
    if "gemm" in name.base.lower() or "Gemm" in what:
        return draft.kind("gemm", "gemm", f"{name.base}: GEMM", tensor_core=True if matrix else None)
    if "elementwise" in what.lower() or "permute" in what.lower():
        return draft.kind("elementwise", "elementwise", what[:60])
    if "reduce" in what.lower():
        return draft.kind("reduction", "reduction", what[:60])
    if "softmax" in what.lower():
        return draft.kind("softmax", "softmax", what[:60])
    return draft.abstain("a Composable Kernel entry of an unknown operation")
