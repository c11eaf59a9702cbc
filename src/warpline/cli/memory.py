"""``warpline memory``: where the memory goes, from a trace or a memory snapshot of torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from warpline.cli.options import (
    json_option,
    no_cache_option,
    open_with_progress,
    step_range_option,
    steps_option,
    verbose_option,
)
from warpline.cli.output import print_json, put_report, refuse_existing, say, write_text
from warpline.errors import UsageError

if TYPE_CHECKING:
    from warpline.analyses.memory import MemoryUse


@click.command()
@click.argument(
    "trace",
    type=click.Path(path_type=Path),
    metavar="TRACE",
    help="A trace with memory events, or a snapshot of torch.cuda.memory._dump_snapshot(); - reads stdin.",
)
@click.option(
    "--by", type=click.Choice(["op", "module", "line"]), default="op", help="Show who allocated by op, module or line."
)
@click.option("--device", metavar="NAME", help="Show this device: cuda:0, cpu.")
@click.option("--top", type=click.IntRange(min=1), default=10, help="List this many rows.")
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE.svg", help="Draw the curve into this file.")
@click.option("-f", "--force", is_flag=True, help="Overwrite the file given with --svg.")
@verbose_option
@json_option
@steps_option
@step_range_option
@no_cache_option
def memory(
    trace: Path,
    by: str,
    device: str | None,
    top: int,
    svg: Path | None,
    force: bool,
    verbose: bool,
    as_json: bool,
    steps: str | None,
    step_range: str | None,
    no_cache: bool,
) -> None:
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
    refuse_existing(svg, force)
    use, title = _memory(trace, steps, step_range, no_cache)
    answer = _of_device(use, device)
    if svg is not None:
        from warpline.reports.memory_plot import svg as drawn  # noqa: PLC0415 - loads when it is used

        write_text(svg, drawn(answer.devices[0], trace.name))
        say(f"wrote {svg}", err=True)
    if as_json:
        print_json(answer.to_dict())
        return
    from warpline.reports.memory import memory_report  # noqa: PLC0415

    put_report(memory_report(answer, title, by, top, verbose))


def _memory(trace: Path, steps: str | None, step_range: str | None, no_cache: bool) -> tuple[MemoryUse, str]:
    """The answer and its title."""
    from warpline.sources.detect import detect  # noqa: PLC0415 - loads when it is used
    from warpline.sources.kinds import MEMORY_SNAPSHOT  # noqa: PLC0415
    from warpline.sources.stdin import STDIN, spooled_stdin  # noqa: PLC0415

    path = spooled_stdin() if trace == STDIN else trace
    if detect(path) is MEMORY_SNAPSHOT:
        from warpline.front.functions import memory_use  # noqa: PLC0415

        return memory_use(path, steps=steps, step_range=step_range), path.name
    opened = open_with_progress(path, steps, step_range, no_cache)
    from warpline.analyses.memory import memory_of_trace  # noqa: PLC0415
    from warpline.reports.title import recording  # noqa: PLC0415

    return memory_of_trace(opened), recording(opened)


def _of_device(answer: MemoryUse, device: str | None) -> MemoryUse:
    if device is None:
        return answer
    chosen = tuple(one for one in answer.devices if one.device == device)
    if not chosen:
        known = ", ".join(one.device for one in answer.devices)
        raise UsageError("no-such-device", f"the profile has no memory of {device!r}", f"it has {known}")
    return replace(answer, devices=chosen)
