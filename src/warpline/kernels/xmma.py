"""xmma kernels of cuBLAS, cuDNN and TensorRT: ``sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_…``.

``xmma`` is no proof of tensor cores: ``ffma`` variants and the pooling kernels run on CUDA cores.
"""

from __future__ import annotations

import re

from warpline.kernels.draft import Draft
from warpline.kernels.grammar import sm_number, tokens_of
from warpline.kernels.normalise import NormalName
from warpline.kernels.types import dtype_of

_NAME = re.compile(r"sm(\d+)_xmma_")
_TYPE = r"(?:bf16|tf32|f16|f32|f64|e4m3|e5m2|i8|u8|i32|s8|s32|FP16|FP32)"
_PAIR = re.compile(rf"({_TYPE})({_TYPE})")
_WORD = re.compile(
    r"(tilesize)(\d+x\d+x\d+)|(stage)(\d+)|(warpsize|warpgroupsize)(\d+x\d+x\d+)|(tensor)(\d+x\d+x\d+)"
    r"|(cluster|cgasize)(\d+x\d+x\d+)|(align[acb])(\d+)|(g)(\d+)|(t\d+r\d+s\d+)()"
)
_OPS = {"fprop": ("conv_fprop", "fwd"), "dgrad": ("conv_dgrad", "bwd"), "wgrad": ("conv_wgrad", "bwd")}
_LAYOUT = re.compile(r"[nt]{1,2}|n[cdhwkrst0-9]{3,14}")
_LIBRARIES = (("cublas", "cublas"), ("cudnn", "cudnn"), ("trt", "tensorrt"))


def decode(name: NormalName) -> Draft | None:
    """Names that start with ``sm<NN>_xmma_``."""
    found = _NAME.match(name.text)
    if found is None:
        return _helper(name) if name.text.startswith("xmma_") else None
    tokens = tokens_of(name.text, name.truncated)
    library = next((owner for mark, owner in _LIBRARIES if mark in tokens), None)
    draft = Draft("xmma", library)
    arch = f"sm{found.group(1)}"
    draft.set("arch", arch, f"the prefix {arch}")
    draft.token(arch, "architecture the kernel was built for")
    draft.token("xmma", "NVIDIA's internal matrix kernels")
    body = tokens[2:]
    _op(draft, body)
    _types(draft, body)
    _words(draft, body)
    _tensor_core(draft, body, arch)
    if library:
        draft.token(library, "library that ships the kernel")
    return draft


def _helper(name: NormalName) -> Draft:
    draft = Draft("xmma", "cudnn" if "cudnn" in name.scope else None)
    draft.token(name.base, "prepares or finishes an xmma kernel")
    return draft.kind("other", "xmma helper", "a helper stage around an implicit GEMM, no arithmetic itself")


def _op(draft: Draft, body: list[str]) -> None:
    first = body[0] if body else ""
    if "pooling" in body[:2]:
        draft.kind("pooling", "pooling", "xmma_pooling")
        draft.set("direction", "bwd" if "bw" in body else "fwd" if "fw" in body else None, "fw or bw")
        draft.token("pooling", "pooling, on CUDA cores")
    elif first in _OPS or (first in ("warp", "sparse") and any(token in _OPS for token in body[:6])):
        pass_name = next(token for token in body if token in _OPS)
        op, direction = _OPS[pass_name]
        draft.kind("conv", op, f"{pass_name}: convolution")
        draft.set("direction", direction, pass_name)
        draft.token(pass_name, f"{op.replace('_', ' ')} as an implicit GEMM")
    elif "gemm" in body[:4] and "implicit" not in body[:4]:
        draft.kind("gemm", "sparse_gemm" if first == "sparse" else "gemm", "xmma_gemm")
        draft.token("gemm", "matrix multiplication")
    elif "implicit" in body[:6] or any(token.startswith("conv") for token in body[:4]):
        draft.kind("conv", "conv", "an implicit GEMM is a convolution")
    else:
        draft.abstain("an xmma kernel whose operation is not in the name")


def _types(draft: Draft, body: list[str]) -> None:
    pairs = [found for token in body if (found := _PAIR.fullmatch(token))]
    if len(pairs) < 2:
        return
    stored, out = pairs[0].groups()
    math, accumulator = pairs[1].groups()
    operand = "tf32" if math == "tf32" else dtype_of(stored)
    written = dtype_of(out)
    draft.token(pairs[0].group(), f"inputs stored as {dtype_of(stored)}, output as {written}")
    draft.token(pairs[1].group(), f"multiplied as {dtype_of(math)}, accumulated in {dtype_of(accumulator)}")
    reason = f"{pairs[0].group()}_{pairs[1].group()}: storage pair, then math pair"
    draft.types(reason, a=operand, b=operand, out="f32" if written == "tf32" else written, acc=dtype_of(accumulator))
    second = body.index(pairs[1].group(), body.index(pairs[0].group()) + 1)
    after = body[second + 1 :]
    if after and dtype_of(after[0]):
        draft.token(after[0], "type of the epilogue's scalars")
        after = after[1:]
    layout = []
    for token in after[:2]:
        if not _LAYOUT.fullmatch(token):
            break
        layout.append(token)
    if layout and (len(layout) == 2 or not body[-1].startswith(layout[-1])):
        joined = "_".join(layout)
        draft.set("layout", joined, f"{joined}: order of the operands, then of the output")
        draft.token(joined, "order of the operands, then of the output")


def _words(draft: Draft, body: list[str]) -> None:
    for token in body:
        found = _WORD.fullmatch(token)
        if found is None:
            continue
        word, value = (group for group in found.groups() if group is not None)
        if word == "tilesize":
            draft.set("tile", value, token)
            draft.token(token, "tile of a thread block, M x N x K")
        elif word == "stage":
            draft.set("stages", int(value), token)
            draft.token(token, f"{value} stages in flight along K")
        elif word in ("warpsize", "warpgroupsize"):
            draft.token(token, "warps (or warpgroups) along M, N and K")
        elif word == "tensor":
            draft.set("instruction", value, token)
            draft.token(token, f"tensor-core instruction {value}")
        elif word in ("cluster", "cgasize"):
            draft.set("cluster", value, token)
            draft.token(token, "thread-block cluster")
        elif word.startswith("align"):
            draft.token(token, f"{value} elements of alignment")
            draft.set("alignment", max(int(value), draft.values.get("alignment", 0)), "the largest align token")
        elif word == "g":
            draft.token(token, f"{value} group(s) of channels")
        else:
            draft.token(token, "filter size T, R, S fixed in the code")
    joined = "_".join(body)
    if "split_k" in joined:
        draft.set("split_k", True, "split_k")
        draft.token("split_k", "K is split over thread blocks")
    elif "segment_k_off" in joined:
        draft.token("segment_k_off", "segmented K is off")
    if "ffma" in body:
        draft.token("ffma", "fused multiply-adds on CUDA cores")


def _tensor_core(draft: Draft, body: list[str], arch: str) -> None:
    if draft.values.get("kernel_class") not in ("gemm", "conv"):
        return
    if "ffma" in body or "hfma2" in body or "dfma" in body or "idp4a" in body:
        draft.set("tensor_core", False, "ffma: fused multiply-adds on CUDA cores")
    elif any(token.startswith(("tensor", "sptensor")) for token in body):
        draft.set("tensor_core", True, "the tensor token gives a matrix instruction")
    elif any(token.startswith("warpgroupsize") for token in body) and (sm_number(arch) or 0) >= 90:
        draft.set("tensor_core", True, "warpgroups exist for Hopper's wgmma instructions")
