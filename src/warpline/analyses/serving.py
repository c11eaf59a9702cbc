"""The steps of a serving engine by phase: prefill, decode and both together, and what an engine does before it serves.

vLLM, SGLang and TensorRT-LLM write the requests and tokens of a step into the name of its range. A prompt is read
(prefill) with many tokens a request, an answer is written (decode) with one: their times are not alike, and neither are
their remedies.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np
from msgspec import Struct, to_builtins

from warpline.analyses.idle.gaps import CAUSES, Gaps
from warpline.analyses.idle.host_activity import capture_spans
from warpline.analyses.steps import step_times
from warpline.api_names import GRAPH_LAUNCH
from warpline.intervals import Spans, difference, intersection, joined, union
from warpline.library_names import ENGINE_STEP
from warpline.trace.arrays import NONE, Bools
from warpline.trace.trace import Trace

Engine = Literal["vllm", "sglang", "tensorrt_llm", "tgi"]
Phase = Literal["prefill", "decode", "mixed", "empty"]
_VLLM = re.compile(
    r"^execute_(?:(?P<all>\d+)_)?context_(?P<ctx>\d+)\((?:sq)?(?P<ctx_tokens>\d+)[^)]*\)"
    r"_generation_(?P<gen>\d+)\((?:sq)?(?P<gen_tokens>\d+)"
)
"""`execute_context_2(512)_generation_6(6)`; with the lengths of queries and keys: `execute_32_context_0(sq0sk0…`."""
_TRT_LLM = re.compile(
    r"^(?:\[Executor\] _forward_step(?: \d+)?|executeStep): (?P<ctx>\d+) ctx reqs"
    r"(?:, (?P<ctx_tokens>\d+) ctx tokens)?, (?P<gen>\d+) gen reqs"
)
"""`[Executor] _forward_step 12: 1 ctx reqs, 7 gen reqs`."""
_SGLANG = re.compile(
    r"^(?:step\[(?P<mode>\w+)|(?P<plain>prefill|decode)\[)[^\]]*?bs=(?P<bs>\d+)(?:[^\]]*?toks=(?P<toks>\d+))?"
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
CAPTURE_RANGE = r"^capture_\d+_"
"""Ranges around the capture of one batch size: `capture_32_FULL`."""


class StepTokens(Struct, frozen=True):
    """What one step of an engine works on, as far as its range says."""

    prefill_requests: int
    decode_requests: int
    prefill_tokens: int | None
    decode_tokens: int | None

    @property
    def phase(self) -> Phase:
        """prefill, decode, both (`mixed`) or neither (`empty`)."""
        if self.prefill_requests and self.decode_requests:
            return "mixed"
        return "prefill" if self.prefill_requests else "decode" if self.decode_requests else "empty"

    @property
    def tokens(self) -> int | None:
        """Tokens of both."""
        return (
            None
            if self.prefill_tokens is None or self.decode_tokens is None
            else (self.prefill_tokens + self.decode_tokens)
        )


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
    requests: float
    """Mean of a step: the batch."""
    tokens: float | None
    """Mean of a step."""
    token_ns: float | None
    """Time of all steps over all tokens."""
    graph_steps: int
    """Steps that replay a CUDA graph."""
    idle_cause: str | None
    """The cause of most idle time; None without any."""
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
        return StepTokens(*(int(found[key]) for key in ("ctx", "gen", "ctx_tokens", "gen_tokens")))
    if found := _TRT_LLM.match(name):
        prompts, answers = int(found["ctx"]), int(found["gen"])
        known = found["ctx_tokens"]
        return StepTokens(prompts, answers, int(known) if known else (None if prompts else 0), answers)
    if found := _SGLANG.match(name):
        requests, mode = int(found["bs"]), (found["mode"] or found["plain"]).upper()
        tokens = int(found["toks"]) if found["toks"] else None
        if mode in _PREFILLS:
            return StepTokens(requests, 0, tokens, 0)
        return StepTokens(0, requests, 0, tokens or requests) if mode in _DECODES else None
    return None


def engine_of(trace: Trace) -> Engine | None:
    """The engine by its Python frames, else by its ranges."""
    frames = trace.python.name
    for engine, pattern in _ENGINE_FRAMES:
        if frames.like(pattern).any():
            return engine
    ranges = trace.ranges.name
    return next((engine for engine, pattern in _ENGINE_RANGES if ranges.like(pattern).any()), None)


def serving(trace: Trace, gaps: list[Gaps]) -> Serving | None:
    """The phases of the steps in view, and what came before them; None if no engine is recorded."""
    is_engine = bool(trace.ranges.name.like(f"{ENGINE_STEP}|{CAPTURE_RANGE}").any())
    engine = engine_of(trace)
    if not is_engine and engine is None:
        return None
    tokens = step_tokens(trace)
    known = [one for one in tokens if one is not None]
    phases = _phases(trace, tokens, gaps) if known else ()
    start_up = start_up_phases(trace)
    if not phases and not start_up:
        return None
    graphs = _with_graphs(trace)
    decodes = [(one, graph) for one, graph in zip(tokens, graphs, strict=True) if one and one.phase == "decode"]
    missing = {one.decode_requests for one, graph in decodes if not graph} if any(graph for _, graph in decodes) else ()
    return Serving(engine, phases, start_up, tuple(sorted(missing)), _stalls(tokens))


def step_tokens(trace: Trace) -> list[StepTokens | None]:
    """For each step in view what its range, or the engine's range in it, says."""
    steps = trace.steps_in_view
    found = [tokens_of(name or "") for name in steps.name.tolist()]
    ranges = trace.ranges[trace.ranges.name.like(ENGINE_STEP) & (trace.ranges.thread != NONE)]
    inside = np.searchsorted(steps.start_ns, ranges.start_ns, side="right") - 1
    for at, step in enumerate(inside.tolist()):
        if step >= 0 and found[step] is None and ranges.start_ns[at] < steps.end_ns[step]:
            found[step] = tokens_of(ranges.name.text(at) or "")
    return found


def _phases(trace: Trace, tokens: list[StepTokens | None], gaps: list[Gaps]) -> tuple[ServingPhase, ...]:
    times = step_times(trace)
    lengths, busy = times["length_ns"].to_numpy(), times["busy_ns"].to_numpy()
    starts, ends = trace.step_spans
    names = np.array([one.phase if one else "" for one in tokens], object)
    graphs, whole = _with_graphs(trace), max(int(lengths.sum()), 1)
    found = []
    for phase in ("prefill", "decode", "mixed", "empty"):
        rows = np.flatnonzero(names == phase)
        if not len(rows):
            continue
        own = [one for one in (tokens[row] for row in rows.tolist()) if one is not None]
        counts = [one.tokens for one in own]
        total, sums = int(lengths[rows].sum()), [count for count in counts if count is not None]
        is_counted = len(sums) == len(counts) and sum(sums) > 0
        cause, idle = _idle_cause(gaps, Spans(starts[rows], ends[rows]))
        found.append(
            ServingPhase(
                phase=phase,
                steps=len(rows),
                share=total / whole,
                step_ns=float(np.median(lengths[rows])),
                busy_ns=int(busy[rows].sum()),
                total_ns=total,
                requests=float(np.mean([one.prefill_requests + one.decode_requests for one in own])),
                tokens=float(np.mean(sums)) if is_counted else None,
                token_ns=total / sum(sums) if is_counted else None,
                graph_steps=int(graphs[rows].sum()),
                idle_cause=cause,
                idle_cause_ns=idle,
            )
        )
    return tuple(sorted(found, key=lambda one: -one.total_ns))


def _idle_cause(gaps: list[Gaps], within: Spans) -> tuple[str | None, int]:
    """The largest cause of idleness of the busiest device in these spans, and its time."""
    if not gaps:
        return None, 0
    least = min(gaps, key=lambda one: int((one.ends - one.starts).sum()))
    times = {cause: intersection(least.spans.of(cause), within).total_ns() for cause in CAUSES}
    cause = max(times, key=lambda one: times[one])
    return (cause, times[cause]) if times[cause] else (None, 0)


def _with_graphs(trace: Trace) -> Bools:
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
    """Loading, profiling, warm-up and graph capture outside the steps; what is in two of them counts for one."""
    frames, taken = trace.python, union(*trace.step_spans)
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
    return tuple(found)
