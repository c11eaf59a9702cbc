"""Kernels of serving and training libraries, by identifier: vLLM, SGLang, FlashInfer, TensorRT-LLM,
TransformerEngine, apex, FBGEMM, xformers, torchao, torchvision, Triton kernels in common use.

The identifier decides, never the namespace alone: SGLang's sit in an anonymous namespace.
"""

from __future__ import annotations

import re

from warpline.kernels.catalogue import Catalogue, CatalogueEntry
from warpline.kernels.draft import Draft
from warpline.kernels.grammar import inside
from warpline.kernels.inductor import SPECIALISATION
from warpline.kernels.normalise import NormalName, split_arguments
from warpline.kernels.types import dtype_of

_TABLE = Catalogue("""
norm rms_norm fwd: rms_norm_kernel fused_add_rms_norm_kernel RMSNormKernel FusedAddRMSNormKernel GemmaRMSNormKernel
norm rms_norm fwd: rmsnorm_kernel rmsnorm_fwd_* cuApplyRMSNorm*
norm rms_norm fwd: rms_norm_static_fp8_quant_kernel fused_add_rms_norm_static_fp8_quant_kernel
norm rms_norm fwd: add_rmsnorm_quant_kernel
norm rms_norm fwd: rms_norm_dynamic_per_token_quant_kernel generalRmsNorm fusedQKNormRopeKernel
norm rms_norm fwd: fused_qknorm_warp
norm rms_norm fwd: RMSNormQuantKernel FusedAddRMSNormQuantKernel _rms_norm_forward_kernel _rms_norm_kernel
norm rms_norm bwd: _rms_norm_backward_kernel _rms_norm_bwd_kernel* rmsnorm_bwd_*
norm layer_norm fwd: ln_fwd_kernel ln_fwd_tuned_kernel ln_fwd_general_kernel layernorm_fwd_*
norm layer_norm fwd: cuApplyLayerNorm* generalLayerNorm
norm layer_norm bwd: ln_bwd_kernel ln_bwd_finalize_kernel ln_bwd_tuned_kernel ln_bwd_general_kernel
norm layer_norm bwd: layernorm_bwd_*
norm layer_norm fwd: _layer_norm_fwd_fused _layer_norm_fwd_1pass_kernel layer_norm_fwd_kernel _layer_norm_fwd_kernel
norm layer_norm bwd: _layer_norm_bwd_dx_fused _layer_norm_bwd_dwdb _layer_norm_bwd_kernel layer_norm_bwd_kernel*
norm group_norm: groupnorm_kernel_dispatch_* groupNormNHWC* GroupNorm*
elementwise rope: rotary_embedding_kernel batched_rotary_embedding_kernel fused_rope_kernel fused_rope_forward*
elementwise rope: fused_rope_backward*
elementwise rope: rotary_kernel BatchQKApplyRotary* fused_rope_store_kernel _rope_kernel rope_kernel* _triton_rope*
elementwise rope: applyBiasRopeUpdateKVCache* _fused_qk_rope_* _rotary_kernel mla_rope* fused_qk_rope*
elementwise activation fwd: act_and_mul_kernel activation_kernel silu_and_mul_kernel swigluoai_and_mul_kernel
elementwise activation fwd: doGatedActivationKernel
elementwise activation: gated_act_kernel dgated_act_kernel unary_kernel unary_grad_kernel _swiglu_* _geglu_*
elementwise activation: swiglu_forward* swiglu_backward
elementwise activation: swiglu_forward_backward* swiglu_weight_backward* _silu_mul_* silu_mul* silu_and_mul*
elementwise activation: gelu_and_mul* cast_fp8_gated*
quant activation_quant: act_and_mul_quant_kernel silu_mul_fp8_quant* silu_and_mul_*quant*
quant activation_quant: swiglu_and_per_channel_cast_and_transpose
quant activation_quant: swiglu_forward_with_weight_and_per_token_cast* _silu_mul_fp8_quant*
quant activation_quant: swiglu_forward_with_weight_and_per*
quant quantize: scaled_fp8_quant_kernel* dynamic_per_token_scaled_fp8_quant_kernel* static_scaled_int8_quant_kernel
quant quantize: segmented_max_reduction
quant quantize: dynamic_scaled_int8_quant_kernel per_token_group_quant_8bit_kernel per_token_quant_fp8_*
quant quantize: _per_token_group_quant_*
quant quantize: quantize_with_block_size cvt_fp16_to_fp4 nvfp4_quant* quantize_mxfp8* quantize_nvfp4*
quant quantize: cast_transpose* sage_quant_kernel
quant quantize: cast_fp8_1D* cast_mxfp8* per_token_cast_* per_channel_cast_* per_block_cast_* cast_back_impl
quant quantize: to_mxfp8_* _float_to_*
quant quantize: _FP8rowwise_to_float_cuda_kernel _compute_FP8_quantize_cuda_kernel _get_FP8_qparam_cuda_kernel
quant quantize: block_scaled_cast*
quant quantize: quantize_fp8_* _fused8bitrowwise_to_float_cuda_kernel _float_to_fused* cast_dbias*
quant quantize: invokeQuantization perTokenQuantization
moe moe_routing cores: moe_align_block_size_kernel moe_align_block_size_* count_and_sort_expert_tokens_kernel
moe moe_routing cores: topkGating* topkGatingSoftmax*
moe moe_routing cores: topk_gating_softmax_kernel grouped_topk_fused* moeTopK moeSoftmax moe_sum_kernel
moe moe_routing cores: moe_sum_reduce* grouped_topk_kernel
moe moe_routing cores: routingIndices* routingInitExpertCounts routingMain* finalizeKernel activationKernel
moe moe_routing cores: permuteKernel finalizeMoeRouting*
moe moe_routing cores: expandInputRowsKernel* finalizeKernelVecLoad MoeSortingKernel moe_fused_gate_*
moe moe_routing cores: topkGatingSigmoid* clean_and_count_expert
moe moe_routing cores: compute_expert_* computeExpert* blockExpertPrefixSumKernel mergeExpertPrefixSumKernel
moe moe_routing cores: globalExpertPrefixSumKernel
moe moe_routing cores: expand_to_fused* ep_scatter* ep_gather* _fwd_kernel_ep_* compute_problem_sizes*
moe moe_routing cores: compute_arg_sorts moe_permute* moe_unpermute*
moe moe_routing cores: _permute_kernel _unpermute_kernel _make_row_id_map_* permute_with_mask* topksoftmax*
moe moe_routing cores: biased_grouped_topk*
moe moe_routing cores: _combined_routing_compute _combined_routing_memset _topk_forward _routing_compute_*
moe moe_routing cores: _sum_bitmatrix_rows
moe fused_moe tensor: fused_moe_kernel fused_moe_kernel_gptq_awq fused_moe_wna16* moe_mmk _fused_moe_kernel*
moe fused_moe tensor: kernel_moe_gemm kernel_moe_gemm_2lds
gemm matmul tensor: _matmul_ogs* _p_matmul_ogs* matmul_ogs_*
moe finalize_matmul cores: _finalize_matmul_*
gemm block_scaled_mm tensor: _w8a8_block_fp8_matmul* _w8a8_triton_block_scaled_mm* _w8a8_block_int8_matmul*
index kv_cache_alloc: alloc_decode_kernel alloc_extend_kernel assign_req_to_token_pool assign_extend_cache_locs
index kv_cache_alloc: assign_draft_cache_locs*
index kv_cache_alloc: write_req_to_token_pool_triton get_last_loc_kernel create_flashinfer_kv_indices_triton
index kv_cache_alloc: compute_position_kernel
index kv_cache_alloc: create_flashmla_kv_indices* fill_bonus_tokens resolve_future_token_ids_kernel
index kv_cache_alloc: create_extend_after_decode*
memory kv_cache_write: reshape_and_cache_kernel reshape_and_cache_flash_kernel concat_and_cache_mla_kernel
memory kv_cache_write: store_kvcache copy_blocks_kernel
memory kv_cache_write: reshape_and_cache_* AppendPagedKVCacheKernel AppendPagedKVCacheMlaKernel swap_blocks*
memory kv_cache_write: transfer_kernel* gather_cache
memory kv_cache_write: gather_and_maybe_dequant_cache* concat_and_cache_* set_mla_kv_buffer_kernel
memory kv_cache_write: indexer_k_quant_and_cache*
sort_scan sampling: TopKTopPSamplingFromProbKernel TopPSamplingFromProbKernel TopKSamplingFromProbKernel
sort_scan sampling: TopKRenormProbKernel
sort_scan topk: sampled_topk_kernel topKPerRow* TopKMaskLogitsKernel RadixTopKKernel* topk_sum_and_topk_idx
sort_scan topk: fast_topk* TopPRenormProbKernel
attention attention tensor: _fwd_kernel _attn_fwd _attn_bwd attn_fwd _bwd_kernel bwd_kernel_dk_dv bwd_kernel_dq
attention attention tensor: bwd_kernel_fuse attn_bwd*
attention attention tensor: _fwd_kernel_aligned _fwd_kernel_stage1 _fwd_grouped_kernel_stage1
attention attention tensor: kernel_unified_attention_2d kernel_unified_attention_3d
attention attention tensor: kernel_paged_attention_2d _flash_attn_fwd* _flash_attn_bwd* sage_fwd _attn_bwd_dkdv
attention attention tensor: _attn_bwd_dq _bwd_kernel_dkdv
attention attention tensor: _bwd_kernel_dq _fwd_kernel_with_sink* _extend_attention* attention_fwd*
attention attention tensor: _fp8_paged_mqa_logits_kernel
attention attention_combine cores: _fwd_kernel_stage2 reduce_segments _attn_bwd_preprocess _bwd_preprocess*
attention attention_combine cores: _bwd_preprocess_do_o_dot
softmax masked_softmax fwd: scaled_masked_softmax_warp_forward scaled_upper_triang_masked_softmax_warp_forward
softmax masked_softmax fwd: scaled_softmax_warp_forward
softmax masked_softmax fwd: scaled_aligned_causal_masked_softmax_warp_forward softmax_kernel _softmax_kernel
softmax masked_softmax bwd: scaled_masked_softmax_warp_backward scaled_upper_triang_masked_softmax_warp_backward
softmax masked_softmax bwd: scaled_softmax_warp_backward
softmax cross_entropy: liger_cross_entropy_kernel cross_entropy_fwd_kernel cross_entropy_bwd_kernel _cross_entropy_*
other state_space either: _chunk_scan_* _chunk_state_* _state_passing_* selective_scan_* _selective_scan_*
other state_space either: chunk_gated_delta_rule_* fused_recurrent_*
conv causal_conv1d cores: causal_conv1d_fwd_kernel causal_conv1d_bwd_kernel causal_conv1d_update_kernel
conv causal_conv1d cores: causal_conv1d_channellast_*
conv causal_conv1d: _causal_conv1d_fwd_kernel _causal_conv1d_update_kernel
index embedding_bag fwd: split_embedding_codegen_forward_* dense_embedding_codegen_forward_*
index embedding_bag fwd: split_embedding_nobag_codegen_forward_*
index embedding_bag bwd: split_embedding_backward_codegen_* split_embedding_codegen_grad_*
index embedding_bag bwd: split_embedding_nobag_backward_codegen_*
index embedding_bag: bounds_check_indices_kernel* linearize_index_kernel* _offsets_range_cuda_kernel
index embedding_bag: _block_bucketize_sparse_features_*
index sparse_permute: permute_2D_data_kernel* permute_2D_lengths_kernel permute_1D_* permute_indices_weights_kernel
index sparse_permute: permute_pooled_embs_kernel
index sparse_permute: int_nbit_split_embedding_codegen_forward* linearize_cache_indices_kernel lru_cache_*
index sparse_permute: lfu_cache_* reorder_batched_ad_*
memory recat: recat_copy_async_kernel
index jagged: jagged_* dense_to_jagged* jagged_dense_*
gemm spmm cores: spmm_kernel csrmm_* csrmv_* spmm_*
layout transpose: batched_transpose transpose_kernel transpose_fp8* swizzle_* mx_blocked_layout_*
layout transpose: triton_scale_swizzle* transpose_kernel_* mx_block_rearrange*
layout reformat: copyVectorizedKernel permutationKernelPLC3 permutationKernel*
elementwise elementwise: elementWiseKernel* generatedNativePointwise vectorized_pointwise* vector_add vectorAdd
elementwise elementwise: add_kernel
other nms: nms_kernel_impl
pooling roi: roi_align_forward_kernel_impl roi_align_backward_kernel_impl roi_pool_forward_kernel_impl
layout deformable_im2col: deformable_im2col_kernel
other speculative: VerifyTreeGreedy build_tree_efficient TreeSpeculativeSampling* build_tree_kernel*
rng random: FillPhiloxRandomKernelLaunch generate_seed_pseudo gen_sequenced
gemm sparse_24 tensor: sparse24_*
gemm skinny_gemm: wvSplitK* LLGemm1_kernel
elementwise eigen: EigenMetaKernel
reduction eigen: FullReductionKernel InnerReductionKernel* OuterReductionKernel* ReductionInitKernel*
layout tensorflow_shuffle: ShuffleInTensor3Simple SwapDimension1And2InTensor3*
conv conv: gridwise_convolution_*
gemm lora tensor: _lora_expand_kernel* _lora_shrink_kernel* _sgemm_lora_* _qkv_lora_b_kernel _gate_up_lora_b_kernel
gemm lora cores: bgmv_* sgmv_*
moe moe_routing cores: topk_softmax* topk_sigmoid* fused_topk_* _topk_softmax*
other state_space either: fused_sigmoid_gating_delta_rule* chunk_kda_* chunk_gla_* chunk_fwd_kernel_o kda_gate_* gdn_*
other state_space either: fused_gdn_*
other state_space either: selective_state_update* checkpointing_ssu* recompute_w_u_fwd* _recompute_w_u_fwd*
softmax cross_entropy: cross_entropy_kernel
attention attention_combine cores: merge_states_kernel MergeStateInPlaceKernel merge_state_in_place_kernel
attention attention tensor: _fwd_grouped_kernel_stage1* _fwd_kernel_alibi _fwd_kernel_unified
attention attention tensor: kernel_unified_attention*
elementwise logits_mask: apply_token_bitmask_inplace_kernel _apply_grammar_bitmask_kernel
index sparse_attention_index: convert_vertical_slash_indexes_kernel*
""")
_LIBRARIES = (
    ("vllm::", "vllm"),
    ("sglang::", "sglang"),
    ("sgl_hip::", "sglang"),
    ("flashinfer::", "flashinfer"),
    ("tensorrt_llm::", "tensorrt-llm"),
    ("moe::dev::", "tensorrt-llm"),
    ("transformer_engine::", "transformer-engine"),
    ("fbgemm_gpu::", "fbgemm"),
    ("split_embedding", "fbgemm"),
    ("layer_norm::", "flash-attn"),
    ("vision::", "torchvision"),
    ("CUTENSOR_NAMESPACE::", "cutensor"),
    ("genericReformat::", "tensorrt"),
    ("tensorflow::", "tensorflow"),
    ("aiter::", "aiter"),
)
_FLOATS = ("f16", "bf16", "f32", "f64", "e4m3", "e5m2")
_INDICES = ("index", "memory", "moe", "layout", "other", "sort_scan")
_MATMUL_OGS = re.compile(
    r"_p?_?matmul_ogs_[NT]{3}_((?:mx)?+[a-wyz0-9]{1,12}+)x((?:mx)?+[a-wyz0-9]{1,12}+)x((?:mx)?+[a-wyz0-9]{1,12}+)_"
    r"([0-9]{1,4}+x[0-9]{1,4}+x[0-9]{1,4}+)x([0-9]{1,4}+)"
)
"""Three data types (bf16, mxfp4), a tile and split-K."""


def decode(name: NormalName) -> Draft | None:
    """Kernels known by their identifier, whatever their namespace."""
    base = SPECIALISATION.sub("", name.base) if name.base[-1:] in "dce" else name.base
    entry = _TABLE.find(base)
    if entry is None and name.truncated and not name.arguments and len(base) > 12:
        entry = _TABLE.complete(base)
    if entry is None:
        return None
    if entry.op == "activation" and "quant" in base:
        entry = CatalogueEntry("quant", "activation_quant")
    draft = Draft("known identifier", _library(name))
    draft.token(f"{name.scope}{base}", entry.op.replace("_", " "))
    draft.kind(entry.kernel_class, entry.op, f"{base}: {entry.op.replace('_', ' ')}", tensor_core=entry.tensor_core)
    if entry.either:
        draft.leave_units_open()
    draft.set("direction", entry.direction, base)
    if "rms" in base.lower() and entry.op == "layer_norm":
        draft.set("op", "rms_norm", base)
    _types(draft, name, entry.kernel_class)
    return draft


def _library(name: NormalName) -> str | None:
    text = name.text
    for mark, library in _LIBRARIES:
        if text.startswith(mark) or mark in name.scope:
            return library
    return None


def _types(draft: Draft, name: NormalName, kernel_class: str) -> None:
    traits = inside(name.arguments, "Kernel_traits<") or inside(name.arguments, "Kernel_traits_finalize<")
    if traits is not None:
        _traits(draft, traits)
        return
    if (found := _MATMUL_OGS.match(name.base)) is not None:
        out, first, second, tile, split = found.groups()
        draft.types("types of Y, X and W", out=dtype_of(out), a=dtype_of(first), b=dtype_of(second))
        draft.set("tile", tile, "block M x N x K")
        draft.set("split_k", int(split) > 1, "the last number is split-K")
        return
    parts = split_arguments(inside(name.arguments, "KernelParams<") or name.arguments)
    kinds = [kind for part in parts if (kind := dtype_of(part)) is not None]
    floats = [kind for kind in kinds if kind in _FLOATS]
    if not floats or (kernel_class in _INDICES and kinds and kinds[0] not in _FLOATS):
        return
    draft.types("first floating-point type argument", a=floats[0])
    if kernel_class == "quant" and len(floats) > 1 and floats[1] != "f32":
        draft.types("second floating-point type argument", out=floats[1])


def _traits(draft: Draft, traits: str) -> None:
    """``Kernel_traits<weight, input, [residual,] output, compute, unsigned int, …>``."""
    kinds: list[str] = []
    for part in split_arguments(traits):
        kind = dtype_of(part)
        if kind in ("u32", "s32"):
            break
        if kind is not None:
            kinds.append(kind)
    if len(kinds) >= 4:
        draft.types("types of the traits: weight, input, output, compute", a=kinds[1], out=kinds[-2], acc=kinds[-1])
