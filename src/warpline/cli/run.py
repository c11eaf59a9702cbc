"""``warpline run``: profiles some steps of an unchanged program, and diagnoses them."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from warpline.capture.container import docker_flags
from warpline.capture.launch import launch
from warpline.capture.plan import NCU, NSYS, TORCH, Plan, skipping
from warpline.capture.program import program_of
from warpline.capture.run import Run, RunRequest, chosen_tool, explanation, prepare, say_on_stderr
from warpline.capture.run import run as record
from warpline.capture.run_folder import SCHEMA
from warpline.capture.tool_commands import NCU_LAUNCHES, Flag, words_of
from warpline.cli.diagnose import put_diagnosis
from warpline.cli.dive import put_dive
from warpline.cli.options import PATH, WORDS, bundle, json_option
from warpline.cli.output import ReportOutput
from warpline.cli.selection import StepSelection
from warpline.cli.write import more_traces, print_json, say, say_error
from warpline.dive.answer import dive_files
from warpline.errors import EXIT_FAILED, UnreadableFile, UsageError, WarplineError
from warpline.findings.diagnosis import diagnose as diagnose_trace
from warpline.sources.nsys.report_file import export_report
from warpline.sources.stdin import as_typed
from warpline.untrusted_json import read_json

CONTEXT = {"allow_interspersed_args": False}
"""Arguments after the program's name belong to the program."""
NCU_SUFFIX = ".ncu-rep"
_DEFAULT = Plan(folder="")


class ProgramWords(Struct, frozen=True):
    """The program to run."""

    words: tuple[str, ...]
    module: bool
    stop: bool


class RecordingLimits(Struct, frozen=True):
    """What to record, and how much of it."""

    skip: int | None
    warmup: int
    steps: int
    seconds: float
    megabytes: int
    after_s: float
    whole: bool
    shapes: bool
    stacks: bool
    memory: bool
    lines: bool
    dataflow: bool

    def plan(self) -> Plan:
        """The same as a plan."""
        given = {field: getattr(self, field) for field in self.__struct_fields__ if field != "skip"}
        return Plan(folder="", **skipping(self.skip), **given)


class RecorderChoice(Struct, frozen=True):
    """The tool that records, and what only it can do."""

    tool: str | None
    kernel: str
    launches: int
    tool_arguments: tuple[str, ...]


class RunPlace(Struct, frozen=True):
    """Where the program runs and where the recording goes."""

    name: str | None
    output: Path | None
    container: str | None
    execute: bool


class RunAnswer(Struct, frozen=True):
    """What to say at the end."""

    diagnose: bool
    explain: bool
    as_json: bool


@click.command(context_settings=CONTEXT)
@bundle(
    "program",
    ProgramWords,
    click.argument(
        "words", nargs=-1, type=WORDS, metavar="PROGRAM…", help="Run this: a command, a script, or a module with -m."
    ),
    click.option("-m", "module", is_flag=True, help="Run the program as a Python module."),
    click.option("--stop", is_flag=True, help="End the program once it is recorded."),
)
@bundle(
    "limits",
    RecordingLimits,
    click.option("--skip", type=click.IntRange(min=0), help="Time this many unprofiled steps first; default: 8 to 24."),
    click.option(
        "--warmup", type=click.IntRange(min=0), default=_DEFAULT.warmup, help="Discard this many profiled steps first."
    ),
    click.option("--steps", type=click.IntRange(min=1), default=_DEFAULT.steps, help="Record this many steps."),
    click.option(
        "--seconds", type=click.FloatRange(min=0.1), default=_DEFAULT.seconds, help="Stop recording after this time."
    ),
    click.option(
        "--megabytes", type=click.IntRange(min=1), default=_DEFAULT.megabytes, help="Stop recording at this memory use."
    ),
    click.option(
        "--after",
        "after_s",
        type=click.FloatRange(min=0),
        default=_DEFAULT.after_s,
        help="After this many seconds without steps, record a time window.",
    ),
    click.option("--whole", is_flag=True, help="Record from the start, with or without steps."),
    click.option(
        "--shapes/--no-shapes", default=_DEFAULT.shapes, help="Record shapes of inputs (roofline needs them)."
    ),
    click.option("--stacks/--no-stacks", default=_DEFAULT.stacks, help="Record Python stacks (slower)."),
    click.option("--memory/--no-memory", default=_DEFAULT.memory, help="Record every allocation."),
    click.option("--lines/--no-lines", default=_DEFAULT.lines, help="Look at two more steps for source lines."),
    click.option("--dataflow/--no-dataflow", default=_DEFAULT.dataflow, help="Look at two more steps for data flow."),
)
@bundle(
    "recorder",
    RecorderChoice,
    click.option("--with", "tool", metavar="TOOL", help="Record with torch (default), nsys or ncu."),
    click.option("--kernel", default="", metavar="REGEX", help="Profile only these kernels (ncu)."),
    click.option(
        "--launches", type=click.IntRange(min=1), default=NCU_LAUNCHES, help="Profile this many launches (ncu)."
    ),
    click.option(
        "--tool-arg",
        "tool_arguments",
        multiple=True,
        type=WORDS,
        metavar="FLAG",
        help="Pass one more flag to nsys or ncu.",
    ),
)
@bundle(
    "place",
    RunPlace,
    click.option("--name", help="Name the run's folder in .warpline/runs."),
    click.option("--output", "-o", type=PATH, metavar="FOLDER", help="Write to another folder."),
    click.option("--container", metavar="IMAGE", help="Print the docker command for this image."),
    click.option("--exec", "execute", is_flag=True, help="Run that docker command."),
)
@bundle(
    "answer",
    RunAnswer,
    click.option("--diagnose/--no-diagnose", default=True, help="Diagnose the recorded trace."),
    click.option("--explain", is_flag=True, help="Explain each flag without running anything."),
    json_option,
)
def run(
    program: ProgramWords,
    limits: RecordingLimits,
    recorder: RecorderChoice,
    place: RunPlace,
    answer: RunAnswer,
) -> int:
    """Run a program unchanged, profile some of its steps, and diagnose them.

    Times a few unprofiled steps, then records a few; the program runs to its end, and its exit code is returned.

    Examples:

      warpline run train.py --lr 0.1

      warpline run --steps 3 --stacks -- torchrun --nproc-per-node 8 train.py

      warpline run --with nsys -m package.train

      warpline run --container nvcr.io/nvidia/pytorch:25.09-py3 train.py
    """
    plan = limits.plan()
    if passed_on := _own_options_after(program):
        say(f"warpline: {passed_on[0]} goes to the program; options of warpline run stand before it", err=True)
    if place.container is not None:
        if not program.words or not place.container:
            raise UsageError("no-program", "there is nothing to run", "type: warpline run --container IMAGE train.py")
        if place.output is not None:
            raise UsageError("no-output", "a container writes to .warpline/runs in this folder", "use --name")
        words = _inner_words(program, plan, recorder, place.name)
        return _in_container(place.container, recorder.tool or TORCH, words, place.execute, answer)
    if place.execute:
        raise UsageError("no-container", "--exec runs the command of --container", "add --container IMAGE")
    request = RunRequest(
        program_of(list(program.words), program.module),
        tool=recorder.tool,
        name=place.name,
        output=place.output,
        stop=program.stop,
        kernel=recorder.kernel,
        launches=recorder.launches,
        tool_arguments=recorder.tool_arguments,
        output_to_stderr=answer.as_json,
    )
    plan = replace(plan, tool=chosen_tool(request))
    if answer.explain:
        _print_flags(explanation(request, replace(plan, folder="FOLDER")), answer.as_json)
        return 0
    return put_run(record(request, prepare(request, plan), say_on_stderr), answer)


def _own_options_after(program: ProgramWords) -> list[str]:
    """The words after a script or a module that are options of ours too; in a whole command none is looked for."""
    short = program.module or any(word.endswith(".py") for word in program.words[:1])
    ours = {name for option in run.params for name in option.opts if name.startswith("--")}
    return [word for word in program.words[1:] if word.partition("=")[0] in ours] if short else []


def _inner_words(program: ProgramWords, plan: Plan, recorder: RecorderChoice, name: str | None) -> list[str]:
    """What `warpline run` gets inside a container: the options that differ from their defaults, and the program."""
    words = ["--with", recorder.tool or TORCH, *_changed(plan)]
    words += [f"--{option}={value}" for option, value in (("name", name), ("kernel", recorder.kernel)) if value]
    words += ["--launches", str(recorder.launches)] if recorder.launches != NCU_LAUNCHES else []
    words += [f"--tool-arg={word}" for word in recorder.tool_arguments]
    return words + ["--stop"] * program.stop + ["-m"] * program.module + ["--", *program.words]


def _changed(plan: Plan) -> list[str]:
    """The options that differ from the defaults, as command-line flags."""
    words = [] if plan.settle_s else ["--skip", str(plan.skip)]
    for field, value in asdict(plan).items():
        name = "after" if field == "after_s" else field
        if value == getattr(_DEFAULT, field) or field in {"folder", "tool", "step_range", "skip", "settle_s"}:
            continue
        words += [f"--{'' if value else 'no-'}{name}"] if isinstance(value, bool) else [f"--{name}", str(value)]
    return words


def _in_container(image: str, tool: str, words: list[str], execute: bool, answer: RunAnswer) -> int:
    """Print the docker command, or run it and diagnose its result."""
    if tool not in {TORCH, NSYS, NCU}:
        raise UsageError("unknown-tool", f"--with takes torch, nsys or ncu, not {tool!r}")
    flags = docker_flags(image, tool, words, Path.cwd())
    if not execute:
        _print_flags(flags, answer.as_json, explain=answer.explain)
        return 0
    if shutil.which("docker") is None:
        raise WarplineError("docker-missing", "docker is not on PATH", "leave out --exec to see the command")
    before = _runs()
    code = launch(words_of(flags), os.environ, output_to_stderr=answer.as_json).exit_code
    new = sorted(_runs() - before)
    if not new:
        raise WarplineError("no-run", "the container wrote no run here", "see its messages above", code or EXIT_FAILED)
    _put_folder(new[-1], answer)
    return code


def _runs() -> set[Path]:
    return set(Path(".warpline", "runs").glob("*/manifest.json"))


def _print_flags(flags: Sequence[Flag], as_json: bool, explain: bool = True) -> None:
    """Print a command line for a shell, explained, or as JSON."""
    if as_json:
        parts = [{"words": list(flag.words), "why": flag.why} for flag in flags]
        print_json({"schema": SCHEMA, "command": words_of(flags), "flags": parts})
    elif explain:
        width = min(max(len(shlex.join(flag.words)) for flag in flags), 60)
        for flag in flags:
            say(f"{shlex.join(flag.words):{width}}  {flag.why}")
    else:
        say(" \\\n  ".join(shlex.join(flag.words) for flag in flags))


def put_run(result: Run, answer: RunAnswer) -> int:
    """Print the diagnosis of the recorded trace, or one line that says why there is none.

    The exit code is the program's, even if the trace cannot be diagnosed and the program failed.
    """
    failure = result.nothing
    try:
        _put(result.manifest, result.folder, _readable(result.trace), failure, answer)
    except WarplineError as error:
        failure = WarplineError(error.code, error.message, error.hint, result.exit_code or error.exit_code)
        if answer.as_json:
            _put(result.manifest, result.folder, None, failure, answer)
    if result.trace is not None:
        _say_where(result)
    if failure is None:
        return result.exit_code
    if answer.as_json:
        # The answer on stdout has the error, as `nothing`.
        say_error(failure)
        return failure.exit_code
    raise failure


def _put_folder(manifest: Path, answer: RunAnswer) -> None:
    """Print the diagnosis of a run from its folder, for example of a container."""
    try:
        written = dict(read_json(manifest))
        trace = manifest.parent / written["files"][0] if written["files"] else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableFile("bad-manifest", f"{manifest} cannot be read: {error}", "record again") from error
    _put(written, manifest.parent, _readable(trace), None, answer)


def _put(
    manifest: dict[str, Any], folder: Path, trace: Path | None, failure: WarplineError | None, answer: RunAnswer
) -> None:
    wanted = trace if answer.diagnose else None
    is_report = wanted is not None and wanted.suffix == NCU_SUFFIX
    dive = dive_files([wanted]) if wanted is not None and is_report else None
    found = diagnose_trace(StepSelection().open(wanted)) if wanted is not None and not is_report else None
    if answer.as_json:
        nothing = failure.line() if failure else None
        document = {"folder": str(folder), "nothing": nothing, "diagnosis": None if found is None else found.to_dict()}
        print_json({**manifest, **document, **({} if dive is None else {"dive": dive.to_dict()})})
    elif dive is not None:
        put_dive(dive, verbose=False, output=ReportOutput())
    elif found is not None:
        put_diagnosis(found, ReportOutput())


def _readable(trace: Path | None) -> Path | None:
    """The trace to diagnose; for an nsys report its SQLite export, stored beside it."""
    if trace is None or trace.suffix != ".nsys-rep":
        return trace
    return export_report(trace, trace.parent).rename(trace.with_suffix(".sqlite"))


def _say_where(result: Run) -> None:
    say(f"warpline: the run is in {as_typed(result.folder)}", err=True)
    others = [result.folder / name for name in result.manifest["files"][1:]]
    if others:
        say(f"warpline: {more_traces(others)}", err=True)
    if result.trace is not None and result.trace.suffix == NCU_SUFFIX:
        say(f"warpline: the Nsight Compute report is {as_typed(result.trace)}", err=True)
