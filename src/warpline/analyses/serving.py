"""The steps of a serving engine by phase: prefill, decode and both together, and what an engine does before it serves.

vLLM, SGLang and TensorRT-LLM write the requests and tokens of a step into the name of its range. A prompt is read
(prefill) with many tokens a request, an answer is written (decode) with one: their times are not alike, and neither are
their remedies.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Literal

import numpy as np
from msgspec import Struct, to_builtins

from warpline.analyses.idle.gaps import CAUSES, Gaps
from warpline.analyses.idle.host_activity import capture_spans
from warpline.analyses.steps import step_times
from warpline.api_names import BEGIN_CAPTURE, GRAPH_LAUNCH
from warpline.intervals import Spans, difference, intersection, joined, union
from warpline.library_names import ENGINE_STEP
from warpline.trace.arrays import NONE, Bools, containing, count_of, grouped
from warpline.trace.launches import launched_ns
from warpline.trace.steps.token_reads import token_reads
from warpline.trace.trace import Trace
from warpline.work.parse import recorded_sizes

Engine = Literal["vllm", "sglang", "tensorrt_llm", "tgi"]
Phase = Literal["prefill", "decode", "mixed", "with prefill", "empty"]
PHASES: tuple[Phase, ...] = ("prefill", "decode", "mixed", "with prefill", "empty")
"""`with prefill`: prefill alone or together with decodes, where nothing says which."""
_VLLM = re.compile(
    r"^execute_(?:(?P<all>\d+)_)?context_(?P<ctx>\d+)\((?:sq)?(?P<ctx_tokens>\d++)[^)]*\)"
    r"_generation_(?P<gen>\d+)\((?:sq)?(?P<gen_tokens>\d+)"
)
"""`execute_context_2(512)_generation_6(6)`; with the lengths of queries and keys: `execute_32_context_0(sq0sk0…`."""
_TRT_LLM = re.compile(
    r"^(?:\[Executor\] _forward_step(?: \d+)?|executeStep): (?P<ctx>\d+) ctx reqs"
    r"(?:, (?P<ctx_tokens>\d+) ctx tokens)?, (?P<gen>\d+) gen reqs"
)
"""`[Executor] _forward_step 12: 1 ctx reqs, 7 gen reqs`."""
_SGLANG = re.compile(
    r"^(?:step\[(?P<mode>\w++)|(?P<plain>prefill|decode)\[)[^\]]*?bs=(?P<bs>\d+)(?:[^\]]*?toks=(?P<toks>\d+))?"
)
"""`step[EXTEND bs=15 toks=15360]`, `decode[bs=32]`."""
_PREFILLS, _DECODES = ("EXTEND", "PREFILL"), ("DECODE", "TARGET_VERIFY", "IDLE")
_ENGINE_FRAMES: tuple[tuple[Engine, str], ...] = (
    ("vllm", r"(^|/)vllm/"),
    ("sglang", r"(^|/)sglang/"),
    ("tensorrt_llm", r"(^|/)tensorrt_llm/"),
    ("tgi", r"(^|/)text_generation_server/"),
)
_ENGINE_RANGES: tuple[tuple[Engine, str], ...] = (
    ("tensorrt_llm", r"^\[Executor\] _forward_step|^executeStep: "),
    ("sglang", r"^(step|prefill|decode)\["),
    ("vllm", r"^execute_(new_|context_|\d+_context_)"),
)
CAPTURE, PROFILING, WARM_UP, LOADING = "graph capture", "profiling run", "warm-up", "model loading"
_START_UP = (
    (CAPTURE, r"capture_model|_capture_cudagraphs|capture_one_batch_size|init_(cuda|device)_graphs|capture_graphs?$"),
    (PROFILING, r"profile_run|determine_(available_memory|num_available_blocks)|profile_max_num_token"),
    (LOADING, r"load_model|load_weights|initialize_model"),
    (WARM_UP, r"warm_?up|_dummy_run|dummy_run"),
)
"""Functions in which an engine prepares itself; where one calls another, the first row counts."""
MATRIX = 2
MIN_START_UP = 0.01
"""A part of the start-up with less of its time is what a function does before and after calling the next one."""
CAPTURE_RANGE = r"^capture_\d+_"
"""Ranges around the capture of one batch size: `capture_32_FULL`."""


class StepTokens(Struct, frozen=True):
    """What one step of an engine works on."""

    phase: Phase
    requests: int | None
    tokens: int | None

    @classmethod
    def of(cls, prompts: int, answers: int, tokens: int | None) -> StepTokens:
        """A step that reads these prompts and writes these answers."""
        phase: Phase = "mixed" if prompts and answers else "prefill" if prompts else "decode" if answers else "empty"
        return cls(phase, prompts + answers, tokens)


class ServingPhase(Struct, frozen=True):
    """All steps of one phase."""

    phase: Phase
    steps: int
    share: float
    """Of the time of all steps."""
    step_ns: float
    """Median."""
    busy_ns: int
    """Busy time of the busiest device in all of them."""
    total_ns: int
    requests: float | None
    """Mean of a step: the batch; None where nothing says it."""
    tokens: float | None
    """Mean of a step."""
    token_ns: float | None
    """Time of all steps, without idle time that nothing recorded explains, over all tokens."""
    graph_steps: int
    """Steps that replay a CUDA graph."""
    idle_cause: str | None
    """The cause of most idle time; None without any. `not_recorded` is the part of `unknown` in which what was
    launched waits for work that is not in the recording."""
    idle_cause_ns: int


class StartUp(Struct, frozen=True):
    """What an engine does before it serves."""

    name: str
    count: int
    """Captured graphs, or calls of the function."""
    total_ns: int


class Serving(Struct, frozen=True):
    """A recording of a serving engine."""

    engine: Engine | None
    """None where only the form of its ranges is known."""
    phases: tuple[ServingPhase, ...]
    """The longest in total first."""
    is_inferred: bool
    """Whether the phases are not in the names of ranges, but inferred from shapes of matmuls or from graphs."""
    start_up: tuple[StartUp, ...]
    uncaptured_batches: tuple[int, ...]
    """Batch sizes of decode steps without a graph, where others replay one."""
    stalls: int
    """Prefill steps between decode steps, in which running requests get no token."""

    def to_dict(self) -> dict[str, Any]:
        """The part `serving` of the JSON contract."""
        found: dict[str, Any] = to_builtins(self)
        return found

    def phase(self, name: Phase) -> ServingPhase | None:
        """The phase of that name."""
        return next((one for one in self.phases if one.phase == name), None)


def tokens_of(name: str) -> StepTokens | None:
    """Requests and tokens in the name of an engine's range; None where it has none."""
    if found := _VLLM.match(name):
        return StepTokens.of(int(found["ctx"]), int(found["gen"]), int(found["ctx_tokens"]) + int(found["gen_tokens"]))
    if found := _TRT_LLM.match(name):
        prompts, answers = int(found["ctx"]), int(found["gen"])
        read = int(found["ctx_tokens"]) if found["ctx_tokens"] else None if prompts else 0
        return StepTokens.of(prompts, answers, None if read is None else read + answers)
    if found := _SGLANG.match(name):
        requests, mode = int(found["bs"]), (found["mode"] or found["plain"]).upper()
        tokens = int(found["toks"]) if found["toks"] else None
        if mode in _PREFILLS:
            return StepTokens.of(requests, 0, tokens)
        return StepTokens.of(0, requests, tokens or requests) if mode in _DECODES else None
    return None


def engine_of(trace: Trace) -> Engine | None:
    """The engine by its Python frames; where none are recorded, by its ranges."""
    frames, ranges = trace.python.name, trace.ranges.name
    names, patterns = (frames, _ENGINE_FRAMES) if len(frames) else (ranges, _ENGINE_RANGES)
    return next((engine for engine, pattern in patterns if names.like(pattern).any()), None)


def serving(trace: Trace, gaps: list[Gaps]) -> Serving | None:
    """The phases of the steps in view, and what came before them; None if no engine is recorded."""
    is_engine = bool(trace.ranges.name.like(f"{ENGINE_STEP}|{CAPTURE_RANGE}").any())
    engine = engine_of(trace)
    if not is_engine and engine is None and not len(token_reads(trace.gpu)):
        return None
    tokens = step_tokens(trace)
    is_inferred = not any(tokens) and not trace.api.name.like(BEGIN_CAPTURE).any()
    if is_inferred:
        by_shapes = _tokens_by_shapes(trace)
        tokens = by_shapes if any(by_shapes) else _phases_by_graphs(trace)
    phases = _phases(trace, tokens, gaps) if any(tokens) else ()
    start_up = start_up_phases(trace) if is_engine or engine is not None else ()
    if not phases and not start_up:
        return None
    graphs = with_graphs(trace)
    decodes = [(one, graph) for one, graph in zip(tokens, graphs, strict=True) if one and one.phase == "decode"]
    batches = {one.requests for one, graph in decodes if not graph} if any(graph for _, graph in decodes) else ()
    missing = [batch for batch in batches if batch is not None]
    return Serving(engine, phases, is_inferred, start_up, tuple(sorted(missing)), _stalls(tokens))


def step_tokens(trace: Trace) -> list[StepTokens | None]:
    """For each step in view what its range, or the engine's range in it, says."""
    steps = trace.steps_in_view
    found = [tokens_of(name or "") for name in steps.name.tolist()]
    ranges = trace.ranges[trace.ranges.name.like(ENGINE_STEP) & (trace.ranges.thread != NONE)]
    inside = containing(steps.start_ns, steps.end_ns, ranges.start_ns)
    for at, step in enumerate(inside.tolist()):
        if step != NONE and found[step] is None:
            found[step] = tokens_of(ranges.name.text(at) or "")
    return found


def _tokens_by_shapes(trace: Trace) -> list[StepTokens | None]:
    """The same where no range says it: most matmuls have a row for each token of the step, the last one a row for each
    request, if it is the head of a language model. A step with as many of both is a decode step, and so is a graph."""
    steps, ops = trace.steps_in_view, trace.ops
    found: list[StepTokens | None] = [None] * len(steps)
    matmuls = ops[ops.name.like(r"^aten::(mm|addmm)$") & (ops.thread == steps.thread[:1].max(initial=NONE))]
    inside = containing(steps.start_ns, steps.end_ns, matmuls.start_ns)
    graphs, tables = with_graphs(trace), _embedding_tables(trace)
    for step, rows in grouped(np.arange(len(matmuls)), inside):
        sizes = [_matrices(matmuls.shapes.text(row)) for row in rows.tolist()]
        if step == NONE or not all(sizes) or not tables.intersection(sizes[-1]):
            continue
        counts = [size[0][0] for size in sizes]
        requests = counts[-1]
        tokens = requests if graphs[step] else Counter(counts).most_common(1)[0][0]
        found[step] = StepTokens("decode" if tokens == requests else "with prefill", requests, tokens)
    return found


def _phases_by_graphs(trace: Trace) -> list[StepTokens | None]:
    """Where no matmul has shapes either: a decode step replays one graph, which takes most of its GPU time; beside such
    steps, one that replays none reads a prompt, whose length no captured graph has. Only where the batch changes: other
    programs replay graphs, and read what they chose, with one batch size."""
    steps, api, gpu = trace.steps_in_view, trace.api, trace.gpu
    replays = api.name.like(GRAPH_LAUNCH)
    calls = containing(steps.start_ns, steps.end_ns, api.start_ns[replays])
    count = count_of(len(steps), calls)
    launched = containing(steps.start_ns, steps.end_ns, launched_ns(gpu, api))
    inside, times = launched != NONE, gpu.end_ns - gpu.start_ns
    in_graph = inside & np.append(replays, False)[gpu.api_id]
    whole, graphs = (np.bincount(launched[rows], times[rows], len(steps)) for rows in (inside, in_graph))
    is_decode = (count == 1) & (2 * graphs > whole)
    reads = token_reads(gpu)
    reads = reads[inside[reads]]
    if len(np.unique(gpu.bytes[reads[is_decode[launched[reads]]]])) <= 1:
        return [None] * len(steps)
    decode, prefill = StepTokens("decode", None, None), StepTokens("with prefill", None, None)
    return [decode if one else None if replayed else prefill for one, replayed in zip(is_decode, count, strict=True)]


def _embedding_tables(trace: Trace) -> set[tuple[int, ...]]:
    """The sizes of the tables of embeddings, in both orders: a language model's head has them too."""
    ops = trace.ops[trace.ops.name.like("^aten::embedding$")]
    tables = {tuple(sizes[0]) for sizes in map(_matrices, ops.shapes.present()) if sizes}
    return tables | {table[::-1] for table in tables}


def _matrices(shapes: str | None) -> list[tuple[int, ...]]:
    return [tuple(size) for size in recorded_sizes(shapes or "") if len(size) == MATRIX]


def _phases(trace: Trace, tokens: list[StepTokens | None], gaps: list[Gaps]) -> tuple[ServingPhase, ...]:
    times = step_times(trace)
    lengths, busy = times["length_ns"].to_numpy(), times["busy_ns"].to_numpy()
    starts, ends = trace.step_spans
    names = np.array([one.phase if one else "" for one in tokens], object)
    graphs, whole = with_graphs(trace), max(int(lengths.sum()), 1)
    found = []
    for phase in PHASES:
        rows = np.flatnonzero(names == phase)
        if not len(rows):
            continue
        own = [one for one in (tokens[row] for row in rows.tolist()) if one is not None]
        counts, requests = [one.tokens for one in own], [one.requests for one in own if one.requests is not None]
        total, sums = int(lengths[rows].sum()), [count for count in counts if count is not None]
        is_counted = len(sums) == len(counts) and sum(sums) > 0
        idle = _idle_times(gaps, Spans(starts[rows], ends[rows]))
        cause = max(idle, key=lambda one: idle[one])
        found.append(
            ServingPhase(
                phase=phase,
                steps=len(rows),
                share=total / whole,
                step_ns=float(np.median(lengths[rows])),
                busy_ns=int(busy[rows].sum()),
                total_ns=total,
                requests=float(np.mean(requests)) if requests else None,
                tokens=float(np.mean(sums)) if is_counted else None,
                token_ns=(total - idle["unknown"]) / sum(sums) if is_counted else None,
                graph_steps=int(graphs[rows].sum()),
                idle_cause=_named(cause, gaps) if idle[cause] else None,
                idle_cause_ns=idle[cause],
            )
        )
    return tuple(sorted(found, key=lambda one: -one.total_ns))


def _idle_times(gaps: list[Gaps], within: Spans) -> dict[str, int]:
    """Idle time of the busiest device in these spans, by cause."""
    least = _busiest(gaps)
    return {cause: intersection(least.spans.of(cause), within).total_ns() if least else 0 for cause in CAUSES}


def _busiest(gaps: list[Gaps]) -> Gaps | None:
    return min(gaps, key=lambda one: int((one.ends - one.starts).sum()), default=None)


def _named(cause: str, gaps: list[Gaps]) -> str:
    """The cause, or `not_recorded` where that is most of what is unknown."""
    least = _busiest(gaps)
    is_unrecorded = least is not None and 2 * least.unrecorded_ns > least.totals()["unknown"]
    return "not_recorded" if cause == "unknown" and is_unrecorded else cause


def with_graphs(trace: Trace) -> Bools:
    """Which steps in view replay a CUDA graph."""
    steps = trace.steps_in_view
    launched = np.sort(trace.api.start_ns[trace.api.name.like(GRAPH_LAUNCH)])
    found: Bools = np.searchsorted(launched, steps.start_ns) < np.searchsorted(launched, steps.end_ns)
    return found


def _stalls(tokens: list[StepTokens | None]) -> int:
    """Prefill steps with a decode step before and after them."""
    phases = [one.phase if one else "" for one in tokens]
    if "decode" not in phases:
        return 0
    first, last = phases.index("decode"), len(phases) - 1 - phases[::-1].index("decode")
    return phases[first:last].count("prefill")


def start_up_phases(trace: Trace) -> tuple[StartUp, ...]:
    """Loading, profiling, warm-up and graph capture; what is in two of them counts for one."""
    frames, taken = trace.python, Spans(np.zeros(0, np.int64), np.zeros(0, np.int64))
    found = []
    captures = capture_spans(trace.api)
    ranges = trace.ranges[trace.ranges.name.like(CAPTURE_RANGE) & (trace.ranges.end_ns != NONE)]
    for name, pattern in _START_UP:
        # `vllm/v1/worker/gpu_model_runner.py(4242): profile_run`
        called = frames[frames.name.like(rf"\): \w*({pattern})\w*$")]
        starts, ends = called.start_ns, called.end_ns
        if name == CAPTURE:
            starts = np.concatenate([starts, captures.starts, ranges.start_ns])
            ends = np.concatenate([ends, captures.ends, ranges.end_ns])
        own = union(starts, ends)
        length = difference(own, taken).total_ns()
        if length:
            found.append(StartUp(name, len(captures) if name == CAPTURE and len(captures) else len(own), length))
        taken = joined([taken, own])
    whole_ns = sum(one.total_ns for one in found)
    return tuple(one for one in found if one.total_ns >= MIN_START_UP * whole_ns)
