"""``warpline stats``: the reports of ``nsys stats``, for nsys and torch.profiler files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import polars as pl
from msgspec import Struct, to_builtins

from warpline.analyses.api_split import ApiSplit, api_split
from warpline.analyses.gpu_metrics import GpuMetric, gpu_metrics
from warpline.analyses.stats import StatsReport, find_report
from warpline.analyses.stats.proton import PROTON_REPORTS, proton_report
from warpline.cli.options import (
    PATH,
    TableFormat,
    bundle,
    force_option,
    json_format_option,
    note_json,
    verbose_option,
)
from warpline.cli.selection import StepSelection, no_cache_option, trace_argument
from warpline.cli.write import json_text, put_text, refuse_existing, say, table_width
from warpline.errors import CannotAnswer, UsageError
from warpline.reports.frame_text import table_text, to_csv, to_records
from warpline.reports.stats_words import metrics_text, os_total_text, split_dict, split_text, words_of_rows, words_text
from warpline.sources.stdin import STDIN
from warpline.trace.open import NotATimeline
from warpline.trace.trace import Trace

SCHEMA = "warpline.stats/1"

DEFAULT_REPORTS = "nvtx_sum,osrt_sum,cuda_api_sum,cuda_gpu_kern_sum,cuda_gpu_mem_time_sum,cuda_gpu_mem_size_sum"
"""The default reports of ``nsys stats``."""

FORMATS_BY_SUFFIX = {".csv": TableFormat.CSV, ".json": TableFormat.JSON, ".txt": TableFormat.TABLE}


class TablesOutput(Struct, frozen=True):
    """The options --format, --json, -o and -f."""

    output_format: str | None
    as_json: bool
    file: Path | None
    force: bool

    @property
    def format(self) -> TableFormat:
        """As asked for, else by the file's suffix, else a table."""
        if self.as_json:
            return TableFormat.JSON
        if self.output_format is not None or self.file is None:
            return TableFormat(self.output_format or "table")
        if self.file.suffix not in FORMATS_BY_SUFFIX:
            known = ", ".join(FORMATS_BY_SUFFIX)
            raise UsageError("unknown-format", f"unknown format of {self.file.name}", f"use {known}, or --format")
        return FORMATS_BY_SUFFIX[self.file.suffix]


@click.command()
@trace_argument
@click.option(
    "-r",
    "--report",
    multiple=True,
    metavar="REPORT[,REPORT…]",
    help="Print these reports; default: those of nsys stats.",
)
@bundle(
    "output",
    TablesOutput,
    click.option(
        "--format",
        "output_format",
        type=click.Choice([entry.value for entry in TableFormat]),
        callback=note_json,
        help="Set the format; default: by -o's suffix, else a table.",
    ),
    json_format_option,
    click.option(
        "-o", "--output", "file", type=PATH, metavar="FILE", help="Write to this file; its suffix picks the format."
    ),
    force_option,
)
@verbose_option
@no_cache_option
def stats(trace: Path, report: tuple[str, ...], output: TablesOutput, verbose: bool, no_cache: bool) -> None:
    """Print the reports of nsys stats, with the same names, columns and numbers, from any trace.

    Of a Proton profile without a timeline (.hatchet), it prints kernels and call paths.

    A report whose data the trace lacks is skipped, with the reason on stderr. With -v, each row gets a sentence, and
    API time is split into time spent once and time of every step.

    Examples:

      warpline stats profile.sqlite -r cuda_gpu_kern_sum -v

      warpline stats trace.json.gz -r cuda_api_sum,nvtx_gpu_proj_sum --format csv

      warpline stats profile.sqlite -r cuda_gpu_trace -o gpu.csv
    """
    chosen = output.format
    wanted = [find_report(name) for name in _names(report)]
    refuse_existing(output.file, output.force)
    opened: Trace | None = None
    try:
        opened = StepSelection(no_cache=no_cache).open(trace)
    except NotATimeline as error:
        if error.read_by != "stats" or trace == STDIN:
            raise
        wanted = wanted if report else [find_report(name) for name in PROTON_REPORTS]
    answers: dict[StatsReport, pl.DataFrame] = {}
    refusals: dict[StatsReport, CannotAnswer] = {}
    for entry in wanted:
        try:
            answers[entry] = proton_report(trace, entry.name) if opened is None else entry.build(opened)
        except CannotAnswer as refusal:
            refusals[entry] = refusal
    # Without any answer, the last refusal is the error of the command.
    if not answers:
        *skipped, last = refusals.values()
        _say_skipped(skipped)
        raise last
    added = _added(answers, opened) if verbose and chosen is not TableFormat.CSV else None
    if chosen is TableFormat.JSON:
        text = json_text(_document(answers, refusals, added))
    elif chosen is TableFormat.CSV:
        text = "\n".join(to_csv(frame) for frame in answers.values())
    else:
        text = _tables(answers, table_width() if output.file is None else None, added)
    put_text(text, output.file)
    _say_skipped(refusals.values())


def _say_skipped(refusals: Iterable[CannotAnswer]) -> None:
    for refusal in refusals:
        say(f"warpline: skipped: {refusal.message}; {refusal.hint}", err=True)


def _names(report: Sequence[str]) -> list[str]:
    """Report names from repeated options and comma-separated lists, without duplicates."""
    given = ",".join(report or [DEFAULT_REPORTS])
    names = list(dict.fromkeys(name for part in given.split(",") if (name := part.strip())))
    if not names:
        raise UsageError("no-report", "-r names no report", "leave it out for those of nsys stats")
    return names


class Additions(Struct, frozen=True):
    """What -v adds."""

    words: dict[str, dict[str, str]]
    """By report, a sentence for each name."""
    split: ApiSplit | None
    """Only with a report of API calls."""
    metrics: tuple[GpuMetric, ...]
    """Sampled counters, where nsys recorded them."""


def _added(answers: dict[StatsReport, pl.DataFrame], opened: Trace | None) -> Additions:
    words = {entry.name: words_of_rows(entry.name, frame) for entry, frame in answers.items()}
    of_calls = any(entry.name.startswith("cuda_api") for entry in answers)
    metrics = gpu_metrics(opened) if opened is not None and len(opened.counters) else ()
    return Additions(words, api_split(opened) if opened is not None and of_calls else None, metrics)


def _document(
    answers: dict[StatsReport, pl.DataFrame], refusals: dict[StatsReport, CannotAnswer], added: Additions | None
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "reports": {entry.name: to_records(frame) for entry, frame in answers.items()},
        "unanswered": {entry.name: refusal.message for entry, refusal in refusals.items()},
    }
    if added is not None:
        document |= {"words": added.words, "api_time": split_dict(added.split) if added.split else None}
        document["gpu_metrics"] = [to_builtins(one) for one in added.metrics]
    return document


def _tables(answers: dict[StatsReport, pl.DataFrame], width: int | None, added: Additions | None) -> str:
    tables = []
    for entry, frame in answers.items():
        text = table_text(frame, f"{entry.title} ({entry.name})", width)
        listed = words_text(added.words[entry.name].items()) if added is not None else ""
        total = os_total_text(frame) if added is not None and entry.name == "osrt_sum" else ""
        tables.append("\n".join(filter(None, (text, listed, total))))
    if added is not None and added.split is not None:
        tables.append(split_text(added.split))
    if added is not None:
        tables.append(metrics_text(added.metrics))
    return "\n".join(filter(None, tables))
