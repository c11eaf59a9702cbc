"""``warpline budget``: can the CPU launch as fast as the GPU computes? As an answer, or live."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from warpline.cli.options import json_option, no_cache_option, open_with_progress, step_range_option, steps_option
from warpline.cli.output import print_json, put_report, say
from warpline.errors import UsageError

if TYPE_CHECKING:
    from warpline.findings.budget import BareBudget
    from warpline.reports.sections import Report

EXAMPLE = (200.0, 15.0, 15.0)
"""Where the live calculator starts without numbers: launches, and µs of CPU and GPU for each."""


@click.command()
@click.argument(
    "trace",
    type=click.Path(path_type=Path),
    required=False,
    metavar="[TRACE]",
    help="Take the numbers from this trace.",
)
@click.option("--ops", type=click.FloatRange(min=1), help="Set the launches per step.")
@click.option("--cpu-us", type=click.FloatRange(min=0), help="Set the CPU time per launch, in µs.")
@click.option("--gpu-us", type=click.FloatRange(min=0), help="Set the GPU time per launch, in µs.")
@click.option(
    "--fusion",
    type=click.FloatRange(min=1),
    default=4.0,
    help="Assume that fusion makes this many times fewer launches.",
)
@click.option("--live", is_flag=True, help="Change the numbers with the arrow keys; q ends it.")
@json_option
@steps_option
@step_range_option
@no_cache_option
def budget(
    trace: Path | None,
    ops: float | None,
    cpu_us: float | None,
    gpu_us: float | None,
    fusion: float,
    live: bool,
    as_json: bool,
    steps: str | None,
    step_range: str | None,
    no_cache: bool,
) -> None:
    """Show whether dispatch on the CPU or the GPU bounds a step, the crossover, and the gain of a CUDA graph.

    The numbers come from a trace (without the profiler's cost), from options, or from both: options replace.

    Examples:

      warpline budget trace.json.gz

      warpline budget --ops 1200 --cpu-us 10 --gpu-us 4 --fusion 6

      warpline budget trace.json.gz --live
    """
    from warpline.analyses.budget import DispatchBudget  # noqa: PLC0415 - polars loads only when it is used
    from warpline.findings.budget import bare_budget, outlook  # noqa: PLC0415
    from warpline.replay.costs.find import default_costs, find_costs  # noqa: PLC0415
    from warpline.reports.budget import budget_report  # noqa: PLC0415

    if live and as_json:
        raise UsageError("live-json", "--live and --json exclude each other", "omit one")
    opened = open_with_progress(trace, steps, step_range, no_cache) if trace is not None else None
    bare, costs = (bare_budget(opened), find_costs(opened)) if opened is not None else (None, default_costs())
    numbers = _numbers(bare, ops, cpu_us, gpu_us, live)
    graph_costs = (costs.host.graph_launch.expected, costs.device.graph_gap.expected)
    if not live:
        result = outlook(DispatchBudget(numbers[0], numbers[1] * 1e3, numbers[2] * 1e3), fusion, *graph_costs, bare)
        if as_json:
            print_json(result.to_dict())
        else:
            put_report(budget_report(result))
        return
    from warpline.cli.budget_live import panel, run_live  # noqa: PLC0415

    start = panel(*numbers, fusion)

    def answer(values: tuple[float, ...]) -> Report:
        # A dial that was not turned keeps the exact number, so that the trace's own step and graph are shown.
        shown = tuple(dial.value for dial in start.dials)
        exact = (*numbers, fusion)
        launches, cpu, gpu, fewer = (exact[i] if values[i] == shown[i] else values[i] for i in range(4))
        return budget_report(outlook(DispatchBudget(launches, cpu * 1e3, gpu * 1e3), fewer, *graph_costs, bare))

    values = [dial.value for dial in run_live(start, answer).dials]
    say("warpline budget --ops {:.0f} --cpu-us {:.4g} --gpu-us {:.4g} --fusion {:.4g}".format(*values))


def _numbers(
    bare: BareBudget | None, ops: float | None, cpu_us: float | None, gpu_us: float | None, live: bool
) -> tuple[float, float, float]:
    """Launches, and µs of CPU and GPU for each: from the options, else from the trace."""
    known = (bare.budget.ops, bare.budget.cpu_ns / 1e3, bare.budget.gpu_ns / 1e3) if bare else None
    known = known or (EXAMPLE if live else None)
    given = (ops, cpu_us, gpu_us)
    if known is None and None in given:
        raise UsageError("no-numbers", "give a trace, or all of --ops, --cpu-us and --gpu-us")
    chosen = [own if own is not None else known[place] if known else 0.0 for place, own in enumerate(given)]
    if not chosen[0] * max(chosen[1:]):
        raise UsageError("no-time", "a step needs CPU or GPU time", "give --cpu-us or --gpu-us")
    return chosen[0], chosen[1], chosen[2]
