"""What a verb looks at: the steps of a trace, opened here, and the chip that it is compared with."""

from __future__ import annotations

import re
from pathlib import Path

import click
from msgspec import Struct

from warpline.cli.options import PATH, bundle
from warpline.cli.write import command_line
from warpline.errors import UnreadableFile
from warpline.ranks.files import jobs_of_folder
from warpline.replay.representative_steps import in_warm_steps
from warpline.reports.console import spinner
from warpline.sources.registry import sources, what_is_read
from warpline.sources.stdin import STDIN, spooled_stdin
from warpline.trace.launches import replays_graphs
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace

TORCH_SUFFIXES = (".json.gz", ".json", ".json.xz", ".pt.trace.json.gz", ".pt.trace.json")
PACKED_TRACES = (".json.gz", ".json.xz")
CAPTURE_FOLDER = "capture_traces"
"""Where vLLM and SGLang put the recording of a graph capture, beside that of the replays."""
WHOLE = "all"
"""The choice of `--steps` that asks for the whole recording."""
trace_argument = click.argument(
    "trace",
    type=PATH,
    metavar="TRACE",
    help=f"A profile of {what_is_read(sources())}; also .gz or .xz; - reads stdin.",
)
steps_option = click.option(
    "--steps",
    metavar="START:STOP",
    help="Use only these steps, START:STOP from 0: 3:6, 3:, -1; all: the whole recording, outside its steps too.",
)
step_range_option = click.option(
    "--step-range", metavar="NAME", help="Take this NVTX range or record_function as one step."
)
no_cache_option = click.option("--no-cache", is_flag=True, help="Parse the file again instead of using the cache.")


class StepSelection(Struct, frozen=True):
    """The steps to look at, and whether the file is parsed again."""

    steps: str | None = None
    step_range: str | None = None
    no_cache: bool = False

    def open(self, path: Path) -> Trace:
        """Open a trace, or the one on standard input, with a spinner on stderr if it is a terminal."""
        path = spooled_stdin() if path == STDIN else path
        steps = None if self.steps == WHOLE else self.steps
        try:
            with spinner(f"reading {path.name} …"):
                return open_trace(path, steps=steps, step_range=self.step_range, cache=not self.no_cache)
        except UnreadableFile as error:
            if error.code != "which-trace" or not jobs_of_folder(path):
                raise
            hint = f"{error.hint}; the whole job: {command_line('diagnose', path)}"
            raise UnreadableFile(error.code, error.message, hint) from error

    def open_steps(self, path: Path) -> Trace:
        """Open a trace for a table in which only its warm steps count, unless others are asked for."""
        trace = self.open(path)
        return trace if self.steps == WHOLE else in_warm_steps(trace)

    def open_lender(self, named: Path | None, trace: Trace) -> Trace | None:
        """Open the trace that lends its shapes: the one of --shapes-from; else, for a trace without ops, the
        torch.profiler trace of the same name beside it, and for one that replays graphs, that of their capture."""
        path = named
        if path is None and len(trace.gpu):
            path = _capture_beside(trace.file) if replays_graphs(trace.gpu, trace.api) else None
            path = path or (None if len(trace.ops) else _torch_trace_beside(trace.file))
        return None if path is None else StepSelection(no_cache=self.no_cache).open(path)

    @property
    def words(self) -> list[str]:
        """The options that select steps, as typed."""
        step_range = [] if self.step_range is None else ["--step-range", self.step_range]
        return step_range + ([] if self.steps is None else ["--steps", self.steps])


def _torch_trace_beside(path: Path) -> Path | None:
    """`layer.json.gz` beside `layer.sqlite.gz` or `layer.nsys-rep`."""
    stem = re.sub(r"(\.sqlite|\.nsys-rep)(\.\w+)?$", "", path.name)
    names = (path.with_name(stem + suffix) for suffix in TORCH_SUFFIXES if stem != path.name)
    return next((name for name in names if name.is_file()), None)


def _capture_beside(path: Path) -> Path | None:
    """The only trace in `capture_traces` beside the file, where engines record how they capture their graphs."""
    folder = path.with_name(CAPTURE_FOLDER)
    found = [file for file in sorted(folder.glob("*.json*")) if file.name.endswith(PACKED_TRACES)]
    return found[0] if len(found) == 1 else None


selection_options = bundle("selection", StepSelection, steps_option, step_range_option, no_cache_option)


class ChipChoice(Struct, frozen=True):
    """The chip to compare with, and the trace that lends shapes."""

    device: str | None
    shapes_from: Path | None


chip_options = bundle(
    "chip",
    ChipChoice,
    click.option("--device", metavar="NAME", help="Compare with this chip; see warpline device."),
    click.option(
        "--shapes-from",
        type=PATH,
        metavar="OTHER",
        help="Take ops and shapes from this torch.profiler trace of the same program, or of the capture of its graphs, "
        "for kernels without ops (nsys, CUDA graphs); default: one of the same name, or in capture_traces, beside it.",
    ),
)
