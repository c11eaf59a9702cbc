"""Detours through the host: what it works out for the device, or of a tensor from it, the device does where it is."""

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
"""How far after a copy's call what works on its result is looked for, and how long it must take."""
SLOWEST_PASS_BYTES_PER_NS, FASTEST_PASS_BYTES_PER_NS = 0.2, 20.0
"""A silence in which one thread goes over a tensor at such a rate is a function of NumPy or the like: memory gives it
no more, and less is a loop in Python, which takes 20 ns or longer for a number of mostly four bytes."""
MAPPED_BYTES = 32 << 20
"""A larger tensor of the host is mapped anew by the allocator each time (M_MMAP_THRESHOLD goes no higher), and unmapped
when it is freed; smaller ones come from memory that the process keeps."""
FREED_BYTES_PER_NS = 20.0
"""At which it is unmapped, or a little slower: of nine tensors of 51 MB eight took 1.4 to 2.3 ms, and one 4.8."""
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
MAKE = (
    "Make tensors where they are used: torch.randn(shape, device='cuda'); masks once, as a buffer of the module "
    "(register_buffer)."
)


def apply(bench: Workbench, case: int) -> int:
    """Large copies to the host, and of what it made of nothing, take the time of a pass over device memory."""
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
    """The host no longer moves the data out of a staging buffer after the copy, nor prepares one before."""
    graph = bench.graph
    release = np.isin(graph.edge_from, copies) & ~bench.scene.is_work[graph.edge_to]
    graph.lag[release] = np.minimum(graph.lag[release], 5_000.0)
    into = np.isin(graph.edge_to, copies)
    graph.lag[into] = np.minimum(graph.lag[into], 5_000.0)


class _HostWork:
    """What the CPU does of tensors that were copied to it: in ops that launch nothing, or in silence."""

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
        """How long a segment after a copy works on its result, and frees it; 0 where it does not."""
        size, silent = int(self._scene.bytes[copy]), float(self._silent[node])
        freeing = size / FREED_BYTES_PER_NS if size > MAPPED_BYTES else 0.0
        taking = self._taking(copy, node)
        part = len(taking) == 1 and self._names[taking[0]] in TAKEN_IN_PART
        if part or (taking and self._of_host[node] > HOST_OP_NS):
            # The next op finds its code driven out of the caches: how long it takes to its launch says nothing.
            return float(self._in_ops[node]) + min(silent, freeing)
        shortest, longest = size / FASTEST_PASS_BYTES_PER_NS, size / SLOWEST_PASS_BYTES_PER_NS
        return silent if case != PESSIMISTIC and shortest < silent - freeing < longest else 0.0

    def _taking(self, copy: int, node: int) -> list[int]:
        """The ops in a segment that take a tensor like the copied one; where no shapes are recorded, all of them."""
        graph, around = self._scene.graph, int(self._scene.op[copy])
        begin, end = np.searchsorted(self._starts, [graph.measured_start[node], graph.measured_end[node]])
        near = self._ops[begin:end][self._threads[begin:end] == graph.lane[node]].tolist()
        copied = json_list(self._shapes[around])[:1] if around != NONE else []
        return [op for op in near if not copied or copied[0] in json_list(self._shapes[op])]


def _used_by_host(bench: Workbench, copies: Int64s, case: int) -> tuple[Int64s, Int64s, Floats]:
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
            taken = host.on(copy, node, case) if graph.kind[node] == SEGMENT else 0.0
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
    up = change.work & ~down
    made, back = up & ~change.gone, up & change.gone
    parts = []
    if evidence.per_step(down):
        again = f", and {several(evidence.per_step(back), 'copy', 'copies')} back" if evidence.per_step(back) else ""
        parts.append(
            "Whole tensors go to the host, which works on them at once: "
            f"{_counted(evidence, down, 'large copy')}{again}."
        )
    if evidence.per_step(made):
        parts.append(
            f"In the middle of the step the CPU makes tensors for the device (masks, noise): "
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
        "Large results are reduced on the device, and only a few numbers are copied to the host; so is "
        "worked out on the device what the host only makes for it."
    ),
    assumptions=(
        "What the program wants of the tensor (an argmax, a mean) fits in a few kilobytes.",
        "The device reads the tensor once more; the call still waits for the small copy.",
        (
            "Only copies count of which an op of the CPU at once takes a part, or makes something for longer than "
            "50 µs, or that a silence follows as long as NumPy may take for the tensor: that moves to the device."
        ),
        (
            "The host frees no tensor afterwards (above 32 MB that takes up to 50 ns a kilobyte), and finds its "
            "code in its caches."
        ),
        "What goes back to the device right after that stays there.",
        (
            "Masks and noise that ops of the CPU make between the kernels of a step (full, triu, randn) are the "
            "device's."
        ),
        "In the worst case silences are something else.",
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
                pytorch=(f"{REDUCE} {MAKE}"),
                cuda=(
                    "Reduce on the device (cub::DeviceReduce) and copy only the result; generate random numbers "
                    "there (cuRAND)."
                ),
                other="Reduce on the device and copy only what you look at.",
            ),
        ),
    ),
    needs=("the bytes of copies", "CPU ops around them"),
    after=("pin_memory",),
)
