"""``warpline budget``: can the CPU launch as fast as the GPU computes?"""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct

from warpline.analyses.budget import DispatchBudget
from warpline.analyses.platform import platform_of
from warpline.cli.options import PATH, bundle
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.selection import StepSelection, selection_options
from warpline.errors import UsageError
from warpline.findings.budget import bare_budget, outlook
from warpline.hardware.vocabulary import in_words_of
from warpline.replay.costs.find import default_costs, find_costs
from warpline.reports.budget import budget_report


class LaunchNumbers(Struct, frozen=True):
    """Launches per step, and µs of CPU and GPU for each, as far as options give them."""

    ops: float | None
    cpu_us: float | None
    gpu_us: float | None

    def completed(self, known: DispatchBudget | None) -> DispatchBudget:
        """The budget: what no option gives is from the trace."""
        if known is None and None in (self.ops, self.cpu_us, self.gpu_us):
            raise UsageError("no-numbers", "give a trace, or all of --ops, --cpu-us and --gpu-us")
        known = known or DispatchBudget(0.0, 0.0, 0.0)
        found = DispatchBudget(
            known.ops if self.ops is None else self.ops,
            known.cpu_ns if self.cpu_us is None else self.cpu_us * 1e3,
            known.gpu_ns if self.gpu_us is None else self.gpu_us * 1e3,
        )
        if not found.step_ns:
            raise UsageError("no-time", "a step needs CPU or GPU time", "give --cpu-us or --gpu-us")
        return found


@click.command()
@click.argument("trace", type=PATH, required=False, metavar="[TRACE]", help="Take the numbers from this trace.")
@bundle(
    "numbers",
    LaunchNumbers,
    click.option("--ops", type=click.FloatRange(min=1), help="Set the launches per step."),
    click.option("--cpu-us", type=click.FloatRange(min=0), help="Set the CPU time per launch, in µs."),
    click.option("--gpu-us", type=click.FloatRange(min=0), help="Set the GPU time per launch, in µs."),
)
@click.option(
    "--fusion",
    type=click.FloatRange(min=1),
    default=4.0,
    help="Assume that fusion makes this many times fewer launches.",
)
@output_options
@selection_options
def budget(
    trace: Path | None,
    numbers: LaunchNumbers,
    fusion: float,
    output: ReportOutput,
    selection: StepSelection,
) -> None:
    """Show whether dispatch on the CPU or the GPU bounds a step, the crossover, and the gain of a CUDA graph.

    The numbers come from a trace (without the profiler's cost), from options, or from both: options replace.

    Examples:

      warpline budget trace.json.gz

      warpline budget --ops 1200 --cpu-us 10 --gpu-us 4 --fusion 6
    """
    opened = selection.open(trace) if trace is not None else None
    bare, costs = (bare_budget(opened), find_costs(opened)) if opened is not None else (None, default_costs())
    chosen = numbers.completed(None if bare is None else bare.budget)
    found = outlook(chosen, fusion, costs.host.graph_launch.expected, costs.device.graph_gap.expected, bare)
    platform = platform_of(opened) if opened is not None else "cuda"
    output.put(lambda: in_words_of(platform, budget_report(found)), found.to_dict)
