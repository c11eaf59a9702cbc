"""cuDNN's own kernels: run-time generated engines, older template kernels, batch norm, layout changes."""

from __future__ import annotations

import re

from warpline.kernels.catalogue import Catalogue
from warpline.kernels.draft import Draft
from warpline.kernels.grammar import SHAPE3, tokens_of
from warpline.kernels.normalise import NormalName, split_arguments
from warpline.kernels.types import dtype_of

_TABLE = Catalogue("""
conv conv_fprop fwd cores: implicit_convolve_sgemm explicit_convolve_sgemm precomputed_convolve_sgemm
conv conv cores: convolve_common_engine_float_NHWC conv2d_grouped_direct_kernel conv2d_c1_k1_* conv_kernel_common*
conv conv_dgrad bwd cores: dgrad_engine dgrad_alg1_engine dgrad2d_alg1_1 dgrad2d_grouped_direct_kernel dgrad2d_c1_k1*
conv conv_wgrad bwd cores: wgrad_alg0_engine wgrad_alg1_engine wgrad_alg1_nd_float_engine
conv conv_wgrad bwd cores: wgrad2d_grouped_direct_kernel
conv conv_wgrad bwd cores: wgrad_alg0_engine_NHWC wgrad2d_c1_k1* winogradWgrad*
conv conv_dgrad bwd cores: dgrad2d_* dgrad_*
conv conv_winograd cores: generateWinogradTilesKernel winogradForward* winograd3x3Kernel winogradForwardData*
conv conv_fft cores: fft1d_r2c_* fft1d_c2r_* fft2d_r2c_* fft2d_c2r_* compute_gemm_pointers
conv conv_fft cores: pointwise_mult_and_sum_complex
conv conv_fft cores: gemm_pointwise_mult*
layout flip_filter: flip_filter
layout im2col: im2col4d_kernel im2col_kernel im2col* col2im*
layout nchw_to_nhwc: nchwToNhwcKernel nchwToFoldedNhwcKernel nchw2nhwc*
layout nhwc_to_nchw: nhwcToNchwKernel foldedNhwcToNhwcKernel nhwcToFoldedNhwcKernel nhwc2nchw*
layout pad: nhwcAddPaddingKernel nhwcSliceCKernel nchwAddPaddingKernel
layout tensor_transform: tensorTransformGeneric transformTensor* tensorTransform* foldedNhwc* nhwcToFolded*
elementwise convert: convertTensor_kernel
elementwise scale: scalePackedTensor_kernel scaleTensor_kernel setTensor*
elementwise op_tensor: op_tensor* op_generic_tensor_kernel*
elementwise add: add_tensor_kernel* addTensor* activation_fw* activation_bw* lrn_activation*
elementwise rnn_cell: LSTM_elementWise_* GRU_elementWise_* elemWiseRNNcell RNN_elementWise*
norm batch_norm fwd: bn_fw_* batchnorm_fwtr_* bn_fw_tr_* bn_fw_inf_*
norm batch_norm bwd: bn_bw_* batchnorm_bwtr_*
pooling pooling fwd: pooling_fw_* pooling_fwd*
pooling pooling bwd: pooling_bw_* pooling_bwd*
softmax softmax fwd: softmax_fw_*
softmax softmax bwd: softmax_bw_*
norm lrn: lrn_fw* lrn_bw* lrn_kernel*
reduction wgrad_reduce: reduce_wgrad_nchw_helper reduce_wgrad* reduceTensor* reduced_kernel
rng dropout: dropout_fp dropout_bp dropout_*
attention sdpa_backward bwd cores: compute_dot_do_o compute_dot_do_o_specialized convert_dq_to_16bits
attention sdpa_backward bwd cores: compute_dot_do_o*
other conv_helper: computeOffsetsKernel computeOffsetsKernel3D computeBOffsetsKernel computeWgradBOffsetsKernel
other conv_helper: computeWgradSplitKOffsetsKernel kern_precompute_indices compute*OffsetsKernel* computeOffsets*
""")
_SDPA = re.compile(r"(fprop|bprop|fwd|bwd)")
_CONV = {"convFwd": ("conv_fprop", "fwd"), "convBwdData": ("conv_dgrad", "bwd"), "convBwdFilter": ("conv_wgrad", "bwd")}


def decode(name: NormalName) -> Draft | None:
    """``cudnn_generated_…``, ``cudnn::…``, ``cask_cudnn::…`` and bare identifiers that only cuDNN uses."""
    text = name.text
    if text.startswith(("cudnn_generated", "generatedNative")):
        return _generated(name)
    inside_cudnn = "cudnn" in name.scope
    entry = _TABLE.find(name.base)
    if entry is None and name.truncated and not name.arguments and inside_cudnn:
        entry = _TABLE.complete(name.base)
    if entry is None:
        return _rest(name) if inside_cudnn else None
    if not inside_cudnn and name.base.startswith(("dropout_", "im2col", "col2im", "dgrad_", "activation_")):
        return None
    draft = Draft("cudnn template", "cudnn")
    draft.token(f"{name.scope}{name.base}", f"{entry.op.replace('_', ' ')} of cuDNN")
    draft.kind(entry.kernel_class, entry.op, f"{name.base} of cuDNN", tensor_core=entry.tensor_core)
    draft.set("direction", entry.direction, name.base)
    kinds = [dtype_of(part) for part in split_arguments(name.arguments)[:6]]
    floats = [kind for kind in kinds if kind in ("f16", "bf16", "f32", "f64", "e4m3")]
    if floats and kinds and (kinds[0] in floats or entry.kernel_class == "conv"):
        draft.types("first type argument", a=floats[0])
        if entry.kernel_class == "layout" and len(floats) > 1:
            draft.types("first two type arguments", out=floats[1])
    return draft


def _rest(name: NormalName) -> Draft | None:
    scope = name.scope + name.base
    draft = Draft("cudnn template", "cudnn")
    if "winograd" in scope:
        return draft.kind("conv", "conv_winograd", "namespace winograd", tensor_core=False)
    if name.base.startswith("bn_") or "batchnorm" in scope.lower():
        return draft.kind("norm", "batch_norm", name.base)
    return None


def _generated(name: NormalName) -> Draft:
    tokens = tokens_of(name.text, name.truncated)
    draft = Draft("cudnn generated", "cudnn")
    draft.token("cudnn_generated_fort_native", "generated at run time by cuDNN's fusion engine")
    arch = next((token for token in tokens if re.fullmatch(r"sm\d+", token)), None)
    if arch:
        draft.set("arch", arch, arch)
        draft.token(arch, "architecture the kernel was generated for")
    joined = "_".join(tokens)
    if "sdpa" in tokens or "flash" in tokens or "mha" in tokens:
        found = _SDPA.search(joined)
        backward = found is not None and found.group().startswith("b")
        op = "sdpa_backward" if backward else "sdpa_forward"
        draft.kind("attention", op, "sdpa: scaled dot-product attention", tensor_core=True)
        draft.set("direction", "bwd" if backward else "fwd" if found else None, found.group() if found else "")
        draft.token("sdpa_flash", "attention that never writes the score matrix")
        mark = "wgmma" if "wgmma" in tokens else "wmma" if "wmma" in tokens else None
        draft.reasons["tensor_core"] = f"{mark}: matrix instructions" if mark else "cuDNN's flash engines use them"
        if "f16" in tokens:
            draft.token("f16", "a 16-bit float: fp16 or bf16, the name does not say which")
    else:
        conv = next((token for token in tokens if token in _CONV), None)
        if conv:
            op, direction = _CONV[conv]
            draft.kind("conv", op, conv)
            draft.set("direction", direction, conv)
            draft.set(
                "tensor_core", True if arch else None, "cuDNN's native convolution engines use matrix instructions"
            )
            draft.token(conv, op.replace("_", " "))
        elif "ointwise" in joined:
            draft.kind("elementwise", "pointwise", "generatedNativePointwise")
        elif "matmul" in joined.lower():
            draft.kind("gemm", "gemm", "matmul in the name")
        elif "eduction" in joined:
            draft.kind("reduction", "reduction", "reduction in the name")
        elif "norm" in joined.lower():
            draft.kind("norm", "norm", "norm in the name")
        else:
            draft.abstain("a generated cuDNN kernel whose operation is not in the name")
    _knobs(draft, tokens)
    return draft


def _knobs(draft: Draft, tokens: list[str]) -> None:
    for at, token in enumerate(tokens):
        if token == "knob" and at + 1 < len(tokens):
            draft.token(f"knob_{tokens[at + 1]}", "variant that the heuristics chose")
        elif SHAPE3.fullmatch(token) and "tile" not in draft.values:
            draft.set("tile", token, "first shape after the knob")
            draft.token(token, "tile")
