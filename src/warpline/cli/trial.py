"""``warpline try``: fixes applied to an unchanged program and measured."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.live import Live

from warpline.capture.program import program_of
from warpline.cli.options import WORDS
from warpline.cli.output import ReportOutput, output_options
from warpline.cli.selection import StepSelection
from warpline.cli.whatif import ListsFixes, completed_fix
from warpline.cli.write import refuse_existing, say, write_text
from warpline.errors import EXIT_INCONCLUSIVE, UsageError, WarplineError
from warpline.reports.console import plain_console
from warpline.reports.terminal import render
from warpline.reports.trial import live_report, trial_report
from warpline.sanitise import sanitise
from warpline.sources.record_files import outcomes_file
from warpline.trial.answer import TrialAnswer
from warpline.trial.candidates import candidates, tryable
from warpline.trial.groups import Show
from warpline.trial.live import LiveRow
from warpline.trial.patch import make_patch
from warpline.trial.recording import RecordedProgram, recorded_command
from warpline.trial.session import TrialRequest, run_trial
from warpline.trial.variants import Say

CONTEXT = {"allow_interspersed_args": False}
"""Arguments after the program's name belong to the program."""
TRACES = (".json", ".json.gz", ".json.xz", ".sqlite", ".nsys-rep", ".pt.trace.json", ".pt.trace.json.gz")
"""A program's name does not end so."""
UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600}


class TimeLength(click.ParamType[float]):
    """A length of time: 90, 90s, 10m, 1h."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """In seconds."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(value).strip())
        if found is None or not float(found[1]):
            self.fail(f"{value!r} is no length of time; type 90s, 10m or 1h", param, ctx)
        return float(found[1]) * UNITS_S[found[2]]


class ListsTryable(ListsFixes):
    """A command whose help lists all that can be tried."""

    fixes = staticmethod(tryable)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options may also follow the recording: the program comes after them."""
        if not args or not _is_recording(args[0]):
            return super().parse_args(ctx, args)
        left = super().parse_args(ctx, args[1:])
        ctx.params["words"] = (args[0], *ctx.params["words"])
        return left


@click.command("try", cls=ListsTryable, context_settings=CONTEXT)
@click.argument(
    "words",
    nargs=-1,
    type=WORDS,
    metavar="[RUN] PROGRAM…",
    help="A recorded run or trace to predict from, and the program: a command, a script, or a module with -m.",
)
@click.option("-m", "module", is_flag=True, help="Run the program as a Python module.")
@click.option(
    "--fix",
    "fixes",
    multiple=True,
    metavar="NAME",
    shell_complete=completed_fix,
    help="Try this fix; may be repeated. Default: all that apply.",
)
@click.option("--budget", type=TimeLength(), default="10m", help="Measure for at most this long: 90s, 10m, 1h.")
@click.option("--yes", is_flag=True, help="Do not ask before the program writes files outside its folder.")
@click.option(
    "--patch",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the best combination as a git diff to this file.",
)
@output_options
def try_fixes(
    words: tuple[str, ...],
    module: bool,
    fixes: tuple[str, ...],
    budget: float,
    yes: bool,
    patch: Path | None,
    output: ReportOutput,
) -> int:
    """Apply fixes to an unchanged program, measure each against it, and check that the results stay the same.

    The program runs in several processes at once; one at a time runs a window of steps, the others wait. It is ended
    when enough steps are measured. The fixes: {fixes}.

    Examples:

      warpline try -- python train.py --lr 0.1

      warpline try --fix tf32 --fix torch_compile --budget 5m train.py

      warpline try .warpline/runs/20261118-090000-train
    """
    refuse_existing(patch, output.force)
    recorded, command = _recording_and_command(words, module)
    predicted = {fix: one.gain for fix, one in recorded.predictions.items()} if recorded else {}
    chosen = candidates(fixes)
    if predicted and not fixes:
        chosen.sort(key=lambda one: -predicted[one.fix].expected if one.fix in predicted else 0.0)
    request = TrialRequest(command, tuple(chosen), budget, predicted)

    with live_progress() as (tell, show):
        answer = run_trial(request, tell, None if yes else _may_write, show)
    if recorded is not None:
        _remember(recorded, answer)
    output.put(lambda: trial_report(answer), answer.to_dict)
    if patch is not None:
        _write_patch(patch, answer)
    return 0 if answer.baseline_s is not None else EXIT_INCONCLUSIVE


@contextmanager
def live_progress() -> Iterator[tuple[Say, Show]]:
    """Lines on stderr; on a terminal also a table of the processes, drawn anew before each round and not during it."""
    console = plain_console(stderr=True)
    if not console.is_terminal:
        yield lambda text: say(f"warpline: {text}", err=True), lambda rows: None
        return
    live = Live(console=console, auto_refresh=False, transient=True)

    def show(rows: tuple[LiveRow, ...]) -> None:
        live.start()  # not earlier: the first run may ask a question
        live.update(render(live_report(rows), console.width), refresh=True)

    try:
        yield lambda text: console.print(sanitise(f"warpline: {text}")), show
    finally:
        live.stop()


def _may_write(path: str) -> bool:
    """Ask before the program writes outside its folder."""
    if not sys.stdin.isatty():
        raise UsageError(
            "writes-files",
            f"the program runs in a copy of this folder and writes outside it ({path}), as each run will",
            "add --yes",
        )
    say(
        f"The program runs in a copy of this folder and is about to write outside it, as each run will: {path}",
        err=True,
    )
    return bool(click.confirm("Go on?", err=True))


def _is_recording(word: str) -> bool:
    path = Path(word)
    return path.is_dir() or (path.is_file() and "".join(path.suffixes) in TRACES)


def _recording_and_command(words: tuple[str, ...], module: bool) -> tuple[RecordedProgram | None, tuple[str, ...]]:
    """What was recorded, if the first word names it, and the program to run."""
    if module or not words or not _is_recording(words[0]):
        return None, program_of(list(words), module).command
    first = Path(words[0])
    rest = [word for place, word in enumerate(words[1:]) if place or word != "--"]
    command = program_of(rest).command if rest else recorded_command(first if first.is_dir() else first.parent)
    return RecordedProgram.of(StepSelection().open(first)), command


def _remember(recorded: RecordedProgram, answer: TrialAnswer) -> None:
    """Append to the local record. That it cannot be written changes no answer."""
    try:
        recorded.remember(outcomes_file(), answer)
    except WarplineError as error:
        say(f"warpline: not recorded: {error.line()}", err=True)


def _write_patch(file: Path, answer: TrialAnswer) -> None:
    if not answer.best:
        say("warpline: no patch: no fix is known to make the program faster", err=True)
        return
    patch = make_patch(answer, Path.cwd())
    write_text(file, patch.text)
    say(f"wrote {file}; git apply {file}" if patch.diff else f"wrote {file}: lines to write by hand", err=True)
