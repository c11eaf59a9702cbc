"""Detours through the host: what it works out of a tensor from the device, the device does where it is."""

from __future__ import annotations

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.replay.graph.model import SEGMENT, THREAD
from warpline.replay.patterns.copies import copies_of, device_byte_ns
from warpline.replay.scene import Scene
from warpline.replay.whatif import Prediction
from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE, Bools, Floats, Int64s
from warpline.trace.names import texts
from warpline.units import duration, several, size
from warpline.work.parse import json_list

LARGE_RESULT_BYTES = 1 << 20
"""A copy to the host above this size is a tensor that could be reduced first."""
MOST_NODES_AFTER = 6
"""How far after a copy's call what works on its result is looked for."""
TAKEN_IN_PART = (
    "aten::gather",
    "aten::index",
    "aten::index_select",
    "aten::narrow",
    "aten::select",
    "aten::slice",
    "aten::take",
)
"""Ops that take some of a tensor's numbers. Most do no work, and yet say that the others are not wanted."""
MOST_TIMES_LARGER = 8
"""What comes back has as many numbers: in another type it has at most eight times as many bytes, or as few."""
REDUCE = (
    "Reduce on the device (argmax, mean, topk) and copy only what you look at: logits.argmax(-1).cpu() instead of "
    "logits.cpu().argmax(-1)."
)
STAY = "What goes back to the device need not leave it: write what NumPy does in between with torch's ops."


def apply(bench: Workbench, case: int) -> int:
    """Large copies to the host take the time of a pass over device memory."""
    scene = bench.scene
    copies = copies_of(scene, "DtoH", bench)
    copies, segments, taken = _used_by_host(bench, copies[scene.bytes[copies] >= LARGE_RESULT_BYTES])
    if not len(copies):
        return 0
    new = scene.device.smallest_copy.at(case) * 2 + scene.bytes[copies].astype(np.float64) * device_byte_ns(scene, case)
    bench.shorten(copies, new)
    _staging(bench, copies, case)
    host = bench.graph.duration[segments]
    left = np.maximum(host - taken, 0.0) + scene.host.launched_op.at(case)
    bench.graph.duration[segments] = np.minimum(host, left)
    bench.remove_work(_sent_back(bench, copies))
    return len(copies)


def _staging(bench: Workbench, copies: Int64s, case: int) -> None:
    """The host no longer moves the data out of a staging buffer after the copy, nor prepares one before."""
    graph, start_ns = bench.graph, bench.scene.device.launch_to_start.at(case)
    release = np.isin(graph.edge_from, copies) & ~bench.scene.is_work[graph.edge_to]
    graph.lag[release] = np.minimum(graph.lag[release], start_ns)
    into = np.isin(graph.edge_to, copies)
    graph.lag[into] = np.minimum(graph.lag[into], start_ns)


class _HostWork:
    """What the CPU does of tensors that were copied to it: in ops that launch nothing."""

    def __init__(self, scene: Scene) -> None:
        starts, ends, threads = scene.op_spans
        launching = np.zeros(len(starts) + 1, bool)
        launching[scene.root_op[scene.work]] = True
        ops = np.flatnonzero((scene.roots[:-1] == np.arange(len(starts))) & ~launching[:-1])
        length = scene.graph.measured_end - scene.graph.measured_start
        self._scene = scene
        self._ops = ops[np.argsort(starts[ops], kind="stable")]
        self._starts, self._threads = starts[self._ops], threads[self._ops]
        self._shapes, self._names = texts(scene.trace.ops["shapes"]), texts(scene.trace.ops["name"])
        self._in_ops = scene.op_share * length
        self._of_host = scene.covered(starts[ops], ends[ops], threads[ops]) * length

    def on(self, copy: int, node: int) -> float:
        """How long a segment after a copy works on its result; 0 where it does not."""
        taking = self._taking(copy, node)
        part = len(taking) == 1 and self._names[taking[0]] in TAKEN_IN_PART
        works = bool(taking) and self._of_host[node] > self._scene.host.longest_dispatch.expected
        # The next op finds its code driven out of the caches: how long it takes to its launch says nothing.
        return float(self._in_ops[node]) if part or works else 0.0

    def _taking(self, copy: int, node: int) -> list[int]:
        """The ops in a segment that take a tensor like the copied one; where no shapes are recorded, all of them."""
        graph, around = self._scene.graph, int(self._scene.op[copy])
        begin, end = np.searchsorted(self._starts, [graph.measured_start[node], graph.measured_end[node]])
        near = self._ops[begin:end][self._threads[begin:end] == graph.lane[node]].tolist()
        copied = json_list(self._shapes[around])[:1] if around != NONE else []
        return [op for op in near if not copied or copied[0] in json_list(self._shapes[op])]


def _used_by_host(bench: Workbench, copies: Int64s) -> tuple[Int64s, Int64s, Floats]:
    """Those copies that the host works on at once, the segments in which it does, and for how long."""
    graph, scene = bench.graph, bench.scene
    used: list[tuple[int, int, float]] = []
    if len(copies):
        after = graph.edge_kind == THREAD
        next_of = dict(zip(graph.edge_from[after].tolist(), graph.edge_to[after].tolist(), strict=True))
        host = _HostWork(scene)
    for copy in copies[scene.call_of_work[copies] != NONE].tolist():
        node = int(scene.call_of_work[copy])
        # The call, its return, and the waits of the same op come first.
        for _ in range(MOST_NODES_AFTER):
            node = next_of.get(node, NONE)
            if node == NONE:
                break
            taken = host.on(copy, node) if graph.kind[node] == SEGMENT else 0.0
            if taken:
                used.append((copy, node, taken))
                break
    found, segments, lengths = zip(*used, strict=True) if used else ((), (), ())
    return np.array(found, np.int64), np.array(segments, np.int64), np.array(lengths, np.float64)


def _sent_back(bench: Workbench, copies: Int64s) -> Int64s:
    """Copies to the device that are the next work of the step after one of these, and may bring as much back."""
    scene = bench.scene
    order = scene.work[np.argsort(scene.launch_moment[scene.work], kind="stable")]
    place = np.zeros(len(scene.graph), np.int64)
    place[order] = np.arange(len(order))
    following = np.append(order, NONE)[place[copies] + 1]
    copies, following = copies[following != NONE], following[following != NONE]
    ratio = scene.bytes[following] / np.maximum(scene.bytes[copies], 1)
    back = (scene.work_text("copy_kind")[following] == "HtoD") & (scene.step[following] == scene.step[copies])
    back &= (ratio >= 1 / MOST_TIMES_LARGER) & (ratio <= MOST_TIMES_LARGER)
    result: Int64s = following[back]
    return result


def large_copy_to_host(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Detours of tensors through the host, which the device could spare them."""
    change = evidence.changed(FIX.name)
    down = change.work & (evidence.scene.work_text("copy_kind") == "DtoH")
    back = change.work & ~down
    if not evidence.per_step(down):
        return None
    again = f", and {several(evidence.per_step(back), 'copy', 'copies')} back" if evidence.per_step(back) else ""
    return Claim(
        f"Whole tensors go to the host, which works on them at once: {_counted(evidence, down, 'large copy')}{again}.",
        evidence.places(down),
        f"{REDUCE} {STAY}" if evidence.per_step(back) else REDUCE,
    )


def _counted(evidence: Evidence, copies: Bools, word: str) -> str:
    total = float(evidence.scene.bytes[evidence.in_steps(copies)].sum()) / evidence.steps
    count = several(evidence.per_step(copies), word, f"{word.removesuffix('y')}ies")
    return f"{count} a step, {size(total)}, {duration(evidence.time_per_step(copies))}"


FIX = Fix(
    name="reduce_before_copy",
    words="reducing on the GPU before the copy",
    summary="Large results are reduced on the device, and only a few numbers are copied to the host.",
    assumptions=(
        "What the program wants of the tensor (an argmax, a mean) fits in a few kilobytes.",
        "The device reads the tensor once more; the call still waits for the small copy.",
        (
            "Only copies count of which an op of the CPU at once takes a part, or makes something for longer than "
            "dispatch takes: that moves to the device."
        ),
        "What goes back to the device right after that stays there.",
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="large_copy_to_host",
            cause="transfer",
            summary="whole tensors take a detour through the host, where a few numbers would do",
            look=large_copy_to_host,
            advice=Advice(
                pytorch=REDUCE,
                cuda="Reduce on the device (cub::DeviceReduce) and copy only the result.",
                other="Reduce on the device and copy only what you look at.",
            ),
        ),
    ),
    needs=("the bytes of copies", "CPU ops around them"),
    after=("pin_memory",),
)
