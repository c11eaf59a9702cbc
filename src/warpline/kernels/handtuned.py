"""Hand-tuned SASS of cuBLAS, cuDNN and TensorRT: ``ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn``.

The generation is the one the kernel was written for, not the device's. The letter before the digits is the accumulator;
digits are the matrix instruction, and a core without digits runs on CUDA cores. Types are printed only if they differ
from the accumulator.
"""

from __future__ import annotations

import re

from warpline.kernels.draft import Draft
from warpline.kernels.grammar import ACCUMULATORS, GENERATIONS, INSTRUCTIONS, SHAPE2, sm_number, tokens_of
from warpline.kernels.normalise import NormalName
from warpline.kernels.types import dtype_of

_CORE = re.compile(r"(g?)([hsdciz])(\d*)(gemm|cudnn)(3m)?")
_TYPES = {"fp16", "bf16", "tf32", "fp32", "int8", "f16", "int8x4", "int8x32"}
_PREFIXES = {"trt", "cudnn", "infer", "train", "cublas"}
_LAYOUTS = {"nn", "nt", "tn", "tt"}
_OWNERS = {"trt": "tensorrt", "cudnn": "cudnn"}
_NOTES = {
    "relu": "can apply a ReLU; no proof that it does",
    "f2f": "converts the output type on the way out",
    "interior": "code variant for tiles without a border",
    "small": "code variant by problem size",
    "medium": "code variant by problem size",
    "large": "code variant by problem size",
    "xregs": "code variant with more registers",
    "exp": "code variant",
    "nhwc": "channels-last tensors",
    "nhwc2nchw": "channels-last in, channels-first out",
    "nchw": "channels-first tensors",
    "winograd": "Winograd's algorithm: fewer multiplications than the direct form",
    "kernel": "suffix",
}


def decode(name: NormalName) -> Draft | None:
    """cuBLAS, cuDNN and TensorRT kernels that start with a GPU generation."""
    text = name.text
    tokens = tokens_of(text, name.truncated)
    at = 0
    while at < len(tokens) and tokens[at] in _PREFIXES:
        at += 1
    if at >= len(tokens) or tokens[at] not in GENERATIONS or at > 2:
        return None
    core_at = next((i for i in range(at + 1, min(at + 4, len(tokens))) if _CORE.fullmatch(tokens[i])), None)
    if core_at is None:
        return None
    core = _CORE.fullmatch(tokens[core_at])
    assert core is not None
    owner = next((_OWNERS[token] for token in tokens[:at] if token in _OWNERS), None)
    draft = Draft("hand-tuned", owner or ("cudnn" if core.group(4) == "cudnn" else "cublas"))
    for token in tokens[:at]:
        draft.token(token, "the library that ships the kernel")
    generation = tokens[at]
    arch = GENERATIONS[generation]
    draft.set("arch", arch, f"written for {generation.capitalize()}, whatever device runs it")
    draft.token(generation, f"written for {generation.capitalize()} ({arch})")
    leading = next((token for token in tokens[at + 1 : core_at] if token in _TYPES), None)
    rest = tokens[core_at + 1 :]
    trailing = rest[0] if rest and rest[0] in _TYPES else None
    _core(draft, core, tokens[core_at], leading, trailing, arch)
    if name.truncated and not trailing and not any(SHAPE2.fullmatch(token) for token in rest):
        _forget_operands(draft)
    _tail(draft, rest[1:] if trailing else rest, conv=core.group(4) == "cudnn")
    return draft


def _core(draft: Draft, core: re.Match[str], token: str, leading: str | None, trailing: str | None, arch: str) -> None:
    gaussian, letter, digits, kind, _ = core.groups()
    accumulator = ACCUMULATORS[letter]
    conv = kind == "cudnn"
    what = "convolution as an implicit GEMM" if conv else "matrix multiplication"
    if digits:
        shape = INSTRUCTIONS.get(digits)
        reason = f"{digits} after the letter is a matrix instruction"
        draft.kind("conv" if conv else "gemm", "conv" if conv else "gemm", f"{token}: {what}")
        draft.set("tensor_core", True, reason)
        draft.set("instruction", shape, reason)
        words = f"instruction {shape or digits} on tensor cores"
    else:
        draft.kind("conv" if conv else "gemm", "conv" if conv else "gemm", f"{token}: {what}", tensor_core=False)
        draft.reasons["tensor_core"] = f"{token} has no instruction digits: CUDA cores"
        words = "no instruction digits: CUDA cores"
    if leading:
        draft.token(leading, f"output type {dtype_of(leading) or leading}, different from the accumulator")
    draft.token(token, f"{what}; accumulates in {accumulator}{' (Gaussian complex)' if gaussian else ''}; {words}")
    if trailing:
        draft.token(trailing, f"input type {dtype_of(trailing) or trailing}")
    operand = _operand(letter, digits, trailing, arch)
    output = dtype_of(leading.split("x")[0]) if leading else accumulator
    output = "f32" if output == "tf32" else output
    draft.types("the letter is the accumulator; other types are printed where they differ", acc=accumulator, out=output)
    draft.types(draft.reasons["dtype"], a=operand, b=operand)


def _forget_operands(draft: Draft) -> None:
    """Whether the name is truncated where an input type may have been."""
    draft.dtype.pop("a", None)
    draft.dtype.pop("b", None)


def _operand(letter: str, digits: str, trailing: str | None, arch: str) -> str | None:
    if trailing:
        return dtype_of(trailing.split("x")[0] if trailing.startswith("int8x") else trailing)
    if not digits:
        return None if letter == "i" else ACCUMULATORS[letter]
    if letter in ("h", "d"):
        return ACCUMULATORS[letter]
    if letter == "s" and digits == "1688" and (sm_number(arch) or 0) >= 80:
        return "tf32"
    return None


def _tail(draft: Draft, rest: list[str], conv: bool) -> None:
    tile = next((token for token in rest if SHAPE2.fullmatch(token)), None)
    depth: str | None = None
    at = 0
    while at < len(rest):
        token = rest[at]
        if token == tile and depth is None and "tile" not in draft.values:
            draft.token(token, "output tile of a thread block, M x N")
            draft.set("tile", tile, f"{token}: tile of a thread block")
        elif token == "stages" and at + 1 < len(rest) and SHAPE2.fullmatch(rest[at + 1]):
            depth, count = rest[at + 1].split("x")
            draft.token(f"stages_{rest[at + 1]}", f"{depth} deep along K, {count} stages in flight")
            draft.set("stages", int(count), f"stages_{rest[at + 1]}")
            at += 1
        elif token.startswith("sliced"):
            draft.token(token, "the block's warps share K (slice-K)")
        elif token.startswith("ldg") and token[3:].isdigit():
            draft.token(token, f"{token[3:]} elements per global load")
            draft.set("vector_width", int(token[3:]), token)
        elif token in _LAYOUTS and not conv:
            draft.token(token, "A and B: n = column-major (not transposed), t = transposed, in BLAS terms")
            draft.set("layout", token, f"{token}: operand order in BLAS terms")
        elif token in _LAYOUTS:
            draft.token(token, "operand order of the implicit GEMM")
            draft.set("layout", token, f"{token}: operand order of the implicit GEMM")
        elif token in ("splitK", "splitk"):
            draft.set("split_k", True, token)
            draft.token(token, "K is split over thread blocks, partial sums added afterwards")
        elif token in _NOTES:
            draft.token(token, _NOTES[token])
        at += 1
    if tile is not None and depth is not None:
        draft.set("tile", f"{tile}x{depth}", f"{tile} and the K depth of stages")
    if conv:
        _direction(draft, set(rest))


def _direction(draft: Draft, tokens: set[str]) -> None:
    """The pass, as measured on the launching ops (stridedB is dgrad, with splitK it is wgrad, relu is fprop)."""
    if "stridedB" in tokens:
        op = "conv_wgrad" if "splitK" in tokens else "conv_dgrad"
        draft.set("op", op, "stridedB" + ("_splitK" if "splitK" in tokens else ""))
        draft.set("direction", "bwd", f"{op} is a backward pass")
        draft.token("stridedB", "gradient by " + ("the weights" if op == "conv_wgrad" else "the input"))
    elif "fprop" in tokens or ("relu" in tokens and "winograd" not in tokens):
        draft.set("op", "conv_fprop", "relu variants serve the forward pass")
        draft.set("direction", "fwd", "forward convolution")
    elif tokens & {"dgrad", "wgrad"}:
        draft.set("op", "conv_dgrad" if "dgrad" in tokens else "conv_wgrad", "named in the token")
        draft.set("direction", "bwd", "gradient kernel")
