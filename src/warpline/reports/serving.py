"""The steps of a serving engine by phase, as a section."""

from __future__ import annotations

from collections.abc import Iterator

from warpline.analyses.serving import Serving
from warpline.fixes.engine_advice import CHUNKED_PREFILL, GRAPH_SIZES
from warpline.reports.sections import Column, Content, Section, Table, Text
from warpline.units import duration, several

MIN_STALL = 2.0
"""A prefill step that takes this many times as long as a decode step holds running requests up."""
MOST_LISTED = 2
_COLUMNS = (
    Column("phase", "phase", key=True),
    Column("steps", "steps", "count"),
    Column("share", "of step time", "share", priority=3),
    Column("step_ns", "step", "ns"),
    Column("busy", "GPU busy", "share"),
    Column("requests", "requests", "number", priority=2),
    Column("tokens", "tokens", "number"),
    Column("token_ns", "per token", "ns"),
    Column("graphs", "with a graph", "count", priority=3),
    Column("idle", "idle mostly", priority=4),
)


def serving_section(serving: Serving) -> Section:
    """A row per phase, what happened before the steps, and what an option of the engine would change."""
    rows = tuple(
        (
            one.phase,
            one.steps,
            one.share,
            one.step_ns,
            one.busy_ns / max(one.total_ns, 1),
            None if one.requests is None else _mean(one.requests),
            None if one.tokens is None else _mean(one.tokens),
            one.token_ns,
            one.graph_steps,
            None if one.idle_cause is None else one.idle_cause.replace("_", " "),
        )
        for one in serving.phases
    )
    content: list[Content] = [Table(_COLUMNS, rows)] if rows else []
    if rows:
        source = "which steps replay a graph" if serving.phases[0].requests is None else "the rows of the matmuls"
        inferred = f" Phases are inferred from {source}." if serving.is_inferred else ""
        meaning = "Means of a step, as recorded; step: its median."
        if any(one.token_ns is not None for one in serving.phases):
            meaning += " per token: step time over tokens, without unexplained idle time."
        content.append(Text(meaning + inferred, "quiet"))
    content += [Text(line, "quiet") for line in _start_up(serving)]
    content += [Text(line, "advice") for line in _advice(serving)]
    return Section("serving", "Engine steps", tuple(content), is_lead=True)


def _mean(number: float) -> str:
    return f"{number:,.0f}" if number == round(number) else f"{number:,.1f}"


def _start_up(serving: Serving) -> Iterator[str]:
    if serving.start_up:
        parts = (
            f"{one.name} {duration(one.total_ns)}"
            + (f" ({several(one.count, 'graph')})" if one.name == "graph capture" else "")
            for one in serving.start_up
        )
        yield f"Start-up: {', '.join(parts)}."


def _advice(serving: Serving) -> Iterator[str]:
    prefill, decode = serving.phase("prefill"), serving.phase("decode")
    if serving.uncaptured_batches and decode is not None:
        option = f": {GRAPH_SIZES[serving.engine]}" if serving.engine else ""
        yield (
            f"{decode.steps - decode.graph_steps} of {several(decode.steps, 'decode step')} run without a graph, with "
            f"{_sizes(serving.uncaptured_batches)} requests: capture graphs of these sizes{option}."
        )
    if serving.stalls and prefill is not None and decode is not None and prefill.step_ns > MIN_STALL * decode.step_ns:
        option = f" ({CHUNKED_PREFILL[serving.engine]})" if serving.engine else ""
        yield (
            f"Running requests get no token in {several(serving.stalls, 'prefill step')} of "
            f"{duration(prefill.step_ns)} between decode steps of {duration(decode.step_ns)}: chunked prefill{option} "
            "reads a prompt in parts, together with decodes."
        )


def _sizes(batches: tuple[int, ...]) -> str:
    """`9 and 10`, `9 to 14`."""
    return f"{batches[0]} to {batches[-1]}" if len(batches) > MOST_LISTED else " and ".join(map(str, batches))
