"""Ops for GPU operations without one: captured into a CUDA graph, named by ranges, or of a second trace.

A CUDA graph records no op when it is replayed, and nsys records none at all. Where a trace shows the capture, the ops
around the captured launches belong to the graph's operations, in the same order. Else the same kernels, launched one by
one in this trace or in a torch.profiler trace of the same program, have the ops.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from msgspec import Struct

from warpline.analyses.modules import Modules
from warpline.analyses.op_calls import OpCalls
from warpline.analyses.op_origin import BACKWARD, Origins
from warpline.analyses.recorded_arguments import recorded_arguments
from warpline.analyses.roofline.captured_graphs import Capture, captures_of
from warpline.analyses.roofline.nvtx_ops import nvtx_ops
from warpline.analyses.serving import tokens_of
from warpline.kernels import identify, normalise
from warpline.trace.arrays import NONE, Bools, Int64s, Texts, combinations, containing, grouped
from warpline.trace.launches import graph_calls, launched_ns
from warpline.trace.steps.same_kernels import KernelSequence, aligned, same_kernels
from warpline.trace.table import Names
from warpline.trace.trace import Trace
from warpline.work.parse import recorded_sizes

Evidence = Literal["recorded", "capture", "sequence"]
_PARAMETERS = re.compile(r"\([^()]*\)")
_DECORATION = re.compile(r"\bvoid\b|\bconst\b|\s+")
SAME_TIME = 1.5
"""Beyond this ratio of times, the shapes were others. Of 132 kernels in four pairs of our recordings (nsys and
torch.profiler of one program), all but one, a copy, took at most 1.13 times as long in one as in the other."""
SHORT_NS = 5_000
"""The time of shorter kernels says nothing about their shapes: an empty kernel takes 0.7 to 1.3 µs on an H200, and
files may round to microseconds."""
MATRIX = 2
ANNOTATION_KEYS = ("module_fqn", "name")
"""Keys of an annotation: of torchtitan's pass, and of `mark_kernels("name")`."""
ANNOTATIONS_TRIED = 1_000
"""A graph without an annotation among so many operations has none."""
MIN_ALIGNED = 0.5
"""With less of a graph's operations in the same order elsewhere, that is another program."""
MOST_PAIRS = 20_000_000
"""Larger tables of pairs are not aligned: at 7 bytes each, these take 140 MB."""


class ForeignOps(Struct, frozen=True):
    """Ops of other places for the rows of `gpu`."""

    calls: OpCalls
    """The ops."""
    ops: Int64s
    """For each row of `gpu`, its op there, or NONE."""
    call: Int64s
    """Rows with the same number were launched by one call."""
    frames: Int64s
    """For each row of `gpu`, the frame there of the module that launched its like, or NONE."""
    modules: Texts
    """The names of these modules; empty for none."""
    has_shapes: Bools
    """For each row of `gpu`, whether the op has the shapes of its like; else only op and module are known."""
    evidence: Evidence
    """How it is known: `recorded` with the launch, by the order of a graph's `capture`, or by the `sequence` of kernels
    around it."""

    @property
    def known(self) -> Bools:
        """Rows of `gpu` whose op or module can be looked up there."""
        return (self.ops != NONE) | (self.modules != "")


def foreign_ops(trace: Trace, shapes_from: Trace | None = None) -> tuple[ForeignOps, ...]:
    """All ops from elsewhere for a trace, the most certain first: those that ranges name, captured ones here and in the
    other trace, and those of the same kernels launched one by one, in the other trace and here."""
    found = [named_ops(trace), annotated_modules(trace), captured_ops(trace)]
    if shapes_from is not None:
        found += [captured_elsewhere(trace, shapes_from), ops_of(trace, shapes_from)]
    if len(_replayed(trace)) and len(trace.ops):
        found.append(ops_of(trace, trace))
    return tuple(one for one in found if one is not None and one.known.any())


def named_ops(trace: Trace) -> ForeignOps | None:
    """The ops that the ranges of emit_nvtx() name; None if the trace has ops, or no such ranges."""
    found = None if len(trace.ops) else nvtx_ops(trace)
    if found is None:
        return None
    calls, ops = found
    nowhere = np.full(len(ops), NONE, np.int64)
    return ForeignOps(calls, ops, ops, nowhere, np.full(len(ops), "", object), ops != NONE, "recorded")


def annotated_modules(trace: Trace) -> ForeignOps | None:
    """The modules that torch's `mark_kernels` gave to the nodes of graphs, and torch wrote into the arguments of their
    kernels; layers have one name (`layers.*.attention`)."""
    rows = _replayed(trace)
    names = _annotations(trace, rows[:ANNOTATIONS_TRIED])
    if not any(names):
        return None
    nowhere, modules = np.full(len(trace.gpu), NONE, np.int64), np.full(len(trace.gpu), "", object)
    modules[rows] = [re.sub(r"\.\d+(?=\.|$)", ".*", name) for name in _annotations(trace, rows)]
    nothing = np.zeros(len(trace.gpu), bool)
    return ForeignOps(OpCalls(trace), nowhere, nowhere, nowhere, modules, nothing, "recorded")


def _annotations(trace: Trace, rows: Int64s) -> list[str]:
    """The annotation of each of these operations; empty where there is none."""
    gpu = trace.gpu[rows]
    found = recorded_arguments(trace, gpu.args_offset, gpu.args_length)
    named = (next((one[key] for key in ANNOTATION_KEYS if key in one), "") for one in found)
    return [name if isinstance(name, str) else "" for name in named]


def captured_ops(trace: Trace) -> ForeignOps | None:
    """The ops captured into the graphs of a trace, for each operation that a replay ran; None without any."""
    order = _replayed(trace)
    captures = captures_of(trace) if len(order) else []
    if not captures:
        return None
    known = _first_launches(trace, order, captures)
    labelled = np.flatnonzero(known != NONE)
    if not len(labelled):
        return None
    replays = KernelSequence(_kinds(trace)[0][order], np.zeros(len(order), np.int64))
    # The first launches, one after the other, are the reference.
    reference = _Reference(OpCalls(trace), trace.api.op_id[known[labelled]], known[labelled])
    partner = same_kernels(replays, KernelSequence(replays.kinds[labelled], replays.lanes[labelled]), reference.labels)
    partner[labelled] = np.arange(len(labelled))
    partners = _Partners(order, replays.lanes, partner, partner, partner != NONE)
    return _by_row(trace, reference, partners, "capture")


def captured_elsewhere(trace: Trace, other: Trace) -> ForeignOps | None:
    """The ops that another trace shows being captured, for graphs with the same operations; None without any."""
    order = _replayed(trace)
    captures = captures_of(other) if len(order) else []
    if not captures:
        return None
    calls = np.concatenate([capture.calls for capture in captures])
    reference = _Reference(OpCalls(other), other.api.op_id[calls], calls)
    first = np.cumsum([0, *(len(capture.calls) for capture in captures)])
    partner, exact = np.full(len(order), NONE, np.int64), np.zeros(len(order), bool)
    launch = trace.gpu.api_id[order]
    known: dict[tuple[tuple[str, str], ...], list[int]] = {}
    tokens, captured = _tokens_of_launches(trace, np.unique(launch)), _captured_rows(reference)
    for call, rows in grouped(np.arange(len(order)), launch):
        nodes = _nodes(trace, order[rows])
        if nodes not in known:
            known[nodes] = [number for number, one in enumerate(captures) if _fits(other, one, nodes)]
        fitting = known[nodes]
        if fitting:
            labels = np.stack([reference.labels[first[number] : first[number + 1]] for number in fitting])
            partner[rows] = np.arange(first[fitting[0]], first[fitting[0] + 1])
            has_names = any(captures[fitting[0]].names)
            is_size = _is_size(tokens.get(int(call)), captured, has_names)
            exact[rows] = is_size & (labels == labels[0]).all(axis=0)
    lanes = combinations(launch)[1]
    return _by_row(trace, reference, _Partners(order, lanes, partner, partner, exact), "capture")


def _tokens_of_launches(trace: Trace, calls: Int64s) -> dict[int, int]:
    """The tokens of the engine's step around each of these calls, where its range says so."""
    found = [tokens_of(name or "") for name in trace.all_steps.name.tolist()]
    step = np.searchsorted(trace.all_steps.start_ns, trace.api.start_ns[calls], side="right") - 1
    known = ((call, found[at]) for call, at in zip(calls.tolist(), step.tolist(), strict=True) if at >= 0)
    return {call: one.tokens for call, one in known if one is not None and one.tokens is not None}


def _captured_rows(reference: _Reference) -> int | None:
    """The rows of most matmuls that were captured: the tokens of the batch."""
    counted: Counter[int] = Counter()
    for op in reference.ops[reference.ops != NONE].tolist():
        name, shapes, _ = reference.calls.text(op)
        sizes = [size for size in recorded_sizes(shapes) if len(size) == MATRIX] if name.endswith("mm") else []
        counted.update(size[0] for size in sizes[:1])
    return counted.most_common(1)[0][0] if counted else None


def _is_size(tokens: int | None, captured: int | None, has_names: bool) -> bool:
    """Whether a replay is of the captured batch size: engines pad a batch to the next size that they captured. Where
    the capture names its kernels, which are chosen by size, the names are enough."""
    if tokens is None or captured is None:
        return has_names
    return tokens == captured or (has_names and tokens < captured)


def ops_of(trace: Trace, other: Trace) -> ForeignOps:
    """The ops of another recording of the same program for all operations; or those of this one's operations that are
    launched one by one, for the same ones in its graphs."""
    here, there = _Operations(trace), _Operations(other)
    lent = np.arange(len(there.order)) if other is not trace else np.flatnonzero(there.known)
    reference = _Reference(OpCalls(other), there.ops[lent], there.api[lent])
    kinds = _kinds(trace, other)
    mine, theirs = (
        KernelSequence(kinds[0][here.order], here.lanes),
        KernelSequence(kinds[1][there.order[lent]], there.lanes[lent]),
    )
    same = _same_time(same_kernels(mine, theirs, reference.labels), here.time_ns, there.time_ns[lent])
    module = same_kernels(mine, theirs, reference.origins)
    # Other batch sizes have other grids and other kernels for one op, in the same order.
    alike = _in_order(here, there, lent)
    labels = np.append(reference.labels, NONE)
    exact = (same != NONE) & ((alike == NONE) | (labels[alike] == labels[same]))
    op, module = np.where(exact | (alike == NONE), same, alike), np.where(alike == NONE, module, alike)
    if other is trace:
        op[here.known], module[here.known] = NONE, NONE
    return _by_row(trace, reference, _Partners(here.order, here.lanes, op, module, exact), "sequence")


def _in_order(here: _Operations, there: _Operations, lent: Int64s) -> Int64s:
    """For the operations of each graph launch, those of the most similar step there, or of all, in the same order."""
    found = np.full(len(here.order), NONE, np.int64)
    codes = _numbered(here.keys, there.keys)
    mine, theirs = (
        [column[: len(here.order)] for column in codes],
        [column[len(here.order) :][lent] for column in codes],
    )
    steps = [rows for _, rows in grouped(np.arange(len(lent)), there.steps[lent])]
    known: dict[bytes, Int64s] = {}
    for _, rows in grouped(np.flatnonzero(here.in_graph), here.lanes[here.in_graph]):
        name = mine[0][rows].tobytes()
        if name not in known:
            step = max(steps, key=lambda one: _similarity(mine[0][rows], theirs[0][one]), default=np.zeros(0, np.int64))
            known[name] = _pairs([column[rows] for column in mine], [column[step] for column in theirs], step)
        found[rows] = known[name]
    return found


def _similarity(mine: Int64s, theirs: Int64s) -> float:
    """Operations that both have over those of one of them (Dice)."""
    counts = [np.bincount(codes, minlength=int(max(mine.max(), theirs.max())) + 1) for codes in (mine, theirs)]
    return 2 * float(np.minimum(*counts).sum()) / (len(mine) + len(theirs))


def _pairs(mine: list[Int64s], theirs: list[Int64s], rows: Int64s) -> Int64s:
    """For each operation the row there that it is aligned with: of the same name, or of the same op of a library."""
    nothing = np.full(len(mine[0]), NONE, np.int64)
    if not 0 < len(rows) * len(nothing) <= MOST_PAIRS:
        return nothing
    (names, ops), (their_names, their_ops) = mine, theirs
    same_op = (ops[:, None] == their_ops) & (ops != NONE)[:, None]
    partner = aligned((names[:, None] == their_names).astype(np.int8) + same_op)
    if (partner != NONE).mean() < MIN_ALIGNED:
        return nothing  # another program
    return np.where(partner == NONE, NONE, rows[partner])


def _numbered(mine: list[tuple[str, str]], theirs: list[tuple[str, str]]) -> tuple[Int64s, Int64s]:
    """Numbers for the names, and for the ops of kernels, of both; NONE for an empty text."""
    columns = []
    for place in range(2):
        numbers: dict[str, int] = {"": NONE}
        texts = (pair[place] for pair in mine + theirs)
        columns.append(np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64))
    names, ops = columns
    return names, ops


class _Operations(Struct, frozen=True, dict=True):
    """The GPU operations of a trace in order, each graph launch and each stream a lane of its own."""

    trace: Trace

    @cached_property
    def order(self) -> Int64s:
        """Rows of `gpu`."""
        return np.lexsort((self.trace.gpu.start_ns, self._lane_of_row))

    @cached_property
    def lanes(self) -> Int64s:
        """The lane of each."""
        return self._lane_of_row[self.order]

    @cached_property
    def _lane_of_row(self) -> Int64s:
        gpu = self.trace.gpu
        graph = graph_calls(gpu, self.trace.api)
        alone = graph == NONE
        return combinations(graph, np.where(alone, gpu.device, NONE), np.where(alone, gpu.stream, NONE))[1]

    @cached_property
    def ops(self) -> Int64s:
        """The op of each, also where a graph captured in the trace replays it."""
        own, inner = self.trace.gpu.op_id, captured_ops(self.trace)
        return (own if inner is None else np.where(inner.ops != NONE, inner.ops, own))[self.order]

    @cached_property
    def api(self) -> Int64s:
        """The call that launched each alone; NONE for operations of graphs."""
        return np.where(self.in_graph, NONE, self.trace.gpu.api_id[self.order])

    @property
    def known(self) -> Bools:
        """Which have an op or a call of their own."""
        return (self.ops != NONE) | (self.api != NONE)

    @property
    def time_ns(self) -> Int64s:
        """How long each takes."""
        return (self.trace.gpu.end_ns - self.trace.gpu.start_ns)[self.order]

    @cached_property
    def in_graph(self) -> Bools:
        """Which are operations of CUDA graphs."""
        return graph_calls(self.trace.gpu, self.trace.api)[self.order] != NONE

    @cached_property
    def steps(self) -> Int64s:
        """The step in which each was launched; NONE outside of steps."""
        steps, launched = self.trace.all_steps, launched_ns(self.trace.gpu, self.trace.api)[self.order]
        return containing(steps.start_ns, steps.end_ns, launched)

    @cached_property
    def keys(self) -> list[tuple[str, str]]:
        """The spelling of each kernel, and its op (class and operation) where its name says so."""
        gpu = self.trace.gpu
        spelt, ops = gpu.name.renamed(_spelling), gpu.name.renamed(_op_of_kernel)
        kinds = np.where(gpu.kind.equal("kernel"), "", gpu.kind.texts)
        names = np.where(kinds == "", spelt.texts, kinds)[self.order].tolist()
        return list(zip(names, np.where(kinds == "", ops.texts, "")[self.order].tolist(), strict=True))


class _Reference(Struct, frozen=True, dict=True):
    """Operations in order whose ops are known."""

    calls: OpCalls
    ops: Int64s
    """The op of each, or NONE."""
    api: Int64s
    """The call that launched or captured each, or NONE."""

    @cached_property
    def places(self) -> Int64s:
        """Which operation of its op's call each is, from 0."""
        places = np.zeros(len(self.ops), np.int64)
        for _, rows in grouped(np.arange(len(self.ops)), self.ops):
            places[rows] = np.arange(len(rows))
        return places

    @cached_property
    def labels(self) -> Int64s:
        """A number for the op, its arguments and the place; NONE without an op."""
        numbers = self.calls.numbers_of(self.ops)
        return np.where(self.ops == NONE, NONE, combinations(numbers, self.places)[1])

    @cached_property
    def frames(self) -> Int64s:
        """The frame of the module that launched each, or NONE."""
        return Modules(self.calls.trace).frames(self.ops, self.api)

    @cached_property
    def modules(self) -> Texts:
        """The name of that module; empty for none."""
        origins = Origins(self.calls.trace)
        names = Modules(self.calls.trace, origins).names(self.frames)
        backward = origins.is_backward[self.ops] & (self.frames != NONE)
        return np.where(backward, names + BACKWARD, names)

    @cached_property
    def origins(self) -> Int64s:
        """A number for the module; NONE without one."""
        numbers: dict[str, int] = {"": NONE}
        return np.array([numbers.setdefault(name, len(numbers)) for name in self.modules.tolist()], np.int64)


class _Partners(Struct, frozen=True):
    """Operations of a trace, in order, and their like in the reference."""

    order: Int64s
    """Rows of `gpu`."""
    lanes: Int64s
    op: Int64s
    """The operation of the reference whose op each has, or NONE."""
    module: Int64s
    """The same for the module."""
    exact: Bools
    """Whether the op has the same shapes."""


def _by_row(trace: Trace, reference: _Reference, partners: _Partners, evidence: Evidence) -> ForeignOps:
    """The ops by row of `gpu`. A new call begins with another op, or with a place that was had already."""
    order, lanes, partner, other = partners.order, partners.lanes, partners.op, partners.module
    ops, places = np.append(reference.ops, NONE)[partner], np.append(reference.places, NONE)[partner]
    numbers = reference.calls.numbers_of(ops)
    new = np.ones(len(order), bool)
    new[1:] = (numbers[1:] != numbers[:-1]) | (places[1:] <= places[:-1]) | (lanes[1:] != lanes[:-1])
    new |= numbers == NONE
    found, call, frames = (np.full(len(trace.gpu), NONE, np.int64) for _ in range(3))
    found[order], call[order], frames[order] = ops, np.cumsum(new), np.append(reference.frames, NONE)[other]
    modules, has_shapes = np.full(len(trace.gpu), "", object), np.zeros(len(trace.gpu), bool)
    modules[order] = np.append(reference.modules, "")[other]
    has_shapes[order] = partners.exact & (ops != NONE)
    return ForeignOps(reference.calls, found, call, frames, modules, has_shapes, evidence)


def _replayed(trace: Trace) -> Int64s:
    """The operations that graphs replayed, launch by launch, in the order of the graph's nodes."""
    calls = graph_calls(trace.gpu, trace.api)
    rows = np.flatnonzero(calls != NONE)
    return rows[np.lexsort((trace.gpu.start_ns[rows], trace.gpu.graph_node_id[rows], calls[rows]))]


def _nodes(trace: Trace, rows: Int64s) -> tuple[tuple[str, str], ...]:
    """Kind and name of each operation of a graph launch."""
    gpu = trace.gpu[rows]
    return tuple(zip(gpu.kind.texts.tolist(), gpu.name.texts.tolist(), strict=True))


def _first_launches(trace: Trace, order: Int64s, captures: list[Capture]) -> Int64s:
    """The captured call of each replayed operation, for the first launch of each graph; NONE for all others.

    The first launch after a capture has the same nodes; where several captures wait for theirs, only one may fit.
    """
    calls = trace.gpu.api_id[order]
    result = np.full(len(order), NONE, np.int64)
    waiting = list(captures)
    for call, rows in grouped(np.arange(len(order)), calls):
        nodes = _nodes(trace, order[rows])
        fitting = [one for one in waiting if one.end < call and _fits(trace, one, nodes)]
        if len(fitting) == 1:
            result[rows] = fitting[0].calls
            waiting.remove(fitting[0])
        if not waiting:
            break
    return result


def _fits(trace: Trace, capture: Capture, nodes: tuple[tuple[str, str], ...]) -> bool:
    """Whether a launch ran these nodes: by kind, and by name where the call, or a compiled op, has its kernel's."""
    if capture.kinds != [kind for kind, _ in nodes]:
        return False
    ops = trace.ops.name.at(trace.api.op_id[capture.calls]).texts.tolist()
    return all(
        (not call or call == name) and (not (op or "").startswith("triton_") or op == name)
        for call, op, (_, name) in zip(capture.names, ops, nodes, strict=True)
    )


def _kinds(*traces: Trace) -> list[Int64s]:
    """A number for each operation by kind, name, grid and block; the same in all traces."""
    tables = [trace.gpu for trace in traces]
    kinds = Names.joined([gpu.kind for gpu in tables])
    names = Names.joined([gpu.name.renamed(_spelling) for gpu in tables])
    sizes = [f"{size}_{axis}" for size in ("grid", "block") for axis in "xyz"]
    columns = [names.codes, *(np.concatenate([gpu.column(size) for gpu in tables]) for size in sizes)]
    is_kernel = kinds.equal("kernel")
    _, numbers = combinations(kinds.codes, *(np.where(is_kernel, column, NONE) for column in columns))
    return np.split(numbers, np.cumsum([len(gpu) for gpu in tables])[:-1])


@lru_cache(maxsize=10_000)
def _op_of_kernel(name: str) -> str:
    """What a kernel does, whichever kernel was chosen for the shapes; empty if its name does not say."""
    identity = identify(name)
    return f"{identity.kernel_class} {identity.op}" if identity.op and identity.kernel_class != "unknown" else ""


@lru_cache(maxsize=10_000)
def _spelling(name: str) -> str:
    """The name without what demanglers write in different ways: parameters, spaces, return types and `const`."""
    text = normalise(name).text
    while (shorter := _PARAMETERS.sub("", text)) != text:
        text = shorter
    return _DECORATION.sub("", text)


def _same_time(partner: Int64s, mine_ns: Int64s, theirs_ns: Int64s) -> Int64s:
    """The partners without those of groups that take a different time in the two recordings."""
    found = partner.copy()
    known = np.flatnonzero(partner != NONE)
    for other, rows in grouped(known, partner[known]):
        here, there = max(float(np.median(mine_ns[rows])), 1.0), max(float(theirs_ns[other]), 1.0)
        if max(here, there) > max(SHORT_NS, SAME_TIME * min(here, there)):
            found[rows] = NONE
    return found
