"""The part of `device measure` that runs on the GPU alone: memory, L2 and matmuls.

Peaks depend on the data: random bits switch more transistors than zeros and lower the clock, so operands are random.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from warpline.bench.ceilings_samples import (
    BYTES_PER_SECOND,
    FLOPS_PER_SECOND,
    Benchmark,
    Measurement,
    gpu_samples,
    summarise,
)
from warpline.bench.experiments import precision
from warpline.bench.matmuls import ONE_LAYOUT, multiplication, operands

COPY_BYTES = 1 << 30
"""Far larger than any L2, so that every byte is read from and written to memory."""
GEMM_SIZE = 8192
"""Matmul size at which every recent chip reaches its plateau; 128 MiB per 16-bit operand."""
FP64_GEMM_SIZE = 4096
PAUSE_S = 0.1
"""Pause between bursts: on an H200, one second of bf16 matmuls without a pause reaches the power limit and is 15 %
slower."""
MINIMUM_CAPABILITY = {"fp8": (8, 9), "int8": (7, 5), "bf16": (8, 0), "tf32": (8, 0)}

_L2_READER = r"""
extern "C" __global__ void read_again(const float4* data, float* out, int count, int rounds) {
    float total = 0.f;
    for (int round = 0; round < rounds; ++round) {
        #pragma unroll 4
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
            float4 value;
            asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];"
                         : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w) : "l"(data + i));
            total += value.x + value.y + value.z + value.w;
        }
    }
    if (total == 12345.678f) out[0] = total;
}
"""
"""Reads a buffer repeatedly; `.cg` loads are cached in L2 and not in L1."""


def compute_benchmarks(torch: Any) -> dict[str, Benchmark]:
    """The name of each measurement, and its function."""
    products = ("bf16", "fp16", "tf32", "fp32_vector", "fp64", "fp8", "int8")
    return {
        "copy.dram": partial(_copy_bandwidth, torch),
        "copy.l2": partial(_l2_bandwidth, torch),
        **{f"gemm.{kind}": partial(_product, torch, kind) for kind in products},
        "gemm.bf16_sustained": partial(_product, torch, "bf16", sustained=True),
    }


def _copy_bandwidth(torch: Any) -> Measurement:
    size = min(COPY_BYTES, torch.cuda.mem_get_info()[0] // 4)
    source = torch.randint(0, 255, (size,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    samples = gpu_samples(torch, partial(target.copy_, source), inner=5, repeats=20)
    rates = [2 * size / seconds for seconds in samples]
    return summarise(rates, BYTES_PER_SECOND, f"copy of {size >> 20} MiB within the device, read and write counted")


def _l2_bandwidth(torch: Any) -> Measurement:
    """The best of several working sets within the L2: chips with a partitioned L2 prefer small ones."""
    l2_bytes = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0) or 32 << 20
    candidates = [_l2_reads(torch, l2_bytes // part) for part in (2, 4, 8)]
    return max(candidates, key=lambda candidate: candidate.value)


def _l2_reads(torch: Any, size: int) -> Measurement:
    kernel = torch.cuda._compile_kernel(_L2_READER, "read_again")
    data = torch.randn(size // 4, device="cuda")
    out = torch.zeros(1, device="cuda")
    rounds = max(1, (4 << 30) // size)
    blocks = torch.cuda.get_device_properties(0).multi_processor_count * 2
    count = data.numel() // 4
    launch = partial(kernel, (blocks, 1, 1), (1024, 1, 1), (data, out, count, rounds))
    samples = gpu_samples(torch, launch, inner=1, repeats=10, warm_up=2)
    rates = [16 * count * rounds / seconds for seconds in samples]
    return summarise(rates, BYTES_PER_SECOND, f"{size >> 20} MiB read {rounds} times past the L1")


def _product(torch: Any, kind: str, *, sustained: bool = False) -> Measurement:
    """The best of the layouts, in bursts too short for the power limit; if sustained, without a pause."""
    capability = torch.cuda.get_device_capability(0)
    if torch.version.hip is None and capability < MINIMUM_CAPABILITY.get(kind, (0, 0)):
        raise RuntimeError(f"compute capability {capability[0]}.{capability[1]} has no {kind} tensor cores")
    size = FP64_GEMM_SIZE if kind == "fp64" else GEMM_SIZE
    dtype = "fp32" if kind == "fp32_vector" else kind
    multiply = multiplication(torch, dtype, "cuda")
    inner, pause_s = (10, 0.0) if sustained else (1 if dtype == "fp32" else 3, PAUSE_S)
    found = []
    with precision(torch, dtype):
        for transposed in (True, False) if dtype not in ONE_LAYOUT else (True,):
            pair = operands(torch, dtype, (size, size, size), "cuda", transposed=transposed)
            call = partial(multiply, *pair)
            samples = gpu_samples(torch, call, inner=inner, repeats=12, warm_up=5, pause_s=pause_s)
            layout = "second operand transposed" if transposed else "both operands row by row"
            how = f"{size} cubed, random operands, {layout}, {'without a pause' if sustained else 'in short bursts'}"
            found.append(summarise([2 * size**3 / seconds for seconds in samples], FLOPS_PER_SECOND, how))
    return max(found, key=lambda measurement: measurement.value)
