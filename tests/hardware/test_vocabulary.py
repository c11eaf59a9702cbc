"""Texts in the words of the platform that a program runs on."""

from __future__ import annotations

import pytest
from msgspec import Struct

from warpline.hardware.vocabulary import in_words_of


class Note(Struct, frozen=True):
    text: str
    parts: tuple[str, ...]
    count: int = 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("replayed as CUDA graphs", "replayed as HIP graphs"),
        ("cudaMemcpyAsync from pinned memory (cudaMallocHost)", "hipMemcpyAsync from pinned memory (hipHostMalloc)"),
        ("cublasGemmEx (CUDA_R_16BF)", "hipblasGemmEx (HIP_R_16BF)"),
        (
            "Profile it with Nsight Compute (ncu --set full).",
            "Profile it with ROCm Compute Profiler (rocprof-compute profile).",
        ),
        ("on tensor cores of 132 SMs", "on matrix cores of 132 compute units"),
        ("NCCL's kernels", "RCCL's kernels"),
        ("torch.cuda.graph(graph), --fix cuda_graph", "torch.cuda.graph(graph), --fix cuda_graph"),
        ("at::native::CUDAFunctor_add, ncclDevKernel_Generic", "at::native::CUDAFunctor_add, ncclDevKernel_Generic"),
        ("/data/NCCL/trace.json and my::cudaThing", "/data/NCCL/trace.json and my::cudaThing"),
    ],
)
def test_amd_has_its_own_words(text: str, said: str) -> None:
    assert in_words_of("hip", text) == said
    assert in_words_of("cuda", text) == text


def test_texts_inside_other_values_are_said_too() -> None:
    note = Note("a CUDA call", ("a CUDA graph",))
    assert in_words_of("hip", [note, {"name": "cudaFree"}]) == [
        Note("a HIP call", ("a HIP graph",)),
        {"name": "hipFree"},
    ]
