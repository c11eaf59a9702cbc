"""``warpline budget``: can the CPU launch as fast as the GPU computes? As an answer, or as a live calculator."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct

from warpline.analyses.budget import DispatchBudget
from warpline.analyses.platform import platform_of
from warpline.cli.options import PATH, bundle
from warpline.cli.output import ReportOutput, output_options, report_console
from warpline.cli.selection import StepSelection, selection_options
from warpline.cli.write import say
from warpline.errors import UsageError
from warpline.findings.budget import Outlook, bare_budget, outlook
from warpline.hardware.vocabulary import in_words_of
from warpline.replay.costs.find import default_costs, find_costs
from warpline.reports.budget import budget_report
from warpline.reports.sections import Report
from warpline.ui.budget_calculator import panel, run_live

EXAMPLE = DispatchBudget(200.0, 15_000.0, 15_000.0)
"""Where the live calculator starts without numbers."""


class LaunchNumbers(Struct, frozen=True):
    """Launches per step, and µs of CPU and GPU for each, as far as options give them."""

    ops: float | None
    cpu_us: float | None
    gpu_us: float | None

    def completed(self, known: DispatchBudget | None) -> DispatchBudget:
        """The budget: what no option gives is from the trace."""
        if known is None and None in (self.ops, self.cpu_us, self.gpu_us):
            raise UsageError("no-numbers", "give a trace, or all of --ops, --cpu-us and --gpu-us")
        known = known or EXAMPLE
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
@click.option("--live", is_flag=True, help="Change the numbers with the arrow keys; q ends it.")
@output_options
@selection_options
def budget(
    trace: Path | None,
    numbers: LaunchNumbers,
    fusion: float,
    live: bool,
    output: ReportOutput,
    selection: StepSelection,
) -> None:
    """Show whether dispatch on the CPU or the GPU bounds a step, the crossover, and the gain of a CUDA graph.

    The numbers come from a trace (without the profiler's cost), from options, or from both: options replace.

    Examples:

      warpline budget trace.json.gz

      warpline budget --ops 1200 --cpu-us 10 --gpu-us 4 --fusion 6

      warpline budget trace.json.gz --live
    """
    if live and (output.as_json or output.file is not None):
        raise UsageError("live-json", "--live excludes --json and -o", "omit one")
    opened = selection.open(trace) if trace is not None else None
    bare, costs = (bare_budget(opened), find_costs(opened)) if opened is not None else (None, default_costs())
    known = bare.budget if bare is not None else EXAMPLE if live else None
    chosen = numbers.completed(known)

    def answer(budget: DispatchBudget, fewer: float) -> Outlook:
        return outlook(budget, fewer, costs.host.graph_launch.expected, costs.device.graph_gap.expected, bare)

    if not live:
        found = answer(chosen, fusion)
        platform = platform_of(opened) if opened is not None else "cuda"
        output.put(lambda: in_words_of(platform, budget_report(found)), found.to_dict)
        return
    exact = (chosen.ops, chosen.cpu_ns / 1e3, chosen.gpu_ns / 1e3, fusion)
    start = panel(*exact)

    def shown(values: tuple[float, ...]) -> Report:
        # A dial that was not turned keeps the exact number, so that the trace's own step and graph are shown.
        dials = zip(exact, start.dials, values, strict=True)
        launches, cpu_us, gpu_us, fewer = (own if value == dial.value else value for own, dial, value in dials)
        return budget_report(answer(DispatchBudget(launches, cpu_us * 1e3, gpu_us * 1e3), fewer))

    values = [dial.value for dial in run_live(start, shown, report_console()).dials]
    say("warpline budget --ops {:.0f} --cpu-us {:.4g} --gpu-us {:.4g} --fusion {:.4g}".format(*values))
