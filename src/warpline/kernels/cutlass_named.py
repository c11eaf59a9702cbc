"""CUTLASS kernels that carry a procedural name, alone or inside ``cutlass::Kernel2<…>``.

2.x: ``cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x256_32x3_tn_align8``. The output and input types
are printed only where they differ from the accumulator, so ``s1688gemm`` without a type on sm80 is fp32
data multiplied in TF32. 3.x: ``cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_void_f16_128x128x64_…``.
"""

from __future__ import annotations

import re

from warpline.kernels.draft import Draft
from warpline.kernels.grammar import ACCUMULATORS, INSTRUCTIONS, SHAPE2, SHAPE3, sm_number, tokens_of
from warpline.kernels.normalise import NormalName
from warpline.kernels.types import dtype_of

_CORE2 = re.compile(
    r"(g?)([hsdciz])(\d*)(tf32|bf16|f16|fastbf16|fastf16|fastf32)?(spgemm|gemm|fprop|dgrad|wgrad|deconv)"
)
_CORE3 = re.compile(r"([hsdciz])(\d++x\d++x\d++)(\w*+)")
_OPCLASSES = {
    "simt": "CUDA cores",
    "tensorop": "tensor cores (simt: CUDA cores)",
    "sptensorop": "tensor cores with structured sparsity",
    "bstensorop": "tensor cores with block-scaled operands",
    "bssptensorop": "sparse tensor cores with block-scaled operands",
}
_PASSES = {"fprop": "fwd", "deconv": "bwd", "dgrad": "bwd", "wgrad": "bwd"}
_LAYOUT2 = re.compile(r"[nthc]{2}|n[dhwc]{3,4}|nc\d+hw\d+")
_LAYOUT3 = re.compile(r"[nt]{3}")
_SCALED = re.compile(r"(u?e\dm\d)x(f4|f6|f8|e2m1|e4m3|e5m2)")
_OWNERS = (("cudnn", "cudnn"), ("cublas", "cublas"))
_NOTES = {
    "relu": "can apply a ReLU; no proof that it does",
    "optimized": "precomputed offsets",
    "analytic": "offsets computed on the fly",
    "unity": "unit stride only",
    "stream": "stream-K scheduling",
    "warpspecialized": "separate producer and consumer warps",
    "pingpong": "two consumer warpgroups alternate between tiles",
    "cooperative": "two consumer warpgroups share a tile",
    "1sm": "instruction of one SM",
    "2sm": "instruction of a pair of SMs",
    "cpasync": "loads by cp.async",
    "fastaccum": "fast fp8 accumulation",
    "grouped": "grouped",
    "dyn": "cluster size chosen at launch",
}


def decode(name: NormalName) -> Draft | None:
    """Names that start with ``cutlass_`` or ``cutlass3x_``, also as the only template argument."""
    text = name.text
    wrapper = ""
    if name.base in ("Kernel", "Kernel2", "device_kernel") and name.arguments.startswith("cutlass"):
        inner = name.arguments.split("<", 1)[0].split(",", 1)[0].strip()
        if "::" not in inner:
            text, wrapper = inner, name.text.split("<", 1)[0]
    if not text.startswith(("cutlass_", "cutlass3x_")) or "::" in text:
        return None
    tokens = tokens_of(text, name.truncated)
    named = Draft("cutlass", _library(wrapper, tokens))
    if wrapper:
        named.token(wrapper, "CUTLASS' kernel wrapper")
    named.token(tokens[0] if tokens else text, "built from NVIDIA's CUTLASS templates")
    if text.startswith("cutlass3x_"):
        return _decode3(named, tokens[1:])
    return _decode2(named, tokens[1:], name.truncated)


def _library(wrapper: str, tokens: list[str]) -> str:
    for mark, owner in _OWNERS:
        if mark in wrapper:
            return owner
    # cuBLAS inserts the architecture after "cutlass"; upstream names do not have it.
    return "cublas" if len(tokens) > 1 and tokens[1].isdigit() else "cutlass"


def _opclass(draft: Draft, tokens: list[str]) -> bool | None:
    for at, token in enumerate(tokens[:3]):
        if token in _OPCLASSES:
            opclass = f"wmma_{token}" if at and tokens[at - 1] == "wmma" else token
            meaning = _OPCLASSES[token] + (" through the wmma interface" if opclass != token else "")
            draft.token(opclass, meaning)
            draft.set("tensor_core", token != "simt", f"{opclass}: {meaning}")
            return token != "simt"
    return None


def _decode2(draft: Draft, tokens: list[str], truncated: bool) -> Draft | None:
    arch = None
    if tokens and tokens[0].isdigit():
        arch = f"sm{tokens[0]}"
        draft.set("arch", arch, f"cutlass_{tokens[0]}: compute capability the kernel was built for")
        draft.token(tokens[0], f"built for compute capability {tokens[0][:-1]}.{tokens[0][-1]}")
    if arch:
        tokens = tokens[1:]
    core_at = next((at for at, token in enumerate(tokens[:6]) if _CORE2.fullmatch(token)), None)
    tensor = _opclass(draft, tokens)
    if core_at is None:
        return draft.abstain("a CUTLASS name without a readable operation") if tensor is not None else None
    core = _CORE2.fullmatch(tokens[core_at])
    assert core is not None
    leading = tokens[core_at - 1] if core_at and dtype_of(tokens[core_at - 1]) else None
    rest = tokens[core_at + 1 :]
    trailing = next((token for token in rest[:3] if dtype_of(token)), None)
    _core2(draft, core, leading, trailing, arch)
    if truncated and not trailing and not any(SHAPE2.fullmatch(token) for token in rest):
        # The name is truncated where an input type may have been.
        draft.dtype.pop("a", None)
        draft.dtype.pop("b", None)
    _tail2(draft, rest, core.group(5))
    if "tensor_core" not in draft.values:
        draft.set("tensor_core", bool(core.group(3)), "instruction digits after the letter")
    return draft


def _core2(draft: Draft, core: re.Match[str], leading: str | None, trailing: str | None, arch: str | None) -> None:
    gaussian, letter, digits, math, kind = core.groups()
    accumulator = ACCUMULATORS[letter]
    tensor = draft.values.get("tensor_core")
    if kind in _PASSES:
        draft.kind("conv", f"conv_{kind}", f"{kind}: convolution", tensor_core=tensor)
        draft.set("direction", _PASSES[kind], kind)
    else:
        draft.kind("gemm", "sparse_gemm" if kind == "spgemm" else "gemm", f"{core.group()}: GEMM", tensor_core=tensor)
    shape = INSTRUCTIONS.get(digits)
    draft.set("instruction", shape, f"{digits} is the matrix instruction {shape}")
    operand = dtype_of(trailing) if trailing else None
    implied = False
    if operand is None:
        operand, implied = _implied(letter, digits, math, arch)
    output = dtype_of(leading) if leading else accumulator
    draft.types("types are printed only where they differ from the accumulator", acc=accumulator, out=output)
    draft.types(draft.reasons["dtype"], a=operand, b=operand)
    if leading:
        draft.token(leading, f"output type {output}, different from the accumulator")
    meaning = f"accumulates in {accumulator}" + (" (Gaussian complex)" if gaussian else "")
    if shape:
        meaning += f"; matrix instruction {shape}"
    if implied and operand == "tf32":
        meaning += "; no input type is printed, so the data are fp32, multiplied in TF32 (not in fp32)"
    draft.token(core.group(), meaning)
    if trailing:
        draft.token(trailing, f"input type {operand}")


def _implied(letter: str, digits: str, math: str | None, arch: str | None) -> tuple[str | None, bool]:
    if math in ("tf32", "bf16", "f16"):
        return math, True
    if not digits:
        return ACCUMULATORS[letter], True
    if letter in ("h", "d"):
        return ACCUMULATORS[letter], True
    if letter == "s" and digits in ("1688", "1684") and (sm_number(arch) or 0) >= 80:
        return "tf32", True
    return None, False


def _tail2(draft: Draft, rest: list[str], kind: str) -> None:
    shapes: list[str] = []
    for token in rest:
        if SHAPE2.fullmatch(token):
            shapes.append(token)
            if len(shapes) == 1:
                draft.set("tile", token, f"{token}: tile of a thread block")
                draft.token(token, f"each thread block computes a {token} tile of the output")
            elif len(shapes) == 2:
                depth, stages = token.split("x")
                draft.set("tile", f"{shapes[0]}x{depth}", f"{shapes[0]}, {depth} deep along K")
                draft.set("stages", int(stages), f"{token}: K depth x stages")
                overlap = ": the next tiles load while one is multiplied" if int(stages) > 1 else ""
                draft.token(token, f"{depth} deep along K, {stages} pipeline stages in shared memory{overlap}")
        elif token.startswith("align") and token[5:].isdigit():
            draft.set("alignment", int(token[5:]), token)
            draft.token(token, f"operands aligned to {token[5:]} elements{_load(int(token[5:]), draft.dtype.get('a'))}")
        elif shapes and "layout" not in draft.values and _LAYOUT2.fullmatch(token):
            draft.set("layout", token, f"{token}: order of A and B" if kind in ("gemm", "spgemm") else token)
            meaning = "A and B: n = column-major (not transposed), t = row-major (transposed), in BLAS terms"
            draft.token(token, meaning if kind in ("gemm", "spgemm") else "order of the tensors' dimensions")
        elif token in _NOTES:
            draft.token(token, _NOTES[token])


def _load(elements: int, dtype: str | None) -> str:
    """The bytes of an aligned load, where the type is known; TF32 is stored in 32 bits."""
    bits = re.fullmatch(r"[bt]?f(16|32|64)|[su](8)", dtype or "")
    if bits is None:
        return ""
    width = elements * int(bits[1] or bits[2])
    return f": {width // 8} bytes, one {width}-bit load"


def _decode3(draft: Draft, tokens: list[str]) -> Draft:
    if tokens and tokens[0].startswith("sm"):
        draft.set("arch", tokens[0].rstrip("af"), tokens[0])
        draft.token(tokens[0], "architecture the kernel was built for")
    tensor = _opclass(draft, tokens[1:])
    joined = "_".join(tokens)
    direction = next((kind for kind in ("wgrad", "dgrad", "fprop") if kind in joined), None)
    if direction:
        draft.kind("conv", f"conv_{direction}", f"{direction}: convolution", tensor_core=tensor)
        draft.set("direction", _PASSES[direction], direction)
        draft.token(direction, "convolution as an implicit GEMM")
    elif "implicit_gemm" in joined or "conv" in joined:
        draft.kind("conv", "conv", "an implicit GEMM is a convolution", tensor_core=tensor)
    elif "gemm" in joined:
        draft.kind("gemm", "gemm", "gemm in the name", tensor_core=tensor)
    else:
        draft.abstain("a CUTLASS 3 name without a readable operation")
    accumulator = None
    types: list[str | None] = []
    shapes = 0
    for token in tokens[2:]:
        core = _CORE3.fullmatch(token)
        scaled = _SCALED.fullmatch(token)
        if core is not None and not shapes and not types:
            accumulator = ACCUMULATORS[core.group(1)]
            draft.set("instruction", core.group(2), f"{token}: instruction shape")
            draft.token(token, f"accumulates in {accumulator}; matrix instruction {core.group(2)}")
        elif not shapes and (token == "void" or dtype_of(token) or scaled):
            types.append(dtype_of({"f4": "e2m1"}.get(scaled.group(2), scaled.group(2))) if scaled else dtype_of(token))
        elif SHAPE3.fullmatch(token):
            shapes += 1
            draft.set("tile" if shapes == 1 else "cluster", token, f"{token}: shape {shapes}")
            draft.token(token, "tile of a thread block, M x N x K" if shapes == 1 else "thread-block cluster")
        elif shapes >= 2 and token.isdigit():
            if int(token):
                draft.set("stages", int(token), "the number after the cluster")
            draft.token(token, f"{token} pipeline stages" if int(token) else "stages chosen automatically")
        elif shapes and "layout" not in draft.values and (_LAYOUT3.fullmatch(token) or token in ("ndhwc", "nhwc")):
            draft.set("layout", token, f"{token}: order of A, B and C")
            draft.token(token, "order of A, B and C")
        elif token.startswith("align") and token[5:].isdigit():
            draft.set("alignment", int(token[5:]), token)
            draft.token(token, f"operands aligned to {token[5:]} elements")
        elif token in _NOTES:
            draft.token(token, _NOTES[token])
    if len(types) >= 5:
        draft.types("types of A, B, accumulator, C and D", a=types[0], b=types[1], acc=types[2], out=types[4])
        draft.token("_".join(kind or "void" for kind in types[:5]), "types of A, B, accumulator, C and D")
    elif accumulator:
        draft.types("the letter before the instruction", acc=accumulator)
    return draft
