"""Attention and MLP blocks of a transformer whose modules were not recorded: what runs between two norms.

Each block of a transformer begins or ends with a norm. What lies between two norms on the forward thread is attention
if it has an attention op (or a softmax between batched matmuls), an MLP if it has an activation and at least two
matmuls. A block with both, as in parallel blocks, or with neither keeps no role.
"""

from __future__ import annotations

import numpy as np

from warpline.analyses.parts.roles import ATTENTION, MLP, NORM, role_of_op
from warpline.trace.arrays import Bools, Texts
from warpline.trace.trace import Trace

NORM_BY_HAND = r"^aten::rsqrt$"
"""An RMSNorm written in Python ends with x * rsqrt(mean(x²) + ε)."""
SOFTMAX, BATCHED = r"^aten::_softmax$", r"^aten::(bmm|baddbmm)$"
ACTIVATION = r"^aten::(silu|gelu|relu|clamp_min|mish|hardswish|leaky_relu|elu|tanh|sigmoid)_?$"
"""Activations, and what GELU and SiLU written in Python are made of."""
MATMUL = r"^aten::(mm|addmm|_scaled_mm|_grouped_mm)$"
LEAST_MATMULS = 2


def block_roles(trace: Trace, backward: Bools) -> Texts:
    """The role of each op by the block it lies in; empty where none is certain, and one more at the end for no op."""
    ops = trace.ops
    if not len(ops):
        return np.array([""], object)
    own = ops.name.renamed(role_of_op).texts
    forward = ~backward
    norm = forward & ((own == NORM) | ops.name.like(NORM_BY_HAND))
    threads = ops.thread
    starts = norm | np.append(True, threads[1:] != threads[:-1])
    block = np.cumsum(starts) - 1
    count = int(block[-1]) + 1

    def tally(which: Bools) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        return np.bincount(block[which & forward], minlength=count)

    softmax, batched = (tally(ops.name.like(pattern)) for pattern in (SOFTMAX, BATCHED))
    attends = (tally(own == ATTENTION) > 0) | ((softmax > 0) & (batched >= LEAST_MATMULS))
    activates = tally(ops.name.like(ACTIVATION)) > 0
    matmuls = tally(ops.name.like(MATMUL))
    # A block lies between two norms if it begins with one and the next one begins with another on its thread.
    first = np.flatnonzero(starts)
    between = np.append(norm[first[1:]] & (threads[first[1:]] == threads[first[:-1]]), False) & norm[first]
    role = np.full(count, "", object)
    role[between & attends & ~activates] = ATTENTION
    role[between & ~attends & activates & (matmuls >= LEAST_MATMULS)] = MLP
    return np.append(np.where(forward, role[block], ""), "")
