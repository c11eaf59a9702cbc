"""Timings as sections: the result, the method, caveats, and next commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from warpline.bench.cold import ColdStartTimes
from warpline.bench.command import BenchAnswer, BenchRequest
from warpline.bench.experiments import EXPERIMENTS
from warpline.bench.result import Result
from warpline.estimate import Estimate
from warpline.reports.sections import (
    Column,
    Command,
    Content,
    Fact,
    Facts,
    Note,
    Notes,
    Report,
    Section,
    Table,
    Text,
    Value,
    next_section,
)
from warpline.reports.values import MISSING

PAUSES = ("steady", "second_call")
"""Rows of a cold start's table that are not part of the start, and have no share of it."""


def bench_report(answer: BenchAnswer, request: BenchRequest) -> Report:
    """The whole report."""
    sections = [result_section(result) for result in answer.results]
    if len(answer.results) > 1:
        sections.append(Section("overview", "Overview", (_overview(answer.results),)))
    if answer.scaling:
        sections.append(Section("scaling", "Scaling", tuple(Text(scaling.sentence) for scaling in answer.scaling)))
    if answer.ways:
        sections.append(Section("ways", "Which way is the fastest", tuple(Text(sentence) for sentence in answer.ways)))
    sections += [_cold(cold) for cold in answer.cold]
    sections.append(next_section(_next(answer, request)))
    title = answer.comparison.sentence if answer.comparison is not None else f"bench {request.what}"
    return Report(title, tuple(sections))


def listing() -> Report:
    """The experiments."""
    columns = (
        Column("name", "experiment", key=True),
        Column("summary", "what"),
        Column("dimensions", "shape", priority=3),
        Column("shape", "by default", priority=2),
        Column("dtypes", "data types", priority=2),
    )
    rows = tuple(
        (one.name, one.summary, one.dimensions, "x".join(map(str, one.shape)), ", ".join(one.dtypes))
        for one in EXPERIMENTS.values()
    )
    own = Text("or your own function: warpline bench file.py:function")
    return Report("Experiments", (Section("experiments", "Experiments", (Table(columns, rows), own), is_lead=True),))


def result_section(result: Result) -> Section:
    """One measurement: its facts, and what to think of."""
    content: list[Content] = [Facts(tuple(Fact(label, text) for label, text in result.facts()))]
    if result.notes:
        content.append(Notes(tuple(Note(note.severity, note.code, note.message) for note in result.notes)))
    return Section(result.name, result.headline, tuple(content))


def _overview(results: tuple[Result, ...]) -> Table:
    columns = (
        Column("median_ns", "median", "ns"),
        Column("interval", "interval", aligned="right", priority=2),
        Column("submit_ns", "submission", "ns", priority=3),
        Column("tflops_per_second", "TFLOP/s", "number"),
        Column("tbytes_per_second", "TB/s", "number"),
        Column("roof_share", "of roof", "share"),
        Column("name", "what", key=True),
    )
    return Table(columns, tuple(tuple(_row(result)) for result in results))


def _row(result: Result) -> Iterator[Value]:
    judgement, interval = result.judgement, result.interval
    yield result.median_ns
    yield f"± {50 * (interval.high_ns - interval.low_ns) / result.median_ns:.2f} %" if interval else MISSING
    yield result.host.submit_ns if result.host else None
    yield f"{judgement.flops_per_second / 1e12:,.4g}" if judgement and judgement.work.flops else None
    yield f"{judgement.bytes_per_second / 1e12:,.3g}" if judgement and judgement.work.bytes else None
    yield judgement.roof_pct / 100 if judgement and judgement.roof_pct is not None else None
    yield result.name


def _cold(cold: ColdStartTimes) -> Section:
    columns = (
        Column("name", "part", key=True),
        Column("median_ns", "time", "ns"),
        Column("share", "share", "share"),
        Column("range_ns", "range over processes", "ns", priority=2),
        Column("meaning", "what it is"),
    )
    whole = sum(part.median_ns for part in cold.parts if part.name not in PAUSES)
    rows = tuple(
        (
            part.name.replace("_", " "),
            part.median_ns,
            None if part.name in PAUSES or not whole else part.median_ns / whole,
            Estimate(part.low_ns, part.median_ns, part.high_ns) if part.high_ns > part.low_ns else "",
            part.meaning,
        )
        for part in cold.parts
    )
    return Section(f"cold_{cold.name}", cold.headline, (Text(cold.sentence, "strong"), Table(columns, rows)))


def _next(answer: BenchAnswer, request: BenchRequest) -> Iterator[Command]:
    codes = {note.code for result in answer.results for note in result.notes}
    shapes = [word for shape in request.shapes for word in ("--shape", shape)]
    types = ["--dtype", ",".join(request.dtypes)] if request.dtypes else []
    again = shlex.join(["warpline", "bench", request.what, *shapes, *types])
    if {"short", "submission-bound"} & codes and not request.graph:
        yield Command(f"{again} --graph", "many calls as one, without host time in between")
    if {"not-settled", "wide-interval", "drift"} & codes:
        yield Command(f"{again} --seconds {max(2.0, 4 * request.seconds):g}", "measure for longer")
    if not request.cold:
        yield Command(f"{again} --cold", "the cost of the first call of a process")
    else:
        yield Command(again, "the steady state, with its interval")
