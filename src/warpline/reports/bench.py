"""Timings as a terminal report: the number, how it came about, what speaks against it, and what to type next."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from warpline.bench.cold import ColdStart
from warpline.bench.command import Answer, Request
from warpline.bench.experiments import EXPERIMENTS
from warpline.bench.result import Result
from warpline.bench.text import cold_sentence, comparison_sentence, facts, headline
from warpline.reports.numbers import numbers_table
from warpline.units import duration

STYLES = {"info": "bright_black", "warning": "yellow", "error": "bold red"}
VERDICTS = {"sound": "bold green", "doubtful": "bold yellow", "impossible": "bold red"}
BAR = 24
PAUSES = ("steady", "second_call")
"""What is no part of the start, and is shown without a bar."""


def render(answer: Answer, request: Request, width: int = 140) -> RenderableType:
    """The whole report."""
    parts: list[RenderableType] = []
    if answer.comparison is not None:
        parts += [Text(comparison_sentence(answer.comparison), style="bold"), Text()]
    for result in answer.results:
        parts += [_result(result), Text()]
    if len(answer.results) > 1:
        parts += [_overview(answer.results, width), Text()]
    for cold in answer.cold:
        parts += [_cold(cold), Text()]
    parts += [Text("Next", style="bold"), *_next(answer, request)]
    return Group(*parts)


def listing() -> RenderableType:
    """The experiments."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bright_black")
    for title in ("experiment", "what", "shape", "by default", "data types"):
        table.add_column(title)
    for experiment in EXPERIMENTS.values():
        shape = "x".join(map(str, experiment.shape))
        row = (experiment.name, experiment.summary, experiment.dimensions, shape, ", ".join(experiment.dtypes))
        table.add_row(*row)
    return Group(table, Text("\nor a function of your own: warpline bench file.py:function"))


def _result(result: Result) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for label, text in facts(result):
        grid.add_row(Text(f"  {label}", style="bright_black"), Text(text))
    notes = [Text(f"  {note.severity}: {note.message}", style=STYLES[note.severity]) for note in result.notes]
    return Group(Text(headline(result), style=VERDICTS[result.verdict]), grid, *notes)


def _overview(results: tuple[Result, ...], width: int) -> Table:
    titles = ["median", "interval", "submission", "TFLOP/s", "TB/s", "% roof", "what"]
    return numbers_table(titles, [list(_row(result)) for result in results], width)


def _row(result: Result) -> Iterator[str]:
    judgement, interval = result.judgement, result.interval
    yield duration(result.median_ns)
    yield f"± {50 * (interval.high_ns - interval.low_ns) / result.median_ns:.2f} %" if interval else "–"
    yield duration(result.host.submit_ns) if result.host else "–"
    yield f"{judgement.flops_per_second / 1e12:,.4g}" if judgement and judgement.work.flops else "–"
    yield f"{judgement.bytes_per_second / 1e12:,.3g}" if judgement and judgement.work.bytes else "–"
    yield f"{judgement.roof_pct:.1f}" if judgement and judgement.roof_pct is not None else "–"
    yield result.name


def _cold(cold: ColdStart) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bright_black")
    table.add_column("part")
    table.add_column("time", justify="right")
    table.add_column("range over processes", justify="right")
    table.add_column("", min_width=BAR)
    table.add_column("what it is")
    whole = sum(part.median_ns for part in cold.parts if part.name not in PAUSES)
    for part in cold.parts:
        bar = "" if part.name in PAUSES else "█" * round(BAR * part.median_ns / whole)
        span = f"{duration(part.low_ns)} to {duration(part.high_ns)}" if part.high_ns > part.low_ns else ""
        name = part.name.replace("_", " ")
        table.add_row(name, duration(part.median_ns), span, Text(bar, style="cyan"), part.meaning)
    title = f"{cold.name} on {cold.device}: a cold start, in {cold.processes} fresh processes"
    return Group(Text(title, style="bold blue"), table, Text(cold_sentence(cold), style="bold"))


def _next(answer: Answer, request: Request) -> Iterator[Text]:
    codes = {note.code for result in answer.results for note in result.notes}
    again = f"  warpline bench {request.what}"
    if {"short", "submission-bound"} & codes and not request.graph:
        yield Text(f"{again} --graph     many calls as one, without the host between them")
    if {"not-settled", "wide-interval", "drift"} & codes:
        yield Text(f"{again} --seconds {max(2.0, 4 * request.seconds):g}     measure for longer")
    if not request.cold:
        yield Text(f"{again} --cold     what the first call of a process pays for")
    else:
        yield Text(f"{again}     the steady state, with its interval")
