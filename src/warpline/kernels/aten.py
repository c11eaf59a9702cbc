"""PyTorch's native CUDA kernels: the base identifier gives the access pattern, the functor gives the op.

``elementwise`` kernels: ``vectorized_`` (contiguous, with the access width), ``unrolled_`` (with casts or irregular
strides), plain (strided). AT_DISPATCH case numbers (``#12``) are never decoded: they differ between releases. With a
run-time cast (``LoadWithCast``), one data type is not in the name.
"""

from __future__ import annotations

from warpline.kernels.catalogue import Catalogue, CatalogueEntry
from warpline.kernels.draft import Draft
from warpline.kernels.functors import op_name, read_functor
from warpline.kernels.grammar import head, inside, is_integer
from warpline.kernels.normalise import NormalName, split_arguments
from warpline.kernels.types import dtype_of

WARP = 32
_ELEMENTWISE = {
    "vectorized_elementwise_kernel": (1, "contiguous"),
    "vectorized_templated_elementwise_kernel": (1, "contiguous"),
    "unrolled_elementwise_kernel": (0, "unrolled"),
    "unrolled_elementwise_kernel_for_multi_outputs": (1, "several outputs"),
    "elementwise_kernel": (2, "strided"),
    "elementwise_kernel_manual_unroll": (2, "strided, unrolled by hand"),
    "elementwise_kernel_with_index": (1, "value from the index"),
    "legacy_elementwise_kernel": (2, "strided"),
    "kernelPointwiseApply1": (0, "strided"),
    "kernelPointwiseApply2": (0, "strided"),
    "kernelPointwiseApply3": (0, "strided"),
}
_TABLE = Catalogue("""
index index_select: indexSelectSmallIndex indexSelectLargeIndex
index index_add: indexFuncSmallIndex indexFuncLargeIndex
index gather: vectorized_gather_kernel gather_kernel
index scatter_gather: _scatter_gather_elementwise_kernel
index index: index_elementwise_kernel index_put_with_sort_kernel take_put_kernel_impl
index embedding_backward bwd: embedding_backward_feature_kernel embedding_backward_kernel compute_grad_weight
index embedding_backward bwd: compute_grad_weight_bags sum_and_scatter krn_partials_per_segment
index embedding_backward bwd: krn_partial_segment_offset
index embedding_backward bwd: compute_num_of_partial_segments indexing_backward_kernel*
index embedding_bag: EmbeddingBag_updateOutputKernel* EmbeddingBag_accGradParametersKernel*
index nonzero: write_indices masked_scatter_size_check flag_kernel
index searchsorted: searchsorted_cuda_kernel bucketize*
index triu_indices: tril_indices_kernel triu_indices_kernel
index sparse_coalesce: coalesceValuesKernel
memory cat: CatArrayBatchedCopy*
norm layer_norm fwd: vectorized_layer_norm_kernel RowwiseMomentsCUDAKernel LayerNormForwardCUDAKernel
norm layer_norm bwd: layer_norm_grad_input_kernel* GammaBetaBackward* cuComputeGradGammaBeta
norm layer_norm bwd: cuComputePartGradGammaBeta
norm layer_norm bwd: cuComputeGradInput ComputeInternalGradientsCUDAKernel ComputeGradientFusedParamsCUDAKernel
norm group_norm fwd: ComputeFusedParamsCUDAKernel GroupNorm1dForward*
norm group_norm bwd: ComputeBackwardFusedParamsCUDAKernel Compute1dBackwardFusedParams* GroupNorm1dBackward*
norm batch_norm bwd: batch_norm_backward_* unrolled_batch_norm_backward*
norm batch_norm fwd: batch_norm_collect_statistics_* batch_norm_transform_input_* batch_norm_reduce_statistics_*
norm batch_norm fwd: batch_norm_update_stats* batch_norm_calc_* batch_norm_*
norm weight_norm: weight_norm_fwd_* weight_norm_bwd_* renorm_kernel
softmax softmax fwd: softmax_warp_forward cunn_SoftMaxForward* cunn_SpatialSoftMaxForward cunn_SoftMaxXEntropyForward
softmax softmax bwd: softmax_warp_backward cunn_SoftMaxBackward* cunn_SpatialSoftMaxBackward
softmax softmax bwd: cunn_SoftMaxXEntropyBackward
reduction reduce: reduce_kernel
reduction nll_loss fwd: nll_loss_forward_* cunn_ClassNLLCriterion_updateOutput_kernel
reduction nll_loss fwd: cunn_SpatialClassNLLCriterion_updateOutput*
index nll_loss bwd: nll_loss_backward_* cunn_ClassNLLCriterion_updateGradInput_kernel
reduction histogram: kernelHistogram1D
reduction norm: lpnorm_cleanup multi_tensor_norm_cleanup lpmax_cleanup
reduction segment_reduce: segment_reduce_forward_kernel segment_reduce_*
reduction cdist: cdist_kernel_cuda_impl pdist_kernel_cuda_impl
sort_scan topk: gatherTopK radixFindKthValues computeBlockwiseWithinKCounts computeBlockwiseKthCounts
sort_scan topk: computeDigitCumSum
sort_scan topk: gatherKthValue gatherMedian computeBlockDigitCounts compute_mode gatherDigit*
sort_scan sort: bitonicSortKVInPlace radixSortKVInPlace warpMergeSortKVInPlace sort_postprocess_kernel
sort_scan sort: fill_index_and_segment_kernel fill_reverse_indices_kernel fill_segment*
sort_scan scan: tensor_kernel_scan_innermost_dim tensor_kernel_scan_outer_dim tensor_kernel_scan_*
rng random: distribution_elementwise_grid_stride_kernel distribution_binary_elementwise_kernel distribution_nullary*
rng dropout: fused_dropout_kernel_vec fused_dropout_kernel
rng randperm: randperm_handle_duplicate_keys_kernel
rng multinomial: sampleMultinomialOnce sampleMultinomialWithReplacement sampleMultinomial* renormRowsL1
pooling max_pool fwd: max_pool3d_with_indices_single_out* max_pool_forward_* adaptivemaxpool max_unpooling*
pooling max_pool fwd: fractional_max_pool*out*
pooling max_pool bwd: max_pool_backward_* adaptivemaxgradinput atomicadaptivemaxgradinput
pooling max_pool bwd: max_pool3d_with_indices_backward*
pooling avg_pool fwd: avg_pool2d_out_cuda_frame* avg_pool3d_cuda_update_output* adaptive_average_pool*
pooling avg_pool bwd: avg_pool2d_backward_out_cuda_frame* adaptive_average_gradinput*
pooling avg_pool bwd: atomic_adaptive_average_gradinput*
conv depthwise_conv fwd cores: conv_depthwise2d_forward_kernel* conv_depthwise3d_cuda_kernel
conv depthwise_conv bwd cores: conv_depthwise2d_backward_kernel* conv_depthwise2d_grad_weight_kernel*
conv depthwise_conv bwd cores: conv_depthwise3d_cuda_backward_*
layout im2col: im2col_kernel col2im_kernel vol2col_kernel col2im_batched_kernel
layout pad: reflection_pad* replication_pad* constant_pad*
layout flip: flip_kernel kernel_pointwise_flip_apply2 roll_cuda_kernel
layout transpose: tensor_transpose_kernel
elementwise triu_tril: triu_tril_kernel
elementwise qkv_bias: transform_bias_rescale_qkv_kernel transform_bias_rescale_qkv_add_padding_kernel
elementwise rnn_cell: lstm_cell_forward lstm_cell_backward gru_cell_forward gru_cell_backward
elementwise amp: amp_non_finite_check_and_unscale*
other amp_update_scale: amp_update_scale_cuda_kernel
other upsample fwd: upsample_*
other grid_sample: grid_sampler_*
other spin: spin_kernel
other assert: _assert_async_cuda_kernel
other ctc_loss: ctc_loss_*
gemm int4_mm tensor: tinygemm_m16n8k16_chunk_kernel
gemm int8_mm: int8pack_mm_kernel
quant quantize: fake_quantize* ChooseQuantizationParamsKernelImpl MovingAverageMinMax*
""")
_FOREIGN = ("vllm", "sglang", "flashinfer", "fbgemm", "tensorrt", "cudnn", "cub::", "thrust", "transformer_engine")


def decode(name: NormalName) -> Draft | None:
    """Kernels of ``at::native`` and their bare identifiers."""
    base = name.base
    if any(mark in name.scope for mark in _FOREIGN):
        return None
    if base in _ELEMENTWISE:
        return _elementwise(name)
    if base == "reduce_kernel":
        return _reduce(name)
    entry = _TABLE.find(base)
    if entry is None and name.truncated and not name.arguments:
        entry = _cut(name)
    if entry is None:
        return None
    draft = Draft("aten", "aten")
    draft.token(base, entry.op.replace("_", " "))
    draft.kind(entry.kernel_class, entry.op, f"{base} of ATen", tensor_core=entry.tensor_core)
    draft.set("direction", entry.direction, base)
    _DETAILS.get(entry.op, _plain)(draft, name)
    return draft


def _cut(name: NormalName) -> CatalogueEntry | None:
    if "at::native" not in name.scope and "at::cuda" not in name.scope:
        return None
    if any(kernel.startswith(name.base) for kernel in _ELEMENTWISE) and len(name.base) > 10:
        return CatalogueEntry("elementwise", "elementwise")
    return _TABLE.complete(name.base)


_ALSO = {
    "clamp": "; ReLU is one with a minimum of 0",
    "clamp_min": "; ReLU is one with a minimum of 0",
    "binary": " with a number as one operand, such as the scale of attention scores; which op is in its own arguments",
}
"""What users call such an op."""


def _elementwise(name: NormalName) -> Draft:
    position, shape = _ELEMENTWISE[name.base]
    draft = Draft("aten", "aten")
    draft.token(name.base, f"a few elements per thread, {shape}")
    parts = split_arguments(name.arguments)
    draft.kind("elementwise", "elementwise", f"{name.base} of ATen")
    if name.base.startswith("vectorized") and parts and is_integer(parts[0]):
        draft.set("vector_width", int(parts[0]), "first template argument: elements per access")
        draft.token(parts[0], f"{parts[0]} elements per access")
    # Names that someone shortened by hand have the functor alone.
    at = position if len(parts) > position else 0 if len(parts) == 1 and not is_integer(parts[0]) else None
    functor = read_functor(parts[at], name.truncated) if at is not None else None
    if functor is None:
        if name.truncated:
            _partial(draft, name.arguments.rsplit("::", 1)[-1].rsplit("<", 1)[-1])
        return draft
    draft.set("functor", functor.name, "the functor in the template arguments")
    draft.kind(functor.kernel_class, functor.op, f"functor {functor.name}")
    draft.token(functor.name, f"the op: {functor.op}{_ALSO.get(functor.op, '')}")
    if functor.op.endswith("_backward"):
        draft.set("direction", "bwd", functor.name)
    cast = "LoadWithCast" in name.arguments or "StoreWithCast" in name.arguments or "gpu_kernel_impl<" in name.arguments
    if name.base == "unrolled_elementwise_kernel" and name.truncated:
        cast = True
    if cast:
        draft.token(
            "LoadWithCast / gpu_kernel_impl", "types are converted at run time: not all of them are in the name"
        )
        compute = functor.a or functor.out
        draft.types("type that the functor computes in; the tensors are cast at run time", acc=compute)
    else:
        draft.types(f"types of {functor.name}", a=functor.a, b=functor.b, out=functor.out)
    return draft


def _partial(draft: Draft, start: str) -> None:
    """A functor truncated by the profiler: accepted only if its start matches one op."""
    if start.startswith("direct_cop"):
        draft.kind("memory", "copy", f"functor starts with {start}")
    elif start.startswith("FillFunct"):
        draft.kind("memory", "fill", f"functor starts with {start}")


def _warp_rows(log_elements: int) -> str:
    elements = 1 << log_elements
    own = f"each thread reduces {elements // WARP} of them, then " if elements > WARP else ""
    steps = min(log_elements, WARP.bit_length() - 1)
    return f"rows of up to {elements} elements (log2), one warp each: {own}{steps} warp shuffles, no shared memory"


def _reduce(name: NormalName) -> Draft:
    draft = Draft("aten", "aten")
    draft.token("reduce_kernel", "reduces one or more dimensions")
    draft.kind("reduction", "reduce", "reduce_kernel of ATen")
    parts = split_arguments(inside(name.arguments, "ReduceOp<") or "")
    if len(parts) < 2:
        return draft
    operation = parts[1]
    identifier = head(operation)
    wrapped = split_arguments(inside(operation, "func_wrapper_t<") or "") if identifier == "func_wrapper_t" else []
    if len(wrapped) > 1:
        identifier = head(wrapped[1])
    op = op_name(identifier)
    draft.set("functor", identifier, "the reduction's operation")
    draft.set("op", op, f"operation {identifier}")
    draft.token(identifier, f"the reduction: {draft.values['op']}")
    out = dtype_of(parts[3]) if len(parts) > 3 else None
    accumulated = dtype_of(wrapped[0]) if wrapped else None
    inner = split_arguments(inside(operation, "Ops<") or inside(operation, "sum_functor<") or "")
    if len(inner) > 1 and accumulated is None:
        accumulated = dtype_of(inner[1])
    if identifier == "sum_functor":
        summed = split_arguments(inside(operation, "sum_functor<") or "")
        accumulated = dtype_of(summed[1]) if len(summed) > 1 else None
    if not (name.truncated and len(parts) < 4):
        draft.types(
            "types of ReduceOp: input, operation, index, output", a=dtype_of(parts[0]), out=out, acc=accumulated
        )
    return draft


def _plain(draft: Draft, name: NormalName) -> None:
    parts = split_arguments(name.arguments)
    kinds = [dtype_of(part) for part in parts]
    first = next((kind for kind in kinds if kind in ("f16", "bf16", "f32", "f64", "cf32", "cf64", "e4m3")), None)
    if first is not None and kinds.index(first) <= 5:
        draft.types("first floating-point type argument", a=first)


def _softmax(draft: Draft, name: NormalName) -> None:
    parts = split_arguments(name.arguments)
    if name.base.startswith("softmax_warp") and len(parts) >= 4:
        draft.types(
            "input, output and accumulator", a=dtype_of(parts[0]), out=dtype_of(parts[1]), acc=dtype_of(parts[2])
        )
        if is_integer(parts[3]) and int(parts[3]) < 20:
            draft.token(parts[3], _warp_rows(int(parts[3])))
        if len(parts) > 4 and parts[4] == "true":
            draft.set("op", "log_softmax", "fifth argument: is_log_softmax")
    elif name.base.startswith("softmax_warp"):
        draft.token(name.base, "softmax of short rows, one warp each: it reduces a row by shuffles, in registers")
    elif name.base.startswith("cunn_SoftMax") and len(parts) >= 4:
        types = [kind for part in parts if (kind := dtype_of(part)) is not None]
        if len(types) >= 3:
            draft.types("input, accumulator and output", a=types[0], acc=types[1], out=types[2])
        if "LogSoftMax" in name.arguments:
            draft.set("op", "log_softmax", "the epilogue is LogSoftMax")


def _cat(draft: Draft, name: NormalName) -> None:
    parts = split_arguments(name.arguments)
    if parts and not parts[0].endswith(">"):
        draft.types("element type", a=dtype_of(parts[0]), out=dtype_of(parts[0]))
    elif parts and "OpaqueType<" in parts[0]:
        draft.token(head(parts[0]), f"{inside(parts[0], 'OpaqueType<')} bytes per element; the type is hidden")


def _random(draft: Draft, name: NormalName) -> None:
    for mark in ("normal", "uniform", "exponential", "bernoulli", "random_from_to", "random", "cauchy", "geometric"):
        if f"{mark}_" in name.arguments or f"{mark}<" in name.arguments:
            draft.set("op", mark, f"{mark} in the functor")
            draft.token(mark, "the distribution")
            return


def _layer_norm(draft: Draft, name: NormalName) -> None:
    _plain(draft, name)
    parts = split_arguments(name.arguments)
    if len(parts) > 1 and dtype_of(parts[0]) and dtype_of(parts[1]):
        draft.types("element type and accumulator", acc=dtype_of(parts[1]))
    if (
        len(parts) == 3
        and parts[2] == "true"
        and name.base in ("vectorized_layer_norm_kernel", "layer_norm_grad_input_kernel")
    ):
        draft.set("op", "rms_norm", "third argument: rms_norm")


def _sort(draft: Draft, name: NormalName) -> None:
    types = [kind for part in split_arguments(name.arguments) if (kind := dtype_of(part)) is not None]
    draft.types("first type argument: the keys", a=types[0] if types else None)


def _quiet(draft: Draft, name: NormalName) -> None:
    """Kernels whose type arguments are indices or byte counts."""


_DETAILS = {
    "softmax": _softmax,
    "cat": _cat,
    "random": _random,
    "layer_norm": _layer_norm,
    "sort": _sort,
    "topk": _sort,
    "scan": _sort,
    "gather": _quiet,
    "scatter_gather": _quiet,
    "index": _quiet,
    "nonzero": _quiet,
}
