"""What is left of a time after a change, as a share of it: these hold on any host and any chip, as far as is known.

Measured ones come from an H200 (torch 2.11, CUDA 13.0; benchmarks/replay_constants.py) or from recorded programs and
their fixed versions; others say that they are cautious guesses.
"""

from __future__ import annotations

from warpline.replay.costs.cost import Cost

MEASURED = "H200, torch 2.11, CUDA 13.0 (benchmarks/replay_constants.py)"
RECORDED = "H200, torch 2.11: recorded programs and their fixed versions"
GUESSED = "not measured yet: a cautious range"

FUSED_CHAIN = Cost(0.0, 0.35, 1.3, MEASURED)
"""Where shapes were not recorded: where between the shortest and the longest of its large kernels a fused chain lies.
Nine passes over a tensor of 128 MB, of 64 to 97 µs each, became one of 82; nine of 130 to 200 µs became one of 130;
seven of 154 µs with two inputs one of 188."""
FUSED_BYTES = Cost(1.0, 1.05, 1.3, RECORDED)
"""Time of a fused kernel that memory bounds, against that of its bytes at the measured bandwidth: 1.00, 1.03 and 1.13
for a norm, a rotation and an activation."""
FUSED_STEP_FLOPS = Cost(4.5, 5.0, 7.0, RECORDED)
"""Time of a fused kernel for an addition to an element, in operations at the chip's peak for fp32: loads and indices
come on top of the op itself. With functions counted as the additions that they cost (`compilable.FUNCTIONS`), on an
H200 4.6 to 5.2 for an activation, a stencil, distances, entropies, a focal loss, prices of options and 4-bit numbers
that are unpacked; 5.0 and 6.4 for two exact GELUs."""
FUSED_OPTIMIZER_DEVICE = Cost(0.8, 1.1, 1.5, MEASURED)
"""Its device time against the share of the passes over memory that remain (for Adam 7 of 19 to 21): 407 against 1,550
µs for 48 parameters of 4 MB, 565 against 1,230 for 4 of 64 MB, 407 against 1,165 with foreach."""
CAUSAL = Cost(0.45, 0.5, 1.0, MEASURED)
"""What is left of fused attention when its mask is causal: half of the products, less what blocks waste."""
SDPA_TO_HALF = Cost(1 / 14, 1 / 11, 1 / 6, MEASURED)
"""Fused attention in bf16 against fp32: 10 to 15 times faster at 512 to 4,096 tokens."""
SDPA_HALF = Cost(0.42, 0.5, 0.75, MEASURED)
"""Fused attention in half precision against the two products written out: 149 against 314 µs, and 81 against 166 with a
causal mask; scaling, masking and softmax go for nothing."""
SDPA_BIASED = Cost(0.7, 1.0, 1.3, MEASURED)
"""The same with a bias that is added to the scores: 165 against 164 µs."""
SDPA_SINGLE = Cost(1 / 1.49, 1 / 1.42, 1 / 1.2, MEASURED)
"""Fused attention in fp32 against all its kernels written out: 1.4 to 1.5 times faster at 512 to 4,096 tokens."""
CHANNELS_LAST = Cost(0.45, 0.68, 0.88, MEASURED)
"""Convolutions with channels last against channels first, transposing kernels included: 0.42 to 0.89."""
DOUBLE_MEMORY = Cost(0.5, 0.55, 0.8, MEASURED)
"""Memory-bound kernels in fp32 against fp64: half the bytes; 0.50 to 0.77."""
BATCH_NORM_CHANNELS_LAST = Cost(0.25, 0.35, 0.6, MEASURED)
"""Batch norm's kernels with channels last against channels first: 117 against 364 µs for statistics, transform and
backward of a layer in bf16."""
HALF_MEMORY = Cost(0.5, 0.6, 0.8, GUESSED)
"""Memory-bound fp32 kernels under autocast: half the bytes, but some stay in fp32 and casts are added."""
BATCHED = Cost(0.7, 1.25, 2.0, RECORDED)
"""Device time of a batch against that of a single turn of the loop that it replaces, where neither fills the device:
0.68, 1.16, 1.23, 1.25, 1.4 and 2.0 in six programs with loops of 12 to 32 turns."""
COMM_SLOWDOWN = Cost(1.0, 1.05, 1.15, GUESSED)
"""Kernels that run beside a collective share memory bandwidth and SMs with it."""
PRECISION_SPREAD = Cost(0.85, 1.0, 1.35, MEASURED)
"""Shapes that are not square do worse than these tables, seldom better."""
SECOND_RUN = Cost(1.0, 1.0, 3.0, GUESSED)
"""Dispatch of code that ran once before, against that of code that ran often: caches and branch predictors are cold."""
LOADER_SHARE = Cost(1 / 16, 1 / 7, 1 / 2, GUESSED)
"""Of the time of loading a batch, what a step waits for when background workers share it: six to eight are usual."""
