"""``warpline stats``: the reports of ``nsys stats``, for nsys and torch.profiler files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct, to_builtins

from warpline.cli.options import (
    Format,
    force_option,
    json_format_option,
    no_cache_option,
    open_with_progress,
    trace_argument,
    verbose_option,
)
from warpline.cli.output import json_text, put_text, refuse_existing, say, table_width
from warpline.errors import CannotAnswer, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from warpline.analyses.api_split import ApiSplit
    from warpline.analyses.gpu_metrics import GpuMetric
    from warpline.analyses.stats import StatsReport
    from warpline.trace.trace import Trace

SCHEMA = "warpline.stats/1"

DEFAULT_REPORTS = "nvtx_sum,osrt_sum,cuda_api_sum,cuda_gpu_kern_sum,cuda_gpu_mem_time_sum,cuda_gpu_mem_size_sum"
"""The default reports of ``nsys stats``."""

FORMATS_BY_SUFFIX = {".csv": Format.CSV, ".json": Format.JSON, ".txt": Format.TABLE}


@click.command()
@trace_argument
@click.option(
    "-r",
    "--report",
    multiple=True,
    metavar="REPORT[,REPORT…]",
    help="Print these reports; default: those of nsys stats.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice([entry.value for entry in Format]),
    help="Set the format; default: by -o's suffix, else a table.",
)
@json_format_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to this file; its suffix picks the format.",
)
@force_option
@verbose_option
@no_cache_option
def stats(
    trace: Path,
    report: tuple[str, ...],
    output_format: str | None,
    as_json: bool,
    output: Path | None,
    force: bool,
    verbose: bool,
    no_cache: bool,
) -> None:
    """Print the reports of nsys stats, with the same names, columns and numbers, from any trace.

    A report whose data the trace lacks is skipped, with the reason on stderr. With -v, each row gets a sentence, and
    API time is split into time spent once and time of every step.

    Examples:

      warpline stats profile.sqlite -r cuda_gpu_kern_sum -v

      warpline stats trace.json.gz -r cuda_api_sum,nvtx_gpu_proj_sum --format csv

      warpline stats profile.sqlite -r cuda_gpu_trace -o gpu.csv
    """
    from warpline.analyses.stats import find_report  # noqa: PLC0415 - polars loads only when it is used

    chosen = _chosen_format(Format(output_format) if output_format else None, as_json, output)
    wanted = [find_report(name) for name in _names(report)]
    refuse_existing(output, force)
    opened = open_with_progress(trace, None, None, no_cache)
    answers: dict[StatsReport, pl.DataFrame] = {}
    refusals: dict[StatsReport, str] = {}
    for entry in wanted:
        try:
            answers[entry] = entry.build(opened)
        except CannotAnswer as refusal:
            refusals[entry] = refusal.message
            say(f"warpline: {refusal.line()}", err=True)
    if not answers:
        raise click.exceptions.Exit(1)
    told = _words(answers, opened) if verbose and chosen is not Format.CSV else None
    text = _render(answers, refusals, chosen, table_width() if output is None else None, told)
    put_text(text, output)


def _names(report: Sequence[str]) -> list[str]:
    """Report names from repeated options and comma-separated lists, without duplicates."""
    given = ",".join(report or [DEFAULT_REPORTS])
    return list(dict.fromkeys(name for part in given.split(",") if (name := part.strip())))


def _chosen_format(output_format: Format | None, as_json: bool, output: Path | None) -> Format:
    if as_json:
        return Format.JSON
    if output_format is not None or output is None:
        return output_format or Format.TABLE
    if output.suffix not in FORMATS_BY_SUFFIX:
        known = ", ".join(FORMATS_BY_SUFFIX)
        raise UsageError("unknown-format", f"unknown format of {output.name}", f"use {known}, or --format")
    return FORMATS_BY_SUFFIX[output.suffix]


class _Told(Struct, frozen=True):
    """What -v adds."""

    words: dict[str, dict[str, str]]
    """By report, a sentence for each name."""
    split: ApiSplit | None
    """Only with a report of API calls."""
    metrics: tuple[GpuMetric, ...]
    """Sampled counters, where nsys recorded them."""


def _words(answers: dict[StatsReport, pl.DataFrame], opened: Trace) -> _Told:
    from warpline.analyses.api_split import api_split  # noqa: PLC0415 - loads when it is used
    from warpline.analyses.gpu_metrics import gpu_metrics  # noqa: PLC0415
    from warpline.reports.stats_words import words_of_rows  # noqa: PLC0415

    words = {entry.name: words_of_rows(entry.name, frame) for entry, frame in answers.items()}
    of_calls = any(entry.name.startswith("cuda_api") for entry in answers)
    metrics = gpu_metrics(opened) if len(opened.counters) else ()
    return _Told(words, api_split(opened) if of_calls else None, metrics)


def _render(
    answers: dict[StatsReport, pl.DataFrame],
    refusals: dict[StatsReport, str],
    chosen: Format,
    width: int | None,
    told: _Told | None,
) -> str:
    from warpline.reports.stats_words import metrics_text, split_dict, split_text, words_text  # noqa: PLC0415
    from warpline.reports.tabular import table_text, to_csv, to_records  # noqa: PLC0415

    if chosen is Format.JSON:
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "reports": {entry.name: to_records(frame) for entry, frame in answers.items()},
            "unanswered": {entry.name: message for entry, message in refusals.items()},
        }
        if told is not None:
            document |= {"words": told.words, "api_time": split_dict(told.split) if told.split else None}
            document["gpu_metrics"] = [to_builtins(one) for one in told.metrics]
        return json_text(document)
    if chosen is Format.CSV:
        return "\n".join(to_csv(frame) for frame in answers.values())
    tables = []
    for entry, frame in answers.items():
        text = table_text(frame, f"{entry.title} ({entry.name})", width)
        listed = words_text(told.words[entry.name].items()) if told is not None else ""
        tables.append(text + ("\n" + listed if listed else ""))
    if told is not None and told.split is not None:
        tables.append(split_text(told.split))
    if told is not None:
        tables.append(metrics_text(told.metrics))
    return "\n".join(filter(None, tables))
