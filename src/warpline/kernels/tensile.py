"""Tensile, the generator of GEMMs for rocBLAS and hipBLASLt.

A name is the problem, the macro tile (``MT``), the matrix instruction (``MI``) and an abbreviation with a value for
each parameter: ``Cijk_Ailk_Bljk_HHS_BH_Bias_HA_S_SAV_UserArgs_MT128x128x64_MI16x16x1_SN_…_GSU4_…_ISA942_…``. Sources:
``Tensile/SolutionStructs.py`` and ``DataType.py`` of Tensile; ``SolutionStructs/Problem.py``, ``Naming.py`` and the
``KernelWriter…`` modules of hipBLASLt's tensilelite.
"""

from __future__ import annotations

import re

from warpline.kernels.draft import Draft
from warpline.kernels.grammar import tokens_of
from warpline.kernels.normalise import NormalName

_PROBLEM = re.compile(r"(?:Custom_)?Cijk_A([ijkl]{3,4})C?_B([ijkl]{3,4})C?_(\w+)", re.IGNORECASE)
_LETTERS = {
    "4xi8": "s8",
    "F8N": "e4m3",
    "B8N": "e5m2",
    "F8": "e4m3",
    "B8": "e5m2",
    "I8": "s8",
    "I64": "s64",
    "S": "f32",
    "D": "f64",
    "C": "cf32",
    "Z": "cf64",
    "H": "f16",
    "I": "s32",
    "B": "bf16",
    "X": "tf32",
}
_LETTER = re.compile("|".join(sorted(_LETTERS, key=len, reverse=True)))
_TYPES = re.compile(f"(?:{_LETTER.pattern}){{1,4}}")
_OPTIONS = re.compile(r"B?H?R?Z?(?:Ic?)?")
"""Beta, accumulation in a wider type, an alternative rounding, initial strides."""
_TILE = re.compile(r"MT(\d+x\d+x\d+)")
_MATRIX = re.compile(r"MI\d+x\d+x\d+(?:x\d+)?")
_THREAD_TILE = re.compile(r"TT\d+")
"""Printed where there is no matrix instruction."""
_ISA = re.compile(r"ISA(\d{2,4}[0-9a-f]?)")
_SPLIT = re.compile(r"GSU(\d+)")
_STREAM = re.compile(r"SK([1-9]\d*)")
_GFX = re.compile(r"gfx[0-9a-f]{3,4}")
_MEANINGS = {
    "Bias": "adds a bias",
    "GG": "grouped GEMM",
    "GB": "general batches: an array of pointers",
    "SAB": "scales A and B",
    "SABV": "scales A and B by vectors",
    "SCD": "scales C and D",
    "SAV": "scales by a vector alpha",
    "AmaxD": "writes the largest magnitude of D",
    "STA": "A is swizzled in memory",
    "STB": "B is swizzled in memory",
    "SPA": "A has 2:4 sparsity",
    "SPB": "B has 2:4 sparsity",
    "UserArgs": "arguments lie in the memory of the device",
}


def decode(name: NormalName) -> Draft | None:
    """GEMMs of Tensile, and the small kernels before and after them."""
    base = name.base
    if re.match(r"Dijk?_\w+_Reduction$", base):
        draft = Draft("tensile", "tensile")
        draft.token("Reduction", "sums the gradient of a bias")
        return draft.kind("reduction", "bias_gradient", "Reduction: the sums of a bias gradient")
    if not base.startswith(("Cijk_", "Custom_Cijk_", "Cij_")):
        return None
    draft = Draft("tensile", "tensile")
    draft.token("Cijk", "C[i,j] summed over l for every batch k: a GEMM of Tensile (rocBLAS, hipBLASLt)")
    if "PostGSU" in base:
        draft.token("PostGSU", "adds the partial results of a global split-U (split-K) GEMM")
        return draft.kind("reduction", "split_k_reduce", "PostGSU adds the partial sums of a split-K GEMM")
    if (found := _PROBLEM.fullmatch(base)) is not None:
        return _gemm(draft, found, name.truncated)
    if re.fullmatch(r"Cijk?_[A-Z0-9]+(?:_G[BG])?(?:_Bias\w+?)?(?:_GA)?", base):
        draft.token(base, "multiplies C by beta before a split-K GEMM adds to it")
        return draft.kind("elementwise", "scale_by_beta", "no operands A and B: prepares C for a split-K GEMM")
    return draft.kind("gemm", "gemm", "Cijk: Tensile's GEMM")


def _gemm(draft: Draft, found: re.Match[str], truncated: bool) -> Draft:
    first, second, rest = found.groups()
    draft.kind("gemm", "gemm", "Cijk: Tensile's GEMM")
    if {first.lower(), second.lower()} <= {"ilk", "lik", "ljk", "jlk"}:
        layout = ("n" if first.lower() == "ilk" else "t") + ("n" if second.lower() == "ljk" else "t")
        draft.set("layout", layout, f"A{first}_B{second}")
        draft.token(f"A{first}_B{second}", f"A and B {layout} in BLAS terms (ilk and ljk are not transposed)")
    tokens = tokens_of(rest, truncated)
    _types(draft, tokens)
    for token in tokens:
        _parameter(draft, token)
    if "tensor_core" not in draft.values and any(_THREAD_TILE.fullmatch(token) for token in tokens):
        draft.set("tensor_core", False, "TT, the tile of a thread, and no MI: vector units")
    return draft


def _parameter(draft: Draft, token: str) -> None:
    if (tile := _TILE.fullmatch(token)) is not None:
        draft.set("tile", tile.group(1), token)
        draft.token(token, "macro tile of a work group, M x N x K")
    elif _MATRIX.fullmatch(token):
        draft.set("tensor_core", True, f"{token}: MFMA or WMMA matrix instruction")
        shape = token[2:].split("x")
        if len(shape) == 4:
            draft.set("instruction", "x".join(shape[:3]), token)
        draft.token(token, f"matrix instruction, M x N{' x K' * (len(shape) == 4)} x blocks")
    elif (isa := _ISA.fullmatch(token)) is not None and isa.group(1) != "000":
        draft.set("arch", f"gfx{isa.group(1)}", token)
        draft.token(token, "instruction set of the device")
    elif _GFX.fullmatch(token):
        draft.set("arch", token, token)
    elif (split := _SPLIT.fullmatch(token)) is not None and int(split.group(1)) > 1:
        draft.set("split_k", True, token)
        draft.token(token, f"global split-U: {split.group(1)} work groups share the sum over K")
    elif _STREAM.fullmatch(token):
        draft.set("split_k", True, f"{token}: stream-K")
        draft.token(token, "stream-K: work groups share tiles")
    elif token in _MEANINGS:
        draft.token(token, _MEANINGS[token])


def _types(draft: Draft, tokens: list[str]) -> None:
    """Types of the operands, the output and the computation: ``SB``, ``HHS_BH``, ``B_BS_BH``, ``F8NH_HHS_BH``.

    Four letters stand for one each: ``F8B8BS_BH``.
    """
    letters = [_split(token) for token in tokens[:3]]
    if not letters or letters[0] is None:
        return
    one, two = letters[0], letters[1] if len(letters) > 1 else None
    plain, start = tokens[0], _LETTER.match(tokens[0])
    if start is None:
        return
    if len(one) == 4:
        a, b, out, acc = one
    elif len(one) == 3 and plain != "HBH":
        a = b = one[0]
        out, acc = one[1], one[2]
    elif len(one) == 2 and two is not None and len(two) == 3:
        (a, b), (out, acc) = one, two[1:]
        plain = f"{plain}_{tokens[1]}"
    elif len(one) == 1 and two is not None and len(two) == 2 and tokens[1] != "BH":
        a = b = one[0]
        out, acc = two
        plain = f"{plain}_{tokens[1]}"
    else:
        # One letter stands for all, and options follow it at once: SB is f32 with beta, HBH f16 that is summed in f32.
        a = b = out = acc = one[0]
        if not _OPTIONS.fullmatch(plain[start.end() :]):
            return
        if plain.endswith("BH"):
            acc = "f32"
    if "MX" in tokens:
        a = b = "tf32"
    draft.types(f"{plain}: operands, output, computation", a=a, b=b, out=out, acc=acc)
    draft.token(plain, "types of the operands, the output and the computation")


def _split(token: str) -> list[str] | None:
    """The types that a token is made of; None where it is something else."""
    return [_LETTERS[letter] for letter in _LETTER.findall(token)] if _TYPES.fullmatch(token) else None
