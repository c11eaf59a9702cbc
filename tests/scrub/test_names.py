"""What a name becomes, and that analyses still see in it what they saw before."""

from __future__ import annotations

import re

import pytest

from warpline import api_names, library_names
from warpline.analyses import framework
from warpline.analyses.idle import host_activity
from warpline.kernels import identify
from warpline.scrub.devices import device_name
from warpline.scrub.frames import FrameScrubber
from warpline.scrub.names import NameScrubber
from warpline.scrub.vocabulary import is_known
from warpline.trace.steps import loops

KERNELS = {
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)": None,
    "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas": None,
    "triton_poi_fused_add_native_layer_norm_3": None,
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": None,
    "Memcpy HtoD (Pinned -> Device)": None,
    "_fwd_kernel_0d1d2de3": None,
    "acme_nightfall_gemm_fp16": "nameB_nameC_gemm_fp16",
    "void blackbriar::softmax<float, 4>(float*)": "void nameB::softmax<float, 4>(float*)",
    "_ZN4acme4gemmIfLi4EEEvPKf": "_ZN5nameB4gemmIfLi4EEEv",
    "https://acme.co/gemm": "nameB_gemm",
    "password=hunter2": "nameB",
    "k_4111_1111_1111_1111": "nameB",
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_keep_their_known_words(name: str) -> None:
    expected = KERNELS[name] or name
    assert NameScrubber().kernel(name) == expected
    assert NameScrubber().kernel(expected) == expected


@pytest.mark.parametrize("name", [name for name in KERNELS if "gemm" in name and "/" not in name])
def test_a_pseudonym_decodes_as_the_kernel_did(name: str) -> None:
    before, after = identify(name), identify(NameScrubber().kernel(name))
    assert (before.kernel_class, before.op, before.dtype, before.tile) == (
        after.kernel_class,
        after.op,
        after.dtype,
        after.tile,
    )


RANGES = {
    "ProfilerStep#12": "ProfilerStep#12",
    "Optimizer.step#AdamW.step": "Optimizer.step#AdamW.step",
    "Optimizer.step#BlackbriarOpt.step": "Optimizer.step#NameB.step",
    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__": None,
    "## Call CompiledFxGraph fngvytcozgyv3cmeseiru4oljtde ##": "## Call CompiledFxGraph nameB ##",
    "Torch-Compiled Region: 0/0": None,
    "nccl:all_reduce": None,
    "forward": None,
    "layer 3": None,
    "blackbriar step 17": "rangeB 17",
    "nightfall_layer_3_attn": "rangeB_layer_attn 3",
    "load_data for alice": "rangeB_load_data",
    "10.31.7.254": "rangeB",
    "10.0.0.1": "rangeB",
    "main 8.8.8.8": "rangeB",
    "10.0.0 1": "rangeB",
    "step 12.8.1": "step 12.8.1",
    "2.11.0": "2.11.0",
    "hf_Qz7xEc": "rangeB",
}


@pytest.mark.parametrize("name", RANGES)
def test_ranges_that_a_person_named_are_pseudonyms(name: str) -> None:
    expected = RANGES[name] or name
    assert NameScrubber().range(name) == expected
    assert NameScrubber().range(expected) == expected


def test_equal_names_stay_equal_and_iterations_stay_a_loop() -> None:
    names = NameScrubber()
    new = [names.range(name) for name in ("acme iter 1", "acme iter 2", "other iter 1", "acme iter 1")]
    assert new == ["rangeB 1", "rangeB 2", "rangeC 1", "rangeB 1"]
    # Analyses group ranges by their names without digits.
    assert len({re.sub(r"\d+", "", name) for name in new}) == 2


FRAMES = {
    "torch/nn/modules/module.py(1747): _wrapped_call_impl": None,
    "/home/ada/env/lib/python3.11/site-packages/torch/nn/modules/linear.py(114): forward": (
        "/lib/python3.11/site-packages/torch/nn/modules/linear.py(114): forward"
    ),
    "/x/site-packages/blackbriar/a.py(3): f": "/site-packages/packageB/fileB.py(3): functionB",
    "/home/ada/engine/train.py(12): main": "/fileB.py(12): main",
    "engine/train.py(12): secret_sauce": "fileB.py(12): functionB",
    "train.py(1): <module>": "fileB.py(1): <module>",
    "train.py(7): get_batch_of_ada": "fileB.py(7): functionB_get_batch",
    "<built-in function sleep>": None,
    "<built-in method to of Tensor object at 0x7ce279c59e00>": "<built-in method to of Tensor object at 0x1000>",
    "nn.Module: Linear_3": None,
    "nn.Module: Blackbriar_3": "nn.Module: NameB_3",
    "threading.py(1002): _bootstrap": None,
    "C:\\Users\\Ada\\x.py(3): f": "/fileB.py(3): functionB",
    "$train.py:12 step": "$fileB.py:12 step",
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_of_libraries_keep_their_place_and_others_their_line(name: str) -> None:
    expected = FRAMES[name] or name
    assert FrameScrubber(NameScrubber()).frame(name) == expected
    assert FrameScrubber(NameScrubber()).frame(expected) == expected


def test_names_can_be_kept() -> None:
    names = NameScrubber(keep_names=True)
    assert names.range("blackbriar step") == "blackbriar step"
    assert FrameScrubber(names).frame("/home/ada/engine/train.py(12): sauce") == "…/train.py(12): sauce"
    assert "s3same" not in names.range("https://carol:s3same@git.acme.co/x")
    for kept in ("Blackbriar.forward", "ns::sauce", "encoder/layer_1/attn", "worker-3", "sauce: layer 3", "epoch=3"):
        assert names.range(kept) == kept


@pytest.mark.parametrize(
    "secret",
    [
        "10.31.7.254", "10_31_7_254", "[2001:db8::17]:29500", "fe80::1ff:fe23:4567:890a", "::1", "a4:5e:60:12:9f:01",
        "A4-5E-60-12-9F-01", "\\\\fileserverzq\\share\\x", "wilma/proj/train.py", "~wilma/train.py", "C:\\wilma\\x",
        "node-17.acme.co", "wilma.acme.com", "wilma.acme.Corp:8080", "addr=10.31.7.254", "10 31 7 254", "fn(10, 31, 7, 254)", "r12n31g3", "\\\\host$\\wilma",
    ],
)  # fmt: skip
def test_kept_names_hold_no_address_and_no_path(secret: str) -> None:
    names = NameScrubber(keep_names=True)
    frame = FrameScrubber(names).frame(f"{secret}(12): blackbriar {secret}")
    for shown in (names.range(f"blackbriar {secret}"), names.thread(secret), frame):
        assert secret not in shown
        assert not {"wilma", "fileserverzq", "acme", "31", "fe80"} & set(re.split(r"[\W_]+", shown))
    assert "blackbriar" in frame
    assert FrameScrubber(NameScrubber(keep_names=True)).frame(frame) == frame


def test_four_arguments_of_a_template_are_no_address() -> None:
    names = NameScrubber()
    for kernel in (
        "void gemm<10, 0, 0, 5>(float*)",
        "void gemm<128, 64, 32, 8>(float*)",
        "_Z4gemmILi10ELi0ELi0ELi5EEv",
    ):
        assert names.kernel(kernel) == kernel
    assert "10" not in names.kernel("void gemm<10.0.0.5>(float*)")


@pytest.mark.parametrize("address", ["10_0_3_7", "192_168_16_8", "10_0_3_7_29500", "10__0__3__7"])
def test_an_address_with_underscores_is_no_size(address: str) -> None:
    names = NameScrubber()
    for shown in (names.kernel(f"gemm_{address}"), names.op(f"node_{address}"), names.range(f"forward {address}")):
        assert address not in shown
    assert names.kernel("gemm_128_96_32_4") == "gemm_128_96_32_4"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("dgx-07", "GPU"),
        ("DGX-07", "DGX"),
        ("gpu-3", "GPU"),
        ("H100-107", "H100"),
        ("a4-5e-60-12-9f-01", "GPU"),
        ("F0-B1-A4-E5-D2-C3", "GPU"),
        ("00:1A:2B:3C:4D:5E", "GPU"),
        ("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-16GB"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 Laptop GPU"),
        ("AMD Instinct MI250X / MI250", "AMD Instinct MI250X / MI250"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"),
    ],
)
def test_the_name_of_a_host_is_not_that_of_a_device(name: str, shown: str) -> None:
    assert device_name(name) == shown


PATTERNS = (
    host_activity.LOADING,
    host_activity.COMPILING,
    host_activity.PROFILING,
    loops.LIBRARY_RANGE,
    loops.PART_OF_A_STEP,
    library_names.OPTIMIZER_STEP,
    library_names.TORCH_FRAME,
    library_names.PROFILER_FRAME,
    library_names.LIBRARY_FRAME,
    library_names.OWN_FRAME,
    framework.PYTORCH_OPS,
    api_names.COMPILED_CODE,
    api_names.COMPILING_OPS,
)
TELLING = (
    *FRAMES,
    "my_dataloader.py(3): __iter__",
    "data_loading/fetch.py(9): load_data",
    "torch/utils/data/dataloader.py(733): __next__",
    "torch/_dynamo/convert_frame.py(3): compile_it",
    "/a/site-packages/triton/compiler/compiler.py(9): compile",
    "torch/profiler/profiler.py(884): step",
    "torch/multiprocessing/reductions.py(3): rebuild_storage_fd",
    "/opt/x/warpline/capture/profile.py(3): f",
    "importlib._bootstrap(3): f",
    "multiprocessing/connection.py(3): poll",
    "PIL/Image.py(3): open",
    "datasets/arrow.py(3): f",
)


@pytest.mark.parametrize("name", TELLING)
def test_analyses_see_the_same_in_a_frame(name: str) -> None:
    new = FrameScrubber(NameScrubber()).frame(name)
    assert [bool(re.search(pattern, new)) for pattern in PATTERNS] == [
        bool(re.search(pattern, name)) for pattern in PATTERNS
    ]


@pytest.mark.parametrize("name", [*RANGES, "acme micro-batch 3", "expert_7 of ada", "blackbriar stage", "imread ada"])
def test_analyses_see_the_same_in_a_range(name: str) -> None:
    new = NameScrubber().range(name)
    assert [bool(re.search(pattern, new)) for pattern in PATTERNS] == [
        bool(re.search(pattern, name)) for pattern in PATTERNS
    ]


@pytest.mark.parametrize("name", ["torchao", "deepspeed", "spconv", "detectron2", "megatron", "blockdim64", "nchwkcrs"])
def test_names_of_public_packages_pass(name: str) -> None:
    assert NameScrubber().kernel(f"{name}::gemm<float>") == f"{name}::gemm<float>"


@pytest.mark.parametrize(
    "word", ["ldmatrix", "stmatrix", "mbarrier", "multicast", "StreamK", "swizzled", "GQA", "nvls"]
)
def test_words_of_gpu_programs_pass(word: str) -> None:
    assert is_known(word)


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_ReduceScatter_Sum_f32_TREE_LL128",
        "ncclSymkDevKernel_AllGather_LLMC(ncclSymkDevWorkArgs4K)",
        "void marlin::Marlin<__nv_bfloat16, 1125899906909960l, 1125899907892224l, 256>(int4 const*)",
        "topk_topp_sampling_kernel",
        "gesvdj_batched",
    ],
)
def test_kernels_of_public_libraries_stay(name: str) -> None:
    assert NameScrubber().kernel(name) == name


@pytest.mark.parametrize("name", ["pyg::segment_matmul", "fla::chunk_gated_delta_rule", "_LayerNormFnBackward"])
def test_ops_of_public_libraries_stay(name: str) -> None:
    assert NameScrubber().op(name) == name


@pytest.mark.parametrize(
    "modules",
    [
        "Qwen2Attention MistralAttention MixtralBlockSparseTop2MLP DeepseekV3MoE RobertaLayer SwinTransformerBlock ViTLayer",
        "Bottleneck InvertedResidual AutoencoderKL Wav2Vec2Encoder GPTNeoXLayer ResnetBlock2D LoRALinear",
    ],
)
def test_modules_of_public_models_stay(modules: str) -> None:
    frames = [f"nn.Module: {module}_3" for module in modules.split()]
    assert [FrameScrubber(NameScrubber()).frame(frame) for frame in frames] == frames


@pytest.mark.parametrize("piece", ["1125899906909961l", "4111111111111111l", "4111111111111111ul", "MoeSmith", "ViTom"])
def test_what_only_looks_like_a_type_or_a_model_does_not_pass(piece: str) -> None:
    assert not is_known(piece)


@pytest.mark.parametrize("piece", ["Jd42Module", "Zq7KernelLaunch", "JdModule", "conv2dJd"])
def test_initials_are_no_known_words(piece: str) -> None:
    assert not is_known(piece)


@pytest.mark.parametrize(
    "piece", ["hunter2", "Summer2024", "a1B2c3D4", "correcthorse", "QwErTyUiOp", "483920", "Test1234"]
)
def test_passwords_are_no_known_words(piece: str) -> None:
    assert not is_known(piece)


@pytest.mark.parametrize("name", ["555_173_2098", "5_5_5_1_7_3_2_0_9_8", "12_3", "__7__"])
def test_numbers_alone_are_no_name(name: str) -> None:
    names = NameScrubber()
    assert names.kernel(name).startswith("nameB")
    assert names.op(name).startswith("nameB")


def test_long_names_take_no_longer_than_their_length() -> None:
    """Not a time: a name of a megabyte that took its square would not end."""
    names, long = NameScrubber(), 300_000
    for text in ("1" * long, "a1" * (long // 2), "1 " * (long // 2), "_" * long, "x." * (long // 2), "(" * long):
        for clean in (
            names.kernel,
            names.op,
            names.call,
            names.range,
            names.thread,
            names.process,
            FrameScrubber(names).frame,
        ):
            assert clean(text)
