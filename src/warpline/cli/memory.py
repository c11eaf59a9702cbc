"""``warpline memory``: where the memory goes, from a trace or a memory snapshot of torch."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from warpline.analyses.memory import MemoryUse, memory_of_trace
from warpline.cli.options import PATH, bundle, verbose_option
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.selection import StepSelection, selection_options
from warpline.cli.write import refuse_existing, say, write_text
from warpline.errors import UsageError
from warpline.front.functions import memory_use
from warpline.reports.memory import memory_report
from warpline.reports.memory import svg as drawn
from warpline.reports.title import recording
from warpline.sources.detect import detect
from warpline.sources.kinds import MEMORY_SNAPSHOT
from warpline.sources.stdin import STDIN, spooled_stdin


class MemoryView(Struct, frozen=True):
    """What to show of the memory."""

    by: str
    device: str | None
    top: int
    verbose: bool


@click.command()
@click.argument(
    "trace",
    type=PATH,
    metavar="TRACE",
    help="A trace with memory events, or a snapshot of torch.cuda.memory._dump_snapshot(); - reads stdin.",
)
@bundle(
    "shown",
    MemoryView,
    click.option(
        "--by",
        type=click.Choice(["op", "module", "line"]),
        default="op",
        help="Show who allocated by op, module or line.",
    ),
    click.option("--device", metavar="NAME", help="Show this device: cuda:0, cpu."),
    click.option("--top", type=click.IntRange(min=1), default=10, help="List this many rows."),
    verbose_option,
)
@click.option("--svg", type=PATH, metavar="FILE.svg", help="Draw the curve into this file.")
@output_options
@selection_options
def memory(trace: Path, shown: MemoryView, svg: Path | None, output: ReportOutput, selection: StepSelection) -> None:
    """Show where the memory goes: the peak and what is alive then, reserved memory, growth per step, the curve.

    Reads torch.profiler traces with profile_memory=True, nsys exports with --cuda-memory-usage=true, and torch's
    memory snapshots (.pickle), which are read without executing them.

    Examples:

      warpline memory trace.json.gz

      warpline memory trace.json.gz --by line --svg memory.svg

      warpline memory snapshot.pickle -v
    """
    if svg is not None and svg.suffix.lower() != ".svg":
        raise UsageError("unknown-format", f"{svg.name} is not an SVG file", "use the suffix .svg")
    refuse_existing(svg, output.force)
    use, title = _memory(trace, selection)
    answer = use if shown.device is None else _of_device(use, shown.device)
    if svg is not None:
        write_text(svg, drawn(answer.devices[0], trace.name))
        say(f"wrote {svg}", err=True)
    output.put(lambda: memory_report(answer, title, shown.by, shown.top, shown.verbose), answer.to_dict)


def _memory(trace: Path, selection: StepSelection) -> tuple[MemoryUse, str]:
    """The answer and its title."""
    path = spooled_stdin() if trace == STDIN else trace
    if detect(path) is MEMORY_SNAPSHOT:
        return memory_use(path, steps=selection.steps, step_range=selection.step_range), path.name
    opened = selection.open(path)
    return memory_of_trace(opened), recording(opened)


def _of_device(answer: MemoryUse, device: str) -> MemoryUse:
    chosen = tuple(one for one in answer.devices if one.device == device)
    if not chosen:
        known = ", ".join(one.device for one in answer.devices)
        raise UsageError("no-such-device", f"the profile has no memory of {device!r}", f"it has {known}")
    return replace(answer, devices=chosen)
