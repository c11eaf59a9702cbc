"""A tiny program, written down as the profile that it would leave, and names of real kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kineto_files import Event, annotation, call, copy, frame, kernel, op, write

from warpline.findings.judge import Judgement, judge
from warpline.fixes.registry import question_about
from warpline.replay import WhatIf
from warpline.trace.open import open_trace

STEPS = 4
MAIN_STREAM, SIDE_STREAM = 7, 20
LATENCY = 4.0
"""Microseconds from a launching call's end to its work's begin on a free stream."""

H200: dict[str, Any] = {
    "deviceProperties": [
        {
            "id": 0,
            "name": "NVIDIA H200",
            "computeMajor": 9,
            "computeMinor": 0,
            "numSms": 132,
            "maxThreadsPerMultiprocessor": 2048,
            "regsPerMultiprocessor": 65536,
            "sharedMemPerMultiprocessor": 233472,
        }
    ]
}
V100 = {"deviceProperties": [{"id": 0, "name": "Tesla V100-SXM2-16GB", "computeMajor": 7, "computeMinor": 0}]}

MUL = "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 11, false, false>"
CAT = "void at::native::(anonymous namespace)::CatArrayBatchedCopy_vectorized<at::native::(anonymous namespace)::OpaqueType<4u>, unsigned int, 1, 128, 1, 16, 4>"
DIRECT_COPY = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#12}::operator()() const::{lambda(c10::BFloat16)#1}>>"
GEMM_BF16 = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT"
GEMM_FP32 = "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(cutlass_80_simt_sgemm_256x128_8x4_nn_align1::Params)"
GEMM_TF32 = "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x256x32_warpgroupsize2x1x1_execute_segment_k_off_kernel__5x_cublas"
GEMM_DOUBLE = "sm90_xmma_gemm_f64f64_f64f64_f64_nn_n_tilesize128x64x16_stage3_warpsize2x2x1_tensor16x8x8_execute_kernel__5x_cublas"
MUL_DOUBLE = "void at::native::vectorized_elementwise_kernel<2, at::native::BinaryFunctor<double, double, double, at::native::binary_internal::MulFunctor<double> >, std::array<char*, 3ul> >"
GEMM_ODD = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1>(cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1::Params)"
CONV_LAST = "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn"
TO_LAST = "void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16, __nv_bfloat16, float, false, true, (cudnnKernelDataType_t)0>"
TO_FIRST = "void cudnn::engines_precompiled::nhwcToNchwKernel<__nv_bfloat16, __nv_bfloat16, float, true, false, (cudnnKernelDataType_t)0>"
GEMM_OLD = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn"
SCAN = "void at::native::tensor_kernel_scan_innermost_dim<float, std::plus<float> >(float*, float const*, unsigned int, unsigned int, unsigned int, float, std::plus<float>)"
FUSED_ADAM = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4>>"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"


class Program:
    """A program on one thread and a device with streams, written down as the profile that it would leave.

    Before its first step it loads code and gets memory, as every program does.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now = 0.0
        self.free: dict[int, float] = {}
        self.number = 0
        self.steps = 0
        self.frames = 0
        self.device = H200
        self.call("cuModuleLoadData", 5000)
        self.call("cudaMalloc", 500)

    @contextmanager
    def step(self) -> Iterator[None]:
        start = self.now
        self.python(1)
        yield
        self.events.append(annotation(f"ProfilerStep#{self.steps}", start, self.now - start))
        self.steps += 1

    def python(self, length: float) -> None:
        self.now += length

    def call(self, name: str, length: float) -> None:
        self.number += 1
        self.events.append(call(name, self.now, length, self.number))
        self.now += length

    @contextmanager
    def range(self, name: str) -> Iterator[None]:
        start = self.now
        yield
        self.events.append(annotation(name, start, self.now - start))

    @contextmanager
    def within(self, name: str, shapes: list[list[int]] | None = None) -> Iterator[None]:
        """An op around others."""
        start = self.now
        self.python(1)
        yield
        self.python(1)
        known: dict[str, Any] = {"Input Dims": shapes} if shapes else {}
        self.events.append(op(name, start, self.now - start, **known))

    def op(
        self,
        name: str,
        *kernels: tuple[str, float],
        cpu: float = 8,
        launch: float = 3,
        stream: int = MAIN_STREAM,
        shapes: list[list[int]] | None = None,
        dtype: str = "c10::BFloat16",
        types: list[str] | None = None,
        grid: int = 1024,
    ) -> None:
        """An op that takes `cpu` before it launches its kernels, which takes `launch` each."""
        start = self.now
        self.python(cpu)
        for kernel_name, length in kernels:
            begin = self._launch("cudaLaunchKernel", launch, stream, length)
            shape: dict[str, Any] = {"grid": [grid, 1, 1], "block": [128, 1, 1]}
            self.events.append(kernel(kernel_name, begin, length, self.number, stream=stream, **shape))
        self.python(1)
        types = types or [dtype] * len(shapes or [])
        known: dict[str, Any] = {"Input Dims": shapes, "Input type": types} if shapes else {}
        self.events.append(op(name, start, self.now - start, **known))

    def _launch(self, name: str, cost: float, stream: int, length: float, *, after: float | None = None) -> float:
        """The launching call; returns when its work of that length begins. It lasts until so long after the work."""
        begin = max(self.now + cost + LATENCY, self.free.get(stream, 0.0))
        self.free[stream] = begin + length
        self.call(name, cost if after is None else begin + length + after - self.now)
        return begin

    def copy(self, kind: str, length: float, size: int, *, stream: int = MAIN_STREAM, staging: float = 0.0) -> None:
        """A copy, such as "HtoD (Pinned -> Device)"; one from or to pageable memory holds the CPU until it is done, and
        for as long as the CPU then stages it."""
        start = self.now
        self.python(4)
        pageable = "Pageable" in kind
        begin = self._launch("cudaMemcpyAsync", 3, stream, length, after=2 + staging if pageable else None)
        self.events.append(copy(f"Memcpy {kind}", begin, length, self.number, size, stream=stream))
        if pageable:
            self.wait(stream)
        self.events.append(op("aten::copy_", start, self.now - start))

    def wait(self, stream: int = MAIN_STREAM) -> None:
        self.call("cudaStreamSynchronize", max(0.0, self.free.get(stream, 0.0) - self.now) + 3)

    def large_product(self, length: float = 1000.0) -> None:
        self.op("aten::mm", (GEMM_BF16, length), shapes=[[4096, 4096], [4096, 4096]])

    @contextmanager
    def frame(self, name: str, parent: int | None = None) -> Iterator[int]:
        """A Python frame; gives its number, for frames within it."""
        start, self.frames = self.now, self.frames + 1
        number = self.frames
        yield number
        self.events.append(frame(name, start, self.now - start, number, parent))

    def judged(self, folder: Path) -> Judgement:
        """Findings and verdict of the program."""
        return judge(open_trace(write(folder, self.events, **self.device), cache=False))

    def asked(self, folder: Path) -> WhatIf:
        """What fixes of the program are worth."""
        return question_about(open_trace(write(folder, self.events, **self.device), cache=False))


Body = Callable[[Program], None]


def repeated(body: Body) -> Program:
    """A program whose every step has this body."""
    program = Program()
    for _ in range(STEPS):
        with program.step():
            body(program)
    return program


def judged(folder: Path, body: Body) -> Judgement:
    """What the rules say of a program whose every step has this body."""
    return repeated(body).judged(folder)


def asked(folder: Path, body: Body) -> WhatIf:
    """What fixes of such a program are worth."""
    return repeated(body).asked(folder)
