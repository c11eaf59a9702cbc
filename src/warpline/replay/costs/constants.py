"""Constants of the interventions. Measured ones come from an H200 host (torch 2.11, CUDA 13.0) by
benchmarks/replay_constants.py; others say that they are cautious guesses.
"""

from __future__ import annotations

import numpy as np

from warpline.replay.costs.ranges import Range
from warpline.trace.columns import Floats

MEASURED = "H200, torch 2.11, CUDA 13.0 (benchmarks/replay_constants.py)"
RECORDED = "H200, torch 2.11: the recorded faults and their cures"
GUESSED = "not measured yet: a cautious range"

GRAPH_LAUNCH_NS = Range(7_000, 12_000, 30_000, MEASURED)
"""Host time of one graph launch, Python included: a graph of ten nodes replays in 9.8 µs; single
calls took up to 30."""
GRAPH_NODE_NS = Range(20, 50, 110, MEASURED)
"""Host time of a graph launch per node: 40 to 110 µs for 1,000 nodes."""
GRAPH_GAP_NS = Range(0, 150, 600, MEASURED)
"""Between two nodes of a graph, beyond their recorded times: 1,000 kernels of about 0.9 µs replay in 1.00 ms; 17
planted programs of 31 to 813 small kernels replay in the sum of the kernels' times and 0 to 500 ns a kernel (median
130)."""
COMPILED_CALL_NS = Range(18_000, 24_000, 50_000, RECORDED)
"""Host time of one call of a compiled region (guards, wrapper), without its launches: 21 µs with one kernel inside, 22
with 65, and 30 with two or three, Python between the regions included."""
COMPILED_LAUNCH_NS = Range(5_000, 8_000, 11_000, RECORDED)
COMPILED_LIBRARY_NS = Range(9_000, 13_000, 20_000, RECORDED)
"""Host time per kernel that a compiled region launches, its own ones and those of libraries, which it asks ATen for: a
region of 33 and 32 of them takes 0.70 ms, and recorded, less the cost of recording, 9 and 13 µs each."""
FUSED_CHAIN = Range(0.0, 0.35, 1.3, MEASURED)
"""Where shapes were not recorded: where between the shortest and the longest of its large kernels a fused chain lies.
Nine passes over a tensor of 128 MB, of 64 to 97 µs each, became one of 82; nine of 130 to 200 µs became one of 130;
seven of 154 µs with two inputs one of 188."""
FUSED_BYTES = Range(1.0, 1.05, 1.3, RECORDED)
"""Time of a fused kernel that memory bounds, against that of its bytes at the measured bandwidth: 1.00, 1.03 and 1.13
for a norm, a rotation and an activation."""
FUSED_STEP_FLOPS = Range(4.5, 5.0, 7.0, RECORDED)
"""Time of a fused kernel for an addition to an element, in operations at the chip's peak for fp32: loads and indices
come on top of the op itself. With functions counted as the additions that they cost (`compilable.FUNCTIONS`), on an
H200 4.6 to 5.2 for an activation, a stencil, distances, entropies, a focal loss, prices of options and 4-bit numbers
that are unpacked; 5.0 and 6.4 for two exact GELUs."""
FUSED_KERNEL_NS = Range(1_000, 1_500, 3_000, RECORDED)
"""What a small fused kernel takes: 1.0 to 1.7 µs."""
FUSED_OPTIMIZER_BASE_NS = Range(35_000, 42_000, 130_000, MEASURED)
FUSED_OPTIMIZER_PARAMETER_NS = Range(2_000, 2_500, 4_000, MEASURED)
"""Host time of a fused Adam or AdamW: 151 µs for 8 parameters, 163 for 48, 541 for 200 on a disturbed host; in calm
moments a step of 7 parameters takes 57 to 69 µs."""
FUSED_OPTIMIZER_DEVICE = Range(0.8, 1.1, 1.5, MEASURED)
"""Its device time against the share of the passes over memory that remain (for Adam 7 of 19 to 21): 407 against 1,550
µs for 48 parameters of 4 MB, 565 against 1,230 for 4 of 64 MB, 407 against 1,165 with foreach."""
PINNED_BYTES_PER_NS = Range(55.5, 55.0, 45.0, MEASURED)
"""Host to device from pinned memory, large copies; bytes per nanosecond are GB/s."""
HOST_BYTES_PER_NS = Range(20.0, 12.0, 6.0, GUESSED)
"""At which one thread of the host copies memory into a buffer."""
PINNED_COPY_NS = Range(1_500, 2_000, 3_000, MEASURED)
"""Device time that a copy takes however small it is."""
ASYNC_COPY_CALL_NS = Range(3_000, 5_000, 8_000, MEASURED)
"""Host time of cudaMemcpyAsync from pinned memory: the whole op costs 8 to 9 µs."""
CAUSAL = Range(0.45, 0.5, 1.0, MEASURED)
"""What is left of fused attention when its mask is causal: half of the products, less what blocks waste."""
SDPA_TO_HALF = Range(1 / 14, 1 / 11, 1 / 6, MEASURED)
"""Fused attention in bf16 against fp32: 10 to 15 times faster at 512 to 4,096 tokens."""
SDPA_HALF = Range(0.42, 0.5, 0.75, MEASURED)
"""Fused attention in half precision against the two products written out: 149 against 314 µs, and 81 against 166 with a
causal mask; scaling, masking and softmax go for nothing."""
SDPA_BIASED = Range(0.7, 1.0, 1.3, MEASURED)
"""The same with a bias that is added to the scores: 165 against 164 µs."""
SDPA_SINGLE = Range(1 / 1.49, 1 / 1.42, 1 / 1.2, MEASURED)
"""Fused attention in fp32 against all its kernels written out: 1.4 to 1.5 times faster at 512 to 4,096 tokens."""
CHANNELS_LAST = Range(0.45, 0.68, 0.88, MEASURED)
"""Convolutions with channels last against channels first, transposing kernels included: 0.42 to 0.89."""
DOUBLE_TO_TF32 = Range(0.15, 0.18, 0.25, MEASURED)
"""Products in TF32 against fp64: 0.148 by the ceilings, 0.165 to 0.19 for two products of 1.1 ms."""
DOUBLE_MEMORY = Range(0.5, 0.55, 0.8, MEASURED)
"""Memory-bound kernels in fp32 against fp64: half the bytes; 0.50 to 0.77."""
BATCH_NORM_CHANNELS_LAST = Range(0.25, 0.35, 0.6, MEASURED)
"""Batch norm's kernels with channels last against channels first: 117 against 364 µs for statistics, transform and
backward of a layer in bf16."""
HALF_MEMORY = Range(0.5, 0.6, 0.8, GUESSED)
"""Memory-bound fp32 kernels under autocast: half the bytes, but some stay in fp32 and casts are added."""
BATCHED = Range(0.7, 1.25, 2.0, RECORDED)
"""Device time of a batch against that of a single turn of the loop that it replaces, where neither fills the device:
0.68, 1.16, 1.23, 1.25, 1.4 and 2.0 in six programs with loops of 12 to 32 turns."""
FOREACH_TENSOR_NS = Range(100, 180, 400, RECORDED)
"""Host time of each tensor in the list of a torch._foreach_ function: two of 64 take 35 µs, one of 128 takes 38."""
LOOKUP_ROW_NS = Range(0.6, 0.62, 0.68, RECORDED)
"""Device time of a row that is looked up: torch gives each row a block. 0.60 to 0.67 in nine programs that look up
24,576 to 16,777,216 rows of up to 512 bytes."""
COMM_SLOWDOWN = Range(1.0, 1.05, 1.15, GUESSED)
"""Kernels that run beside a collective share memory bandwidth and SMs with it."""
LOADER_WORKERS = Range(16.0, 7.0, 2.0, GUESSED)
"""Background workers among which data loading is divided: six to eight are usual."""
WORKER_SLOWDOWN = Range(1.0, 1.6, 1.6, RECORDED)
"""How much longer a worker takes for a batch than the loop itself did: workers share cores, copy the batch to shared
memory, and compete with their own thread that hands it over. 1.6 in both cures that six workers bound."""
TAKEN_TENSOR_NS = Range(50_000, 650_000, 1_100_000, RECORDED)
"""What it costs the loop to take a tensor from a worker: a socket is opened, both sides prove who they are, and a
file descriptor comes back. 28 times, with workers idle or busy, 0.48 to 1.10 ms, median 0.65; 30 to 60 µs for one that
had been taken before, as a thread that pins memory does."""

FP32_NS = np.array([8_336, 14_528, 56_742, 350_970, 2_668_957, 21_438_272], np.float64)
TF32_NS = np.array([5_578, 7_923, 14_534, 50_934, 349_184, 2_726_202], np.float64)
BF16_NS = np.array([3_798, 4_387, 6_474, 24_970, 177_082, 1_417_930], np.float64)
"""Square products of 256 to 8,192 in three precisions, measured on an H200: what a product of some length in one
precision takes in another."""
ODD_NS = np.array([12_653, 26_394, 109_331, 903_005, 7_342_176], np.float64)
EVEN_NS = np.array([4_387, 6_474, 24_970, 177_082, 1_417_930], np.float64)
"""bf16 products of 511 to 8,191, and of 512 to 8,192: what alignment is worth."""
PRECISION_SPREAD = Range(0.85, 1.0, 1.35, MEASURED)
"""Shapes that are not square do worse than these tables, seldom better."""


SIZES = np.array([256, 512, 1024, 2048, 4096, 8192], np.float64)
SERIES_NS = {"bf16": BF16_NS, "tf32": TF32_NS}
FLOORS_NS = {dtype: series[-1] * (SIZES / SIZES[-1]) ** 3 for dtype, series in SERIES_NS.items()}
"""What the products of these series would take at the rate of the largest."""


def usual_ns(floor: Floats, dtype: str) -> Floats:
    """What a square product with this floor takes, as measured: small ones are far from the roof."""
    floors, series = FLOORS_NS[dtype], SERIES_NS[dtype]
    share = np.interp(np.log(np.maximum(floor, 1.0)), np.log(floors), floors / series)
    result: Floats = floor / share
    return result


def converted(duration: Floats, slow: Floats, fast: Floats) -> Floats:
    """What work of this length in the slow series takes in the fast one, by the ratio between them at that length."""
    ratio = np.interp(np.log(np.maximum(duration, 1.0)), np.log(slow), fast / slow)
    result: Floats = duration * ratio
    return result
