"""Ratios of the time after a change to the time before it. As far as is known, they hold on any host and any chip.

Measured ones come from an H200 (torch 2.11, CUDA 13.0; benchmarks/replay_constants.py) or from recorded programs and
their fixed versions; others say that they are cautious guesses.
"""

from __future__ import annotations

from warpline.replay.costs.cost import Cost

MEASURED = "H200, torch 2.11, CUDA 13.0 (benchmarks/replay_constants.py)"
RECORDED = "H200, torch 2.11: recorded programs and their fixed versions"
GUESSED = "not measured yet: a cautious range"

FUSED_CHAIN = Cost(0.0, 0.35, 1.3, MEASURED)
"""If shapes were not recorded: the time of a fused chain between that of its shortest (0) and longest (1) large kernel.
Nine passes over a tensor of 128 MB, of 64 to 97 µs each, became one of 82 µs; nine of 130 to 200 µs became one of
130 µs; seven of 154 µs with two inputs became one of 188 µs."""
FUSED_BYTES = Cost(1.0, 1.05, 1.3, RECORDED)
"""Time of a memory-bound fused kernel relative to its bytes at the measured bandwidth: 1.00, 1.03 and 1.13 for a norm,
a rotary embedding and an activation."""
FUSED_STEP_FLOPS = Cost(4.5, 5.0, 7.0, RECORDED)
"""Time of one addition per element in a fused kernel, in operations at the chip's FP32 peak: loads and index arithmetic
come on top of the op itself. With functions counted in additions (`units.FUNCTIONS`), on an H200 4.6 to 5.2 for an
activation, a stencil, distances, entropies, a focal loss, option prices and unpacking of 4-bit numbers; 5.0 and 6.4 for
two exact GELUs."""
BATCH_NORM_COMPILED = Cost(0.7, 1.0, 1.1, RECORDED)
"""Time of compiled kernels with batch statistics, with the elementwise kernels that were fused into them, relative to
torch's batch norms alone: sums over the batch go across rows, and take two passes over the tensor. A ResNet-50 in
training, channels last and BF16: 13.0 ms, instead of 12.7 ms for the norms and 5.3 ms for the elementwise kernels."""
FUSED_OPTIMIZER_DEVICE = Cost(0.8, 1.1, 1.5, MEASURED)
"""Device time of a fused optimizer relative to the share of memory passes that remain (for Adam 7 of 19 to 21): 407
instead of 1,550 µs for 48 parameters of 4 MB, 565 instead of 1,230 µs for 4 of 64 MB, 407 instead of 1,165 µs with
foreach."""
CAUSAL = Cost(0.45, 0.5, 1.0, MEASURED)
"""Time of fused attention with a causal mask relative to none: half of the matmuls, plus waste in partial blocks."""
SDPA_TO_HALF = Cost(1 / 14, 1 / 11, 1 / 6, MEASURED)
"""Fused attention in BF16 relative to FP32: 10 to 15 times faster at 512 to 4,096 tokens."""
SDPA_HALF = Cost(0.42, 0.5, 0.75, MEASURED)
"""Fused attention in half precision relative to the two matmuls of unfused attention: 149 instead of 314 µs, and 81
instead of 166 µs with a causal mask; scaling, masking and softmax cost nothing extra."""
SDPA_BIASED = Cost(0.7, 1.0, 1.3, MEASURED)
"""The same with a bias added to the scores: 165 instead of 164 µs."""
SDPA_SINGLE = Cost(1 / 1.49, 1 / 1.42, 1 / 1.2, MEASURED)
"""Fused attention in FP32 relative to unfused attention: 1.4 to 1.5 times faster at 512 to 4,096 tokens."""
CHANNELS_LAST = Cost(0.45, 0.68, 0.88, MEASURED)
"""Convolutions in channels-last relative to channels-first, layout conversions included: 0.42 to 0.89."""
DOUBLE_MEMORY = Cost(0.5, 0.55, 0.8, MEASURED)
"""Memory-bound kernels in FP32 relative to FP64: half the bytes; 0.50 to 0.77."""
BATCH_NORM_CHANNELS_LAST = Cost(0.25, 0.35, 0.6, MEASURED)
"""Batch norm kernels in channels-last relative to channels-first: 117 instead of 364 µs for statistics, transform and
backward of a layer in BF16."""
HALF_MEMORY = Cost(0.5, 0.6, 0.8, GUESSED)
"""Memory-bound FP32 kernels under autocast: half the bytes, but some stay in FP32 and casts are added."""
BATCHED = Cost(0.7, 1.25, 2.0, RECORDED)
"""Device time of a batch relative to one iteration of the loop that it replaces, if neither fills the device: 0.68,
1.16, 1.23, 1.25, 1.4 and 2.0 in six programs with loops of 12 to 32 iterations."""
COMM_SLOWDOWN = Cost(1.0, 1.05, 1.15, GUESSED)
"""Kernels that run beside a collective share memory bandwidth and SMs with it."""
PRECISION_SPREAD = Cost(0.85, 1.0, 1.35, MEASURED)
"""Shapes that are not square are slower than these tables, rarely faster."""
SECOND_RUN = Cost(1.0, 1.0, 3.0, GUESSED)
"""Dispatch in the second run of code relative to later runs: caches and branch predictors are cold."""
LOADER_SHARE = Cost(1 / 16, 1 / 7, 1 / 2, GUESSED)
"""Share of the loading time of a batch that a step waits for with background workers: six to eight are usual."""
