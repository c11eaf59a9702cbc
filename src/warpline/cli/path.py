"""``warpline path`` and ``warpline budget``: the cost of dispatch, by layer and in total."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warpline.cli.options import (
    json_option,
    no_cache_option,
    open_with_progress,
    step_range_option,
    steps_option,
    trace_argument,
)
from warpline.cli.output import print_json, put_report
from warpline.errors import UsageError

if TYPE_CHECKING:
    from warpline.analyses.budget import Budget

PATH_SCHEMA = "warpline.path/1"
BUDGET_SCHEMA = "warpline.budget/1"


@click.command()
@trace_argument
@click.option("--op", metavar="NAME", help="Show only this op, at any depth.")
@click.option("--top", type=click.IntRange(min=1), default=10, help="List this many ops.")
@json_option
@steps_option
@step_range_option
@no_cache_option
def path(
    trace: Path,
    op: str | None,
    top: int,
    as_json: bool,
    steps: str | None,
    step_range: str | None,
    no_cache: bool,
) -> None:
    """Follow ops from Python to the kernel: time in Python, framework, API call, queue and kernel, per op.

    Examples:

      warpline path trace.json.gz

      warpline path trace.json.gz --op aten::linear --steps 1:

      warpline path trace.json.gz --json
    """
    from warpline.analyses.dispatch_path import dispatch_path  # noqa: PLC0415 - polars loads only when it is used

    table = dispatch_path(open_with_progress(trace, steps, step_range, no_cache), op).head(top)
    if as_json:
        print_json({"schema": PATH_SCHEMA, "ops": table.to_dicts()})
        return
    from warpline.reports.path import path_report  # noqa: PLC0415

    put_report(path_report(table, str(trace)))


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
@json_option
@steps_option
@step_range_option
@no_cache_option
def budget(
    trace: Path | None,
    ops: float | None,
    cpu_us: float | None,
    gpu_us: float | None,
    as_json: bool,
    steps: str | None,
    step_range: str | None,
    no_cache: bool,
) -> None:
    """Show whether dispatch on the CPU or the GPU bounds a step, the crossover, and the gain of a CUDA graph.

    The numbers come from a trace, from options, or from a trace with some of them replaced.

    Examples:

      warpline budget trace.json.gz

      warpline budget --ops 1200 --cpu-us 10 --gpu-us 4

      warpline budget trace.json.gz --cpu-us 5 --json
    """
    from warpline.analyses.budget import Budget  # noqa: PLC0415
    from warpline.findings.budget import bare_budget  # noqa: PLC0415
    from warpline.replay.costs.find import default_costs, find_costs  # noqa: PLC0415

    opened = open_with_progress(trace, steps, step_range, no_cache) if trace is not None else None
    bare, costs = (bare_budget(opened), find_costs(opened)) if opened is not None else (None, default_costs())
    known = bare.budget if bare else None
    if known is None and (ops is None or cpu_us is None or gpu_us is None):
        raise UsageError("no-numbers", "give a trace, or all of --ops, --cpu-us and --gpu-us")
    result = Budget(
        ops=ops if ops is not None else known.ops if known else 0,
        cpu_ns=cpu_us * 1e3 if cpu_us is not None else known.cpu_ns if known else 0,
        gpu_ns=gpu_us * 1e3 if gpu_us is not None else known.gpu_ns if known else 0,
    )
    if not result.step_ns:
        raise UsageError("no-time", "a step needs CPU or GPU time", "give --cpu-us or --gpu-us")
    graph_ns = result.graph_ns(costs.host.graph_launch.expected, costs.device.graph_gap.expected)
    step_ns = result.step_ns
    if bare is not None and bare.step_ns is not None and result == bare.budget:
        # The step, and the graph, that `diagnose` and `whatif` show.
        step_ns, graph_ns = bare.step_ns, bare.graph_ns or graph_ns
    if as_json:
        print_json(_as_dict(result, step_ns, graph_ns))
        return
    from warpline.reports.path import budget_report  # noqa: PLC0415

    put_report(budget_report(result, step_ns, graph_ns))


def _as_dict(budget: Budget, step_ns: float, graph_ns: float) -> dict[str, Any]:
    return {
        "schema": BUDGET_SCHEMA,
        "ops_per_step": budget.ops,
        "cpu_ns_per_op": budget.cpu_ns,
        "gpu_ns_per_op": budget.gpu_ns,
        "dispatch_ns": budget.dispatch_ns,
        "work_ns": budget.work_ns,
        "step_ns": step_ns,
        "bound": budget.bound,
        "crossover_ops": budget.crossover_ops,
        "graph_step_ns": graph_ns,
    }
