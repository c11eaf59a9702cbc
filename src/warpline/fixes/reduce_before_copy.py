"""Computes on the device what the host now computes from a copied tensor."""

from __future__ import annotations

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import MAX_LEFT, MIN_PER_STEP, StepContents
from warpline.replay.graph.model import EdgeKind, NodeKind
from warpline.replay.graph_edit import GraphEdit
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.copies import SMALL_COPY_BYTES, copies_of, device_byte_ns
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import NONE, Bools, Floats, Int64s
from warpline.units import duration, several, size
from warpline.work.parse import json_list

LARGE_RESULT_BYTES = 1 << 20
"""A copy to the host above this size is a tensor that could be reduced first."""
MAX_NODES_AFTER = 6
"""How many nodes after a copy's call may process its result."""
TAKEN_IN_PART = (
    "aten::gather",
    "aten::index",
    "aten::index_select",
    "aten::narrow",
    "aten::select",
    "aten::slice",
    "aten::take",
)
"""Ops that select part of a tensor. Most launch nothing, but they show that the rest is not needed."""
MAX_SIZE_RATIO = 8
"""The copy back has as many elements: in another dtype it has at most eight times more or fewer bytes."""
REDUCE = (
    "Reduce on the device (argmax, mean, topk) and copy only the result: logits.argmax(-1).cpu() instead of "
    "logits.cpu().argmax(-1)."
)
STAY = "A tensor that goes back to the device need not leave it: replace the NumPy code in between with torch ops."


def apply(edit: GraphEdit, case: int) -> int:
    """Replace large copies to the host by one pass over device memory."""
    labelled = edit.labelled
    copies = copies_of(labelled, "DtoH", edit)
    copies, segments, taken = _used_by_host(edit, copies[labelled.bytes[copies] >= LARGE_RESULT_BYTES])
    if not len(copies):
        return 0
    new = labelled.device.smallest_copy.at(case) * 2 + labelled.bytes[copies].astype(np.float64) * device_byte_ns(
        labelled, case
    )
    edit.shorten(copies, new)
    _staging(edit, copies, case)
    host = edit.graph.duration[segments]
    left = np.maximum(host - taken, 0.0) + labelled.host.launched_op.at(case)
    edit.graph.duration[segments] = np.minimum(host, left)
    edit.remove_work(_sent_back(edit, copies))
    return len(copies)


def _staging(edit: GraphEdit, copies: Int64s, case: int) -> None:
    """Remove the staging of the copies on the host, before and after them."""
    graph, start_ns = edit.graph, edit.labelled.device.launch_to_start.at(case)
    release = np.isin(graph.edge_from, copies) & ~edit.labelled.is_work[graph.edge_to]
    graph.lag[release] = np.minimum(graph.lag[release], start_ns)
    into = np.isin(graph.edge_to, copies)
    graph.lag[into] = np.minimum(graph.lag[into], start_ns)


class _HostWork:
    """CPU time spent on tensors that were copied to the host, in ops that launch nothing."""

    def __init__(self, labelled: LabelledGraph) -> None:
        ops = labelled.trace.ops
        launching = np.zeros(len(ops) + 1, bool)
        launching[labelled.root_op[labelled.work]] = True
        rows = np.flatnonzero((ops.depth == 0) & ~launching[:-1])
        length = labelled.graph.measured_end - labelled.graph.measured_start
        self._labelled = labelled
        self._ops = rows[np.argsort(ops.start_ns[rows], kind="stable")]
        self._starts, self._threads = ops.start_ns[self._ops], ops.thread[self._ops]
        self._shapes, self._names = ops.shapes.texts, ops.name.texts
        self._in_ops = labelled.op_share * length
        self._of_host = labelled.covered_by(ops[rows]) * length

    def on(self, copy: int, node: int) -> float:
        """Time that a segment after a copy spends on its result; 0 if none."""
        taking = self._taking(copy, node)
        part = len(taking) == 1 and self._names[taking[0]] in TAKEN_IN_PART
        works = bool(taking) and self._of_host[node] > self._labelled.host.longest_dispatch.expected
        # The copy evicts the next op's code from the caches, so its time to launch does not count.
        return float(self._in_ops[node]) if part or works else 0.0

    def _taking(self, copy: int, node: int) -> list[int]:
        """The ops in a segment that take a tensor of the copied shape; all ops if no shapes are recorded."""
        graph, around = self._labelled.graph, int(self._labelled.op[copy])
        begin, end = np.searchsorted(self._starts, [graph.measured_start[node], graph.measured_end[node]])
        near = self._ops[begin:end][self._threads[begin:end] == graph.lane[node]].tolist()
        copied = json_list(self._shapes[around])[:1] if around != NONE else []
        return [op for op in near if not copied or copied[0] in json_list(self._shapes[op])]


def _used_by_host(edit: GraphEdit, copies: Int64s) -> tuple[Int64s, Int64s, Floats]:
    """Copies whose result the host uses at once, the segments that use it, and the time spent."""
    graph, labelled = edit.graph, edit.labelled
    used: list[tuple[int, int, float]] = []
    if len(copies):
        after = graph.edge_kind == EdgeKind.THREAD
        next_of = dict(zip(graph.edge_from[after].tolist(), graph.edge_to[after].tolist(), strict=True))
        host = _HostWork(labelled)
    for copy in copies[labelled.call_of_work[copies] != NONE].tolist():
        node = int(labelled.call_of_work[copy])
        # The call, its return, and the waits of the same op come first.
        for _ in range(MAX_NODES_AFTER):
            node = next_of.get(node, NONE)
            if node == NONE:
                break
            taken = host.on(copy, node) if graph.kind[node] == NodeKind.SEGMENT else 0.0
            if taken:
                used.append((copy, node, taken))
                break
    found, segments, lengths = zip(*used, strict=True) if used else ((), (), ())
    return np.array(found, np.int64), np.array(segments, np.int64), np.array(lengths, np.float64)


def _sent_back(edit: GraphEdit, copies: Int64s) -> Int64s:
    """Copies to the device that directly follow one of these in its step, and are of similar size."""
    labelled = edit.labelled
    order = labelled.work[np.argsort(labelled.launch_moment[labelled.work], kind="stable")]
    place = np.zeros(len(labelled.graph), np.int64)
    place[order] = np.arange(len(order))
    following = np.append(order, NONE)[place[copies] + 1]
    copies, following = copies[following != NONE], following[following != NONE]
    ratio = labelled.bytes[following] / np.maximum(labelled.bytes[copies], 1)
    back = labelled.copy_kind[following].equal("HtoD") & (labelled.step[following] == labelled.step[copies])
    back &= (ratio >= 1 / MAX_SIZE_RATIO) & (ratio <= MAX_SIZE_RATIO)
    return following[back]


def large_copy_to_host(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Tensors that take an unnecessary detour through the host."""
    change = evidence.changed(FIX.name)
    down = change.work & evidence.labelled.copy_kind.equal("DtoH")
    back = change.work & ~down
    if not evidence.per_step(down):
        return None
    again = f", and {several(evidence.per_step(back), 'copy', 'copies')} back" if evidence.per_step(back) else ""
    return Claim(
        f"Whole tensors are copied to the host and processed there: {_counted(evidence, down, 'large copy')}{again}.",
        evidence.places(down),
        f"{REDUCE} {STAY}" if evidence.per_step(back) else REDUCE,
    )


def _counted(evidence: Evidence, copies: Bools, word: str) -> str:
    total = float(evidence.labelled.bytes[evidence.in_steps(copies)].sum()) / evidence.steps
    count = several(evidence.per_step(copies), word, f"{word.removesuffix('y')}ies")
    return f"{count} {evidence.noun.per}, {size(total)}, {duration(evidence.time_per_step(copies))}"


def was_made(before: StepContents, after: StepContents) -> bool:
    """Large copies to the host became small ones."""
    (old_count, old_bytes), (new_count, new_bytes) = before.copied("DtoH"), after.copied("DtoH")
    was_large = old_bytes >= SMALL_COPY_BYTES * old_count > 0
    return was_large and new_bytes <= MAX_LEFT * old_bytes and new_count >= MIN_PER_STEP


FIX = Fix(
    name="reduce_before_copy",
    words="reducing on the GPU before the copy",
    summary="Large results are reduced on the device, and only the small result is copied to the host.",
    assumptions=(
        "The result that the program needs (an argmax, a mean) fits in a few kilobytes.",
        "The device reads the tensor once more; the call still waits for the small copy.",
        (
            "Only these copies count: a CPU op selects part of the result at once, or processes it for more than "
            "dispatch takes. That moves to the device."
        ),
        "A tensor that goes back to the device right after that stays there.",
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="large_copy_to_host",
            cause="transfer",
            summary="whole tensors are copied to the host where a small result would be enough",
            look=large_copy_to_host,
            advice=Advice(
                pytorch=REDUCE,
                cuda="Reduce on the device (cub::DeviceReduce) and copy only the result.",
                neutral="Reduce on the device and copy only the result.",
            ),
        ),
    ),
    needs=("the bytes of copies", "CPU ops around them"),
    shows_in_ops=True,
    after=("pin_memory",),
    was_made=was_made,
    implies=("remove_sync", "prefetch", "pin_memory"),
    not_tried="what is computed on the CPU afterwards is known only in the source",
)
