"""Attention and MLP of a transformer by the shapes of its matmuls, where no module, range or norm shows them.

- Two batched matmuls around a softmax are attention: the first makes the scores that the softmax normalises row by row,
  the second weighs the values with them. The matmuls before them whose results are no larger than queries, keys and
  values together are the projections; so is the first one after them that reads the result.
- A matmul to a wider inner size, an activation, and a matmul back to the first size are an MLP; a gated one has two of
  the first kind, or one of twice the width.
- The sum of two tensors of equal shape right after either is the residual.

Only the order on one thread and the recorded shapes count. Where they leave a doubt, there is no role.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
from msgspec import Struct

from warpline.analyses.parts.blocks import ACTIVATION
from warpline.analyses.parts.roles import ATTENTION, MLP, RESIDUAL
from warpline.trace.arrays import Bools, Texts
from warpline.trace.trace import Trace
from warpline.work.parse import recorded_sizes

PLAIN, BATCHED = r"^aten::(mm|addmm)$", r"^aten::(bmm|baddbmm)$"
SOFTMAX, SUM = r"^aten::_(safe_)?softmax$", r"^aten::add_?$"


class _Call(Struct, frozen=True):
    """A matmul, softmax, activation or sum."""

    row: int
    kind: str
    """plain or batched (matmuls), softmax, activation or sum."""
    sizes: list[tuple[int, ...]]

    @property
    def is_matmul(self) -> bool:
        return self.kind in {"plain", "batched"}

    @property
    def batch(self) -> int:
        return self.sizes[-2][0] if self.kind == "batched" else 1

    @property
    def rows(self) -> int:
        return self.sizes[-2][-2]

    @property
    def inner(self) -> int:
        return self.sizes[-2][-1]

    @property
    def columns(self) -> int:
        return self.sizes[-1][-1]

    @property
    def result(self) -> int:
        """Elements of the result."""
        return self.batch * self.rows * self.columns


def shape_roles(trace: Trace, backward: Bools) -> Texts:
    """The role of each forward op by shapes; empty where none is certain, and one more at the end for no op."""
    roles = np.full(len(trace.ops) + 1, "", object)
    for calls in _by_thread(trace, backward):
        for place, call in enumerate(calls):
            if call.kind == "softmax":
                _mark_attention(calls, place, roles)
        for place, call in enumerate(calls):
            if call.kind == "plain" and not roles[call.row]:
                _mark_mlp(calls, place, roles)
    return roles


def _by_thread(trace: Trace, backward: Bools) -> Iterator[list[_Call]]:
    ops = trace.ops
    kinds = np.full(len(ops), "", object)
    patterns = {"plain": PLAIN, "batched": BATCHED, "softmax": SOFTMAX, "activation": ACTIVATION, "sum": SUM}
    for kind, pattern in patterns.items():
        kinds[ops.name.like(pattern)] = kind
    known = {code: recorded_sizes(text) for code, text in enumerate(ops.shapes.words)}
    for thread in np.unique(ops.thread).tolist():
        rows = np.flatnonzero((ops.thread == thread) & (kinds != "") & ~backward)
        calls = (_Call(row, kinds[row], known.get(int(ops.shapes.codes[row]), [])) for row in rows.tolist())
        yield [call for call in calls if _is_usable(call)]


def _is_usable(call: _Call) -> bool:
    """Whether the shapes that its kind needs were recorded."""
    dimensions = {"plain": 2, "batched": 3}.get(call.kind)
    if dimensions is not None:
        return len(call.sizes) >= 2 and all(len(size) == dimensions for size in call.sizes[-2:])
    return call.kind == "activation" or bool(call.sizes and call.sizes[0])


def _mark_attention(calls: list[_Call], softmax: int, roles: Texts) -> None:
    first = next((at for at in range(softmax - 1, -1, -1) if calls[at].is_matmul), None)
    last = next((at for at in range(softmax + 1, len(calls)) if calls[at].is_matmul), None)
    if first is None or last is None:
        return
    scores, values, width = calls[first], calls[last], calls[softmax].sizes[0][-1]
    if not (scores.kind == values.kind == "batched" and scores.columns == values.inner == width):
        return
    if (scores.batch, scores.rows) != (values.batch, values.rows):
        return
    roles[scores.row : values.row + 1] = ATTENTION
    # Queries, keys and values: what the two matmuls read beside the scores.
    left = scores.batch * (scores.inner * (scores.rows + scores.columns) + values.inner * values.columns)
    for at in range(first - 1, -1, -1):
        if not calls[at].is_matmul:
            continue
        if calls[at].kind == "batched" or calls[at].result > left or roles[calls[at].row]:
            break
        roles[calls[at].row] = ATTENTION
        left -= calls[at].result
    after = next((at for at in range(last + 1, len(calls)) if calls[at].is_matmul), None)
    if after is not None and calls[after].kind == "plain":
        projection = calls[after]
        if projection.rows * projection.inner == values.result:
            roles[projection.row] = ATTENTION
            _mark_residual(calls, after, roles)


def _mark_mlp(calls: list[_Call], last: int, roles: Texts) -> None:
    down = calls[last]
    ups: list[int] = []
    activates = False
    for at in range(last - 1, -1, -1):
        call = calls[at]
        activates |= call.kind == "activation" and not ups
        if not call.is_matmul:
            continue
        fits = call.kind == "plain" and call.columns in {down.inner, 2 * down.inner} and call.inner == down.columns
        if not fits or call.rows != down.rows or roles[call.row] or len(ups) == 2:
            break
        ups.append(at)
    if ups and activates and down.inner > down.columns:
        first = calls[ups[-1]].row
        roles[first : down.row + 1] = MLP
        _mark_residual(calls, last, roles)


def _mark_residual(calls: list[_Call], matmul: int, roles: Texts) -> None:
    """The sum that comes next and has the size of the matmul's result."""
    following = calls[matmul + 1] if matmul + 1 < len(calls) else None
    if following is None or following.kind != "sum" or len(following.sizes) < 2:
        return
    one, other = following.sizes[:2]
    if one == other and prod(one) == calls[matmul].result:
        roles[following.row] = RESIDUAL
