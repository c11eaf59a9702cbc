"""One grammar at a time: names from the wild and from the libraries' sources, with what they prove."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from warpline.kernels import identify
from warpline.kernels.collectives import MAY_COMMUNICATE

ROWS = [json.loads(line) for line in (Path(__file__).parent / "grammar.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("row", ROWS)
def test_class_and_tensor_cores(row: dict[str, Any]) -> None:
    identity = identify(row["name"])
    assert identity.kernel_class == row["class"], dict(identity.reasons)
    assert identity.tensor_core is row["tensor_core"], dict(identity.reasons)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4",
            {
                "a": "tf32",
                "out": "f32",
                "acc": "f32",
                "tile": "128x128x32",
                "stages": 3,
                "layout": "nn",
                "alignment": 4,
            },
        ),
        (
            "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x128x64_MI16x16x1_SN_GSU0_ISA950_SK3",
            {
                "a": "bf16",
                "out": "bf16",
                "acc": "f32",
                "tile": "256x128x64",
                "layout": "tn",
                "arch": "gfx950",
                "split_k": True,
                "tensor_core": True,
            },
        ),
        (
            "Cijk_Ailk_Bjlk_F8B8HS_BH_Bias_HA_S_SAB_SAV_UserArgs_MT64x64x32_MI16x16x1_SN",
            {"kernel_class": "gemm", "layout": "nt", "a": "e4m3", "b": "e5m2", "out": "f16", "acc": "f32"},
        ),
        ("Cijk_Ailk_Bljk_F8NH_HHS_BH_MT64x64x32_MI16x16x1_SN", {"a": "e4m3", "b": "f16", "out": "f16", "acc": "f32"}),
        ("Cijk_Ailk_Bljk_I8II_BH_MT64x64x64_MI32x32x8x1_SN_GSU4", {"a": "s8", "acc": "s32", "instruction": "32x32x8"}),
        ("Cijk_Ailk_Bjlk_S_MX_B_MT64x64x32_MI16x16x1_SN", {"a": "tf32", "out": "f32", "acc": "f32"}),
        ("Cijk_Ailk_Bljk_SB_MT64x64x16_SE_K1_TT4_4_WG16_16_1", {"a": "f32", "tensor_core": False, "split_k": None}),
        ("Cijk_Alik_Bljk_BBS_BH_MT192x320x64", {"tensor_core": None, "tile": "192x320x64"}),
        ("Cijk_SB_BiasS_HAS_ScaleAlphaVec_PostGSU16_VW4", {"kernel_class": "reduction", "op": "split_k_reduce"}),
        ("Cijk_S_GA", {"kernel_class": "elementwise", "op": "scale_by_beta"}),
        (
            "igemm_wrw_gtcx3_nhwc_fp16_bx4_ex1_bt64x128x32_wt32x32x8",
            {"op": "conv_wgrad", "a": "f16", "tile": "64x128x32", "tensor_core": True, "direction": "bwd"},
        ),
        (
            "hgemm_bf16_16x64x128x5_SPK8_W1x2x1_BLDS1_TN_AS1_0",
            {
                "library": "aiter",
                "a": "bf16",
                "tile": "16x64x128",
                "layout": "tn",
                "split_k": True,
                "tensor_core": True,
            },
        ),
        (
            "mfma_moe1_silu_mul_afp8_wfp4_fp8_t64x256x256_pm1_async_v32",
            {"kernel_class": "moe", "a": "e4m3", "b": "e2m1", "out": "e4m3", "tile": "64x256x256", "tensor_core": True},
        ),
        (
            "mfma_moe2_afp4_wfp4_bf16_cshuffle_t32x256x256_persist",
            {"kernel_class": "moe", "a": "e2m1", "b": "e2m1", "out": "bf16", "tile": "32x256x256"},
        ),
        ("aiter::fmha_fwd_hd256_fp8_causal_group_gfx950", {"kernel_class": "attention", "a": "e4m3", "head_dim": 256}),
        (
            "void ck_tile::kentry<ck_tile::gfx950_t, 2, ck_tile::FmhaFwdKernel<ck_tile::Pipeline<"
            "ck_tile::BlockFmhaPipelineProblem<std::bfloat16_t, std::bfloat16_t, float> >, int> >(int)",
            {"kernel_class": "attention", "a": "bf16", "b": "bf16", "tensor_core": True},
        ),
        (
            "void ck_tile::kentry<ck_tile::gfx950_t, 1, ck_tile::Rmsnorm2dFwd<ck_tile::Pipeline<"
            "ck_tile::Rmsnorm2dFwdPipelineProblem<std::bfloat16_t, std::bfloat16_t, float> > > >(int)",
            {"kernel_class": "norm", "a": "bf16"},
        ),
        ("rccl_main_kernel(ncclDevComm*, unsigned long, ncclWork*)", {"kernel_class": "comm", "library": "rccl"}),
        ("void mul_mat_vec_dq_q6_K<32, 1>(void const*, float const*, float*, int, int)", {"kernel_class": "gemm"}),
        ("_sigmoid_bias_topk_kernel", {"kernel_class": "sort_scan"}),
        ("batched_matrix_multiplication_16x16(float const*)", {"kernel_class": "gemm"}),
        ("_rms_normalize_kernel", {"kernel_class": "norm"}),
        ("_paged_decode_split_kernel", {"kernel_class": "attention"}),
        ("_paged_decode_indices_kernel", {"kernel_class": "index"}),
        (
            "igemm_fwd_gtcx_cnhwc_fp16_ex0_bt256x128x32_wt32x32x8",
            {"op": "conv_fprop", "layout": "cnhwc", "a": "f16", "tile": "256x128x32"},
        ),
        ("igemm_fwd_gtcx2_nhwc", {"op": "conv_fprop", "tensor_core": True, "a": None}),
        ("T5LayernormFwdContiguous", {"kernel_class": "norm", "op": "layer_norm", "library": "miopen"}),
        (
            "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm_xdl_cshuffle_v3<ck::tensor_layout::gemm::RowMajor, "
            "ck::tensor_layout::gemm::ColumnMajor, ck::tensor_layout::gemm::RowMajor, unsigned short, unsigned short, "
            "float, unsigned short, unsigned short, ck::tensor_operation::element_wise::PassThrough, "
            "ck::tensor_operation::element_wise::PassThrough, ck::tensor_operation::element_wise::PassThrough, "
            "(ck::tensor_operation::device::GemmSpecialization)0, 256, 128, 64, 32, 8, 8>, true>(int)",
            {"a": "bf16", "b": "bf16", "acc": "f32", "tile": "128x64x32", "layout": "tn", "tensor_core": True},
        ),
        (
            "void ck::tensor_operation::device::kernel_grouped_conv_bwd_weight_xdl_cshuffle_v3<ck::X<int> >(int)",
            {"op": "conv_wgrad", "direction": "bwd", "tensor_core": True, "layout": None},
        ),
        ("void ck::kernel_gemm_dl_multiple_d<ck::X<int> >(int)", {"kernel_class": "gemm", "tensor_core": False}),
        (
            "void ck_tile::kentry<1, ck_tile::GroupedGemmKernel<ck_tile::GemmSpatiallyLocalTilePartitioner<"
            "ck_tile::TileGemmShape<ck_tile::sequence<256, 128, 64>, int> >, ck_tile::GemmPipelineAgBgCrCompV3<"
            "ck_tile::UniversalGemmPipelineProblem<__bf16, __bf16, float, int> > > >(int)",
            {"kernel_class": "gemm", "a": "bf16", "acc": "f32", "tile": "256x128x64", "tensor_core": True},
        ),
        (
            "_ZN5aiter50fmoe_bf16_pertokenFp8_g1u1_vs_tkw1_silu_1tg_32x256E",
            {
                "kernel_class": "moe",
                "op": "fused_moe",
                "a": "e4m3",
                "out": "bf16",
                "tile": "32x256",
                "library": "aiter",
            },
        ),
        (
            "_ZN5aiter49bf16gemm_fp32bf16_tn_128x64_bshuffle_splitk_cleanE",
            {"kernel_class": "gemm", "a": "bf16", "layout": "tn", "tile": "128x64", "split_k": True},
        ),
        ("_ZN5aiter42PA_A16W8_BLK1024_1TG_4W_32mx1_64nx4_MTP_PSE", {"op": "paged_attention", "tensor_core": True}),
        (
            "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn",
            {"a": "f16", "out": "f16", "acc": "f32", "tile": "128x64x64", "stages": 4, "instruction": "16x8x16"},
        ),
        ("ampere_s16816gemm_fp16_128x128_ldg8_stages_32x5_nt", {"a": "f16", "out": "f32", "layout": "nt"}),
        (
            "volta_scudnn_128x64_stridedB_splitK_interior_nn_v1",
            {"op": "conv_wgrad", "direction": "bwd", "split_k": True},
        ),
        ("volta_scudnn_128x128_stridedB_medium_nn_v1", {"op": "conv_dgrad", "direction": "bwd"}),
        (
            "sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x64x64_stage4_warpsize2x2x1_tensor16x8x32_algo2_"
            "execute_kernel__5x_cublas",
            {"a": "e4m3", "out": "bf16", "acc": "f32", "tile": "128x64x64", "stages": 4, "arch": "sm89"},
        ),
        (
            "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize32x32x64_stage3_warpsize2x1x2_tensor16x8x8",
            {"a": "tf32", "out": "f32", "layout": "nn_n"},
        ),
        (
            "nvjet_sm100_oohsh_128x256_256x5_2x2_2cta_h_bz_Avec16UE4M3_Bvec16UE4M3_TNT",
            {"a": "e2m1", "out": "f16", "acc": "f32", "tile": "128x256x256", "stages": 5, "cluster": "2x2"},
        ),
        (
            "nvjet_sm121_tst_mma_192x144x64_2_48x72x64_tmaAB_alignCD4_bz_splitK_TNNN",
            {"tile": "192x144x64", "stages": 2, "layout": "TNNN", "alignment": 4, "split_k": True, "arch": "sm121"},
        ),
        (
            "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_Ab32_Bb32_t128x16x256u2_s3_et128x16_m256x16x32_c2x1x1_rM_TN_transOut_sm100f",
            {
                "a": "e2m1",
                "b": "e4m3",
                "out": "bf16",
                "tile": "128x16x256",
                "stages": 3,
                "arch": "sm100",
                "layout": "TN",
            },
        ),
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            {"op": "all_reduce", "a": "bf16"},
        ),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t", {"op": "all_gather", "a": None}),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", {"op": "all_reduce", "a": "f32"}),
        (
            "triton_red_fused__to_copy_embedding_rms_norm_0",
            {"fused_ops": ("_to_copy", "embedding", "rms_norm"), "kernel_class": "norm"},
        ),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::Half>, "
            "std::array<char*, 3ul> >(int)",
            {"op": "add", "a": "f16", "b": "f16", "out": "f16", "vector_width": 4},
        ),
        (
            "void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>, 4, "
            "TrivialOffsetCalculator<2, unsigned int>, TrivialOffsetCalculator<1, unsigned int>, "
            "at::native::memory::LoadWithCast<2>, at::native::memory::StoreWithCast<1> >(int)",
            {"op": "add", "a": None, "out": None, "acc": "f32"},
        ),
    ],
)
def test_fields(name: str, expected: dict[str, Any]) -> None:
    identity = identify(name)
    for key, value in expected.items():
        found = getattr(identity.dtype, key) if key in ("a", "b", "out", "acc") else getattr(identity, key)
        assert found == value, (key, found)


def test_the_seeds_example_is_explained_with_the_errata_right() -> None:
    identity = identify("cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4")
    meaning = {token.text: token.meaning for token in identity.tokens}
    assert "TF32" in meaning["s1688gemm"]
    assert "16x8x8" in meaning["s1688gemm"]
    assert meaning["tensorop"] == "tensor cores (simt: CUDA cores)"
    assert "3 pipeline stages" in meaning["32x3"]
    assert meaning["align4"] == "operands aligned to 4 elements: 16 bytes, one 128-bit load"


def test_relu_in_a_name_is_no_proof_of_an_activation() -> None:
    identity = identify("ampere_fp16_s16816gemm_fp16_256x128_ldg8_relu_f2f_stages_64x3_tn")
    assert "no proof" in next(token.meaning for token in identity.tokens if token.text == "relu")
    assert identity.op == "gemm"


def test_remarks_follow_from_the_device() -> None:
    name = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
    assert identify(name).remarks == ()
    assert identify(name, "sm80").remarks == ()
    assert identify(name, "sm90").remarks == (
        "an Ampere kernel on a Hopper chip: at most two thirds of its tensor peak",
    )


def test_fp32_on_cuda_cores_is_remarked() -> None:
    assert any("set_float32_matmul_precision" in remark for remark in identify("ampere_sgemm_128x64_nn").remarks)
    convolution = identify("implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false, false, true>")
    assert any("cudnn.allow_tf32" in remark for remark in convolution.remarks)


@pytest.mark.parametrize(
    ("name", "plain", "library"),
    [
        ("_5x_cudnn_volta_scudnn_128x32_relu_small_nn_v1", "volta_scudnn_128x32_relu_small_nn_v1", "cudnn"),
        ("cask__5x_cudnn_volta_scudnn_128x64_relu_interior_nn_v1", "volta_scudnn_128x64_relu_interior_nn_v1", "cudnn"),
        ("cask__5x_volta_scudnn_128x64_relu_interior_nn_v1", "volta_scudnn_128x64_relu_interior_nn_v1", "cudnn"),
        ("cask_cudnn_volta_scudnn_128x64_relu_interior_nn_v1", "volta_scudnn_128x64_relu_interior_nn_v1", "cudnn"),
        (
            "_7x_cudnn_turing_h1688cudnn_128x128_ldg8_relu_exp_interior_nhwc_tn_v1",
            "turing_h1688cudnn_128x128_ldg8_relu_exp_interior_nhwc_tn_v1",
            "cudnn",
        ),
        ("_5x_cublas_volta_sgemm_32x128_nn", "volta_sgemm_32x128_nn", "cublas"),
        (
            "_5x_cudnn_sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4",
            "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4",
            None,
        ),
    ],
)
def test_marks_of_the_library_s_version_do_not_hide_the_kernel(name: str, plain: str, library: str | None) -> None:
    marked, bare = identify(name), identify(plain)
    assert marked.kernel_class == bare.kernel_class in {"conv", "gemm"}
    assert (marked.arch, marked.tensor_core, marked.dtype) == (bare.arch, bare.tensor_core, bare.dtype)
    assert marked.library == (library or bare.library)


@pytest.mark.parametrize(
    "name", ["cask_cudnn::computeOffsetsKernel<false, false>", "cask_of_wine_kernel", "my_2x_relu"]
)
def test_names_that_only_look_marked_are_left_alone(name: str) -> None:
    assert identify(name).kernel_class not in {"conv", "gemm"}


def test_miopen_s_assembly_kernels_name_their_type() -> None:
    assert identify("miopenSp3AsmConv_v30_3_1_gfx9_fp16_dot2_edc_f2x3_stride1").dtype.a == "f16"
    assert identify("miopenSp3AsmConv_v30_3_1_gfx9_fp32_f3x2_stride1").dtype.a == "f32"


def test_a_name_that_cannot_communicate_is_never_decoded_as_a_collective() -> None:
    labelled = (Path(__file__).parent / "labelled.jsonl").read_text().splitlines()
    names = [row["name"] for row in (*ROWS, *map(json.loads, labelled))]
    collectives = [name for name in names if identify(name).kernel_class == "comm"]
    assert len(collectives) > 20
    assert [name for name in collectives if not re.search(MAY_COMMUNICATE, name)] == []
    assert not re.search(MAY_COMMUNICATE, "ampere_sgemm_128x64_nn")


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<float>(int)", "rms_norm"),
        ("void transformer_engine::normalization::layernorm_fwd_tuned_kernel<float>(int)", "layer_norm"),
        ("void transformer_engine::normalization::rmsnorm_bwd_general_kernel<float>(int)", "rms_norm"),
        ("void cuApplyRMSNorm<float, float, float>(float*)", "rms_norm"),
        ("void tensorrt_llm::kernels::generalLayerNorm<float, float, false>(float*)", "layer_norm"),
    ],
)
def test_the_two_norms_are_told_apart(name: str, op: str) -> None:
    identity = identify(name)
    assert identity.op == op
    assert op.replace("_", " ") in {token.meaning for token in identity.tokens}


@pytest.mark.parametrize(
    ("name", "kernel_class", "op"),
    [
        ("void rocblas_gemvt_sn_kernel<false, 256>(int)", "gemm", "gemv"),
        ("void rocblas_symv_kernel_upper_double_buffered_diagonal<32>(int)", "gemm", "gemv"),
        ("void rocblas_syr2k_her2k_kernel<float>(int)", "gemm", "gemm"),
        ("void rocblas_dot_kernel<float>(int)", "reduction", "blas_reduction"),
        ("void rocblas_trsm_small_left_device<float>(int)", "other", "linear_solve"),
        ("void rocsparse::csrmvn_general_kernel<256u, 8u, int, int, float>(int)", "gemm", "spmm"),
        ("void rocsparse::gebsr2csr_kernel<256u, 8u>(int)", "layout", "convert_format"),
        ("void rocsparse::gtsv_nopivot_pcr_shared_kernel<64u, float>(int)", "other", "sparse_solve"),
        ("void rocsparse::doti_kernel_part1<256u, float>(int)", "reduction", "reduce"),
        ("void rocsparse::csrgemm_symbolic_max_row_nnz_part2<256u>(int)", "reduction", "reduce"),
        ("void rocsparse::bsrgemm_copy_scale<64u, float>(int)", "elementwise", "vector_update"),
        ("void rocsparse::gtsv_transpose_back_array_kernel<32u, float>(int)", "layout", "transpose"),
        ("void rocsolver::v33100::copy_trans_mat<double>(int)", "layout", "transpose"),
        ("void rocsolver::v33100::init_ident<double>(int)", "memory", "fill"),
        ("void rocsolver::v33100::conj_in_place<double>(int)", "elementwise", "vector_update"),
        ("Cat4FwdPacked", "memory", "cat"),
        ("DropoutKernel", "rng", "dropout"),
        ("void aiter::topk_gating_kernel_opt<float, 8>(float*, int)", "moe", "moe_routing"),
        ("void pa_prefill_16mx8_32nx1_fp8_kernel<pa_traits>(pa_args)", "attention", "paged_attention"),
        ("_csr_to_dense_kernel", "layout", "to_dense"),
        ("void rocsolver::v33100::bdsqr_rotate<double>(int)", "other", "linear_solve"),
        ("void rocsolver::v33100::copy_mat<double>(int)", "memory", "copy"),
        ("void rocsolver::v33100::scalar_case<double>(int)", "other", "linear_solve"),
        ("fft_rtc_fwd_len512_factors_8_8_8_wgs_64_tpt_64_sp_ip_CI_sbrr", "other", "fft"),
        ("r2c_copy_rtc_dim2_sp", "other", "fft_pack"),
        ("void rocrand_impl::host::generate_kernel<unsigned int>(int)", "rng", "random"),
        ("void rocprim::ROCPRIM_400101_NS::detail::segmented_scan_kernel<int>(int*)", "sort_scan", "scan"),
        ("void rocprim::ROCPRIM_400101_NS::detail::find_first_of_kernel<int>(int*)", "other", "find"),
    ],
)
def test_the_routines_of_rocm_s_libraries(name: str, kernel_class: str, op: str) -> None:
    identity = identify(name)
    assert (identity.kernel_class, identity.op) == (kernel_class, op), dict(identity.reasons)
