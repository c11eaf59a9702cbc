"""Computes on the device what now takes a detour through the host."""

from __future__ import annotations

import numpy as np

from warpline.fixes.claim import Claim
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.words import several
from warpline.replay.costs import constants
from warpline.replay.costs.ranges import PESSIMISTIC
from warpline.replay.graph.model import SEGMENT, THREAD
from warpline.replay.patterns.copies import (
    LAUNCHED_OP_NS,
    copies_of,
    device_bytes_per_ns,
    with_warm_caches,
)
from warpline.replay.patterns.host_spans import take_out
from warpline.replay.patterns.made_on_host import made_for_device
from warpline.replay.scene import Scene
from warpline.replay.whatif import Prediction
from warpline.replay.workbench import Workbench
from warpline.trace.columns import NONE, Bools, Floats, Int64s
from warpline.trace.names import texts
from warpline.units import duration, size
from warpline.work.parse import json_list

LARGE_RESULT_BYTES = 1 << 20
"""A copy to the host above this size is a tensor that could be reduced first."""
HOST_OP_NS = 50_000
MOST_NODES_AFTER = 6
"""How many nodes after a copy's call may process its result, and how long a host op must take."""
SLOWEST_PASS_BYTES_PER_NS, FASTEST_PASS_BYTES_PER_NS = 0.2, 20.0
"""A gap in which one thread reads a tensor at this rate is a NumPy function or similar: memory allows
no more, and less is a loop in Python, which takes 20 ns or longer per number of mostly four bytes."""
MAPPED_BYTES = 32 << 20
"""The allocator maps a larger host tensor again each time (M_MMAP_THRESHOLD goes no higher), and unmaps it
when it is freed; smaller ones come from memory that the process keeps."""
FREED_BYTES_PER_NS = 20.0
"""Rate of unmapping: of nine tensors of 51 MB eight took 1.4 to 2.3 ms, and one 4.8 ms."""
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
MOST_TIMES_LARGER = 8
"""The copy back has as many elements: in another dtype it has at most eight times more or fewer bytes."""
REDUCE = (
    "Reduce on the device (argmax, mean, topk) and copy only the result: logits.argmax(-1).cpu() instead of "
    "logits.cpu().argmax(-1)."
)
STAY = "A tensor that goes back to the device need not leave it: replace the NumPy code in between with torch ops."
MAKE = (
    "Create tensors on the device: torch.randn(shape, device='cuda'); create masks once, as a module buffer "
    "(register_buffer)."
)


def apply(bench: Workbench, case: int) -> int:
    """Replace large copies to the host, and uploads of tensors made on it, by one pass over device memory."""
    scene = bench.scene
    copies = copies_of(scene, "DtoH", bench)
    copies, segments, taken = _used_by_host(bench, copies[scene.bytes[copies] >= LARGE_RESULT_BYTES], case)
    made = list(made_for_device(bench))
    if not len(copies) and not made:
        return 0
    passed = np.concatenate([copies, np.array([copy for copy, *_ in made], np.int64)])
    new = constants.PINNED_COPY_NS.at(case) * 2 + scene.bytes[passed] / device_bytes_per_ns(scene, case)
    bench.shorten(passed, new)
    _staging(bench, passed)
    host = bench.graph.duration[segments]
    bench.graph.duration[segments] = np.maximum(host - taken, 0.0)
    with_warm_caches(bench, copies)
    bench.graph.duration[segments] = np.minimum(host, bench.graph.duration[segments] + LAUNCHED_OP_NS)
    bench.remove_work(_sent_back(bench, copies))
    if made:
        starts, ends, threads = (np.array(column, np.int64) for column in list(zip(*made, strict=True))[1:])
        take_out(bench, starts, ends, threads)
        bench.graph.duration[scene.call_of_work[passed[len(copies) :]]] = LAUNCHED_OP_NS
    return len(passed)


def _staging(bench: Workbench, copies: Int64s) -> None:
    """Remove the staging of the copies on the host, before and after them."""
    graph = bench.graph
    release = np.isin(graph.edge_from, copies) & ~bench.scene.is_work[graph.edge_to]
    graph.lag[release] = np.minimum(graph.lag[release], 5_000.0)
    into = np.isin(graph.edge_to, copies)
    graph.lag[into] = np.minimum(graph.lag[into], 5_000.0)


class _HostWork:
    """CPU time spent on tensors that were copied to the host: in ops that launch nothing, or outside ops."""

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
        self._silent = np.maximum(1 - scene.op_share - scene.input_share, 0.0) * length

    def on(self, copy: int, node: int, case: int) -> float:
        """Time that a segment after a copy spends on its result and on freeing it; 0 if none."""
        size, silent = int(self._scene.bytes[copy]), float(self._silent[node])
        freeing = size / FREED_BYTES_PER_NS if size > MAPPED_BYTES else 0.0
        taking = self._taking(copy, node)
        part = len(taking) == 1 and self._names[taking[0]] in TAKEN_IN_PART
        if part or (taking and self._of_host[node] > HOST_OP_NS):
            # The copy evicts the next op's code from the caches, so its time to launch does not count.
            return float(self._in_ops[node]) + min(silent, freeing)
        shortest, longest = size / FASTEST_PASS_BYTES_PER_NS, size / SLOWEST_PASS_BYTES_PER_NS
        return silent if case != PESSIMISTIC and shortest < silent - freeing < longest else 0.0

    def _taking(self, copy: int, node: int) -> list[int]:
        """The ops in a segment that take a tensor of the copied shape; all ops if no shapes are recorded."""
        graph, around = self._scene.graph, int(self._scene.op[copy])
        begin, end = np.searchsorted(self._starts, [graph.measured_start[node], graph.measured_end[node]])
        near = self._ops[begin:end][self._threads[begin:end] == graph.lane[node]].tolist()
        copied = json_list(self._shapes[around])[:1] if around != NONE else []
        return [op for op in near if not copied or copied[0] in json_list(self._shapes[op])]


def _used_by_host(bench: Workbench, copies: Int64s, case: int) -> tuple[Int64s, Int64s, Floats]:
    """Copies whose result the host uses at once, the segments that use it, and the time spent."""
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
            taken = host.on(copy, node, case) if graph.kind[node] == SEGMENT else 0.0
            if taken:
                used.append((copy, node, taken))
                break
    found, segments, lengths = zip(*used, strict=True) if used else ((), (), ())
    return np.array(found, np.int64), np.array(segments, np.int64), np.array(lengths, np.float64)


def _sent_back(bench: Workbench, copies: Int64s) -> Int64s:
    """Copies to the device that directly follow one of these in its step, and are of similar size."""
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
    """Tensors that take an unnecessary detour through the host."""
    change = evidence.changed(FIX.name)
    down = change.work & (evidence.scene.work_text("copy_kind") == "DtoH")
    up = change.work & ~down
    made, back = up & ~change.gone, up & change.gone
    parts = []
    if evidence.per_step(down):
        again = f", and {several(evidence.per_step(back), 'copy', 'copies')} back" if evidence.per_step(back) else ""
        parts.append(
            "Whole tensors are copied to the host and processed there: "
            f"{_counted(evidence, down, 'large copy')}{again}."
        )
    if evidence.per_step(made):
        parts.append(
            f"The CPU creates tensors for the device during the step (masks, noise): "
            f"{_counted(evidence, made, 'copy')}."
        )
    if not parts:
        return None
    advice = [text for text, nodes in ((REDUCE, down), (STAY, back), (MAKE, made)) if evidence.per_step(nodes)]
    return Claim(" ".join(parts), evidence.places(down | made), " ".join(advice))


def _counted(evidence: Evidence, copies: Bools, word: str) -> str:
    total = float(evidence.scene.bytes[evidence.in_steps(copies)].sum()) / evidence.steps
    count = several(evidence.per_step(copies), word, f"{word.removesuffix('y')}ies")
    return f"{count} a step, {size(total)}, {duration(evidence.time_per_step(copies))}"


FIX = Fix(
    name="reduce_before_copy",
    words="reducing on the GPU before the copy",
    summary=(
        "Large results are reduced on the device, and only the small result is copied to the host; masks and "
        "noise are created on the device."
    ),
    assumptions=(
        "The result that the program needs (an argmax, a mean) fits in a few kilobytes.",
        "The device reads the tensor once more; the call still waits for the small copy.",
        (
            "Only these copies count: a CPU op selects part of the result at once, or processes it for more than "
            "50 µs, or a gap follows that is as long as NumPy takes for the tensor. That moves to the device."
        ),
        (
            "The host no longer frees the tensor (above 32 MB that takes up to 50 ns per kilobyte), and its code stays "
            "in its caches."
        ),
        "A tensor that goes back to the device right after that stays there.",
        (
            "Masks and noise that CPU ops create between the kernels of a step (full, triu, randn) are created on the "
            "device."
        ),
        "In the worst case gaps do not count.",
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
                pytorch=(f"{REDUCE} {MAKE}"),
                cuda=(
                    "Reduce on the device (cub::DeviceReduce) and copy only the result; generate random numbers "
                    "there (cuRAND)."
                ),
                other="Reduce on the device and copy only the result.",
            ),
        ),
    ),
    needs=("the bytes of copies", "CPU ops around them"),
    after=("pin_memory",),
)
