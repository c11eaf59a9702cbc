"""``warpline run``: a program under a profiler, unchanged and bounded, and then its diagnosis."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from warpline.capture.plan import NCU, NSYS, TORCH, Plan, skipping
from warpline.cli.diagnose import show
from warpline.cli.options import JsonOption, open_with_progress
from warpline.cli.output import print_json
from warpline.errors import UsageError, WarplineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warpline.capture.run import Run
    from warpline.capture.tools import Flag

CONTEXT = {"allow_interspersed_args": False}
"""Whatever follows the program's first word is the program's."""
_DEFAULT = Plan(folder="")
_HOW_MUCH = "How much"
_WHAT = "What"
_WHERE = "Where"

ProgramArgument = Annotated[
    list[str] | None, typer.Argument(metavar="PROGRAM…", help="What to run: a command, a script, or a module with -m.")
]
ModuleOption = Annotated[bool, typer.Option("-m", help="The program is a Python module.")]
ToolOption = Annotated[
    str | None,
    typer.Option("--with", metavar="TOOL", help="torch (by default), nsys or ncu.", rich_help_panel=_WHAT),
]
SkipOption = Annotated[
    int | None,
    typer.Option("--skip", min=0, help="Bare steps first, timed; by default 8 to 24.", rich_help_panel=_HOW_MUCH),
]
WarmupOption = Annotated[
    int, typer.Option("--warmup", min=0, help="Steps under the profiler, not kept.", rich_help_panel=_HOW_MUCH)
]
StepCountOption = Annotated[int, typer.Option("--steps", min=1, help="Recorded steps.", rich_help_panel=_HOW_MUCH)]
SecondsOption = Annotated[
    float, typer.Option("--seconds", min=0.1, help="Longest recording.", rich_help_panel=_HOW_MUCH)
]
MegabytesOption = Annotated[
    int,
    typer.Option("--megabytes", min=1, help="Most memory that recording may take.", rich_help_panel=_HOW_MUCH),
]
AfterOption = Annotated[
    float,
    typer.Option("--after", min=0, help="Seconds without a step, then a window of time.", rich_help_panel=_HOW_MUCH),
]
WholeOption = Annotated[
    bool, typer.Option("--whole", help="From the beginning, steps or none.", rich_help_panel=_HOW_MUCH)
]
StopOption = Annotated[
    bool, typer.Option("--stop", help="End the program once it is recorded.", rich_help_panel=_HOW_MUCH)
]
ShapesOption = Annotated[
    bool, typer.Option("--shapes/--no-shapes", help="Shapes of inputs: roofline needs them.", rich_help_panel=_WHAT)
]
StacksOption = Annotated[
    bool, typer.Option("--stacks/--no-stacks", help="Python lines: dearer steps.", rich_help_panel=_WHAT)
]
MemoryOption = Annotated[
    bool, typer.Option("--memory/--no-memory", help="Every allocation.", rich_help_panel=_WHAT)
]
KernelOption = Annotated[
    str, typer.Option("--kernel", metavar="REGEX", help="ncu: only these kernels.", rich_help_panel=_WHAT)
]
LaunchesOption = Annotated[int, typer.Option("--launches", min=1, help="ncu: so many.", rich_help_panel=_WHAT)]
ArgumentOption = Annotated[
    list[str] | None,
    typer.Option("--tool-arg", metavar="FLAG", help="One more flag for nsys or ncu.", rich_help_panel=_WHAT),
]
NameOption = Annotated[
    str | None, typer.Option("--name", help="Name of the run's folder in .warpline/runs.", rich_help_panel=_WHERE)
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FOLDER", help="Another folder.", rich_help_panel=_WHERE)
]
ContainerOption = Annotated[
    str | None,
    typer.Option("--container", metavar="IMAGE", help="Print the docker command for it.", rich_help_panel=_WHERE),
]
ExecOption = Annotated[bool, typer.Option("--exec", help="Run that docker command.", rich_help_panel=_WHERE)]
DiagnoseOption = Annotated[bool, typer.Option("--diagnose/--no-diagnose", help="Diagnose what was recorded.")]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Say what each flag is for, and run nothing.")]


def run(
    program: ProgramArgument = None,
    module: ModuleOption = False,
    tool: ToolOption = None,
    skip: SkipOption = None,
    warmup: WarmupOption = _DEFAULT.warmup,
    steps: StepCountOption = _DEFAULT.steps,
    seconds: SecondsOption = _DEFAULT.seconds,
    megabytes: MegabytesOption = _DEFAULT.megabytes,
    after: AfterOption = _DEFAULT.after_s,
    whole: WholeOption = False,
    stop: StopOption = False,
    shapes: ShapesOption = _DEFAULT.shapes,
    stacks: StacksOption = _DEFAULT.stacks,
    memory: MemoryOption = _DEFAULT.memory,
    kernel: KernelOption = "",
    launches: LaunchesOption = 20,
    tool_arg: ArgumentOption = None,
    name: NameOption = None,
    output: OutputOption = None,
    container: ContainerOption = None,
    execute: ExecOption = False,
    diagnose: DiagnoseOption = True,
    explain: ExplainOption = False,
    as_json: JsonOption = False,
) -> int:
    """Run a program unchanged, profile some of its steps, and diagnose them.

    Bare steps are timed first, then a few are recorded; the program runs on to its end. Its exit code is ours.

    Examples:

      warpline run train.py --lr 0.1

      warpline run --steps 3 --stacks -- torchrun --nproc-per-node 8 train.py

      warpline run --with nsys -m package.train

      warpline run --container nvcr.io/nvidia/pytorch:25.09-py3 train.py
    """
    from warpline.capture.program import program_of  # noqa: PLC0415 - only when something is run
    from warpline.capture.run import Request, chosen_tool, explanation, prepared, say_on_stderr  # noqa: PLC0415
    from warpline.capture.run import run as record  # noqa: PLC0415

    plan = Plan(
        folder="",
        **skipping(skip),
        warmup=warmup,
        steps=steps,
        seconds=seconds,
        megabytes=megabytes,
        after_s=after,
        whole=whole,
        shapes=shapes,
        stacks=stacks,
        memory=memory,
    )
    extra = tuple(tool_arg or ())
    words = list(program or [])
    if container is not None:
        if not words:
            raise UsageError("no-program", "there is nothing to run", "type: warpline run --container IMAGE train.py")
        flags = ["--stop"] * stop + ["-m"] * module
        inner = ["--with", tool or TORCH, *_changed(plan), *(["--name", name] if name else []), *flags, "--", *words]
        return _in_container(container, tool or TORCH, inner, execute, diagnose, explain, as_json)
    request = Request(program_of(words, module), tool, name, output, stop, kernel, launches, extra, as_json)
    plan = Plan(**{**asdict(plan), "tool": chosen_tool(request)})
    if explain:
        _print_flags(explanation(request, Plan(**{**asdict(plan), "folder": "FOLDER"})), as_json)
        return 0
    result = record(request, prepared(request, plan), say_on_stderr)
    return _answer(result, diagnose, as_json)


def _answer(result: Run, diagnose: bool, as_json: bool) -> int:
    """The diagnosis of what was recorded, or one line on why there is none."""
    _print_answer(result.manifest, result.folder, _readable(result.trace), result.nothing, diagnose, as_json)
    if result.nothing is not None:
        raise result.nothing
    _say_where(result)
    return result.exit_code


def _print_answer(
    manifest: dict[str, Any],
    folder: Path,
    trace: Path | None,
    nothing: WarplineError | None,
    diagnose: bool,
    as_json: bool,
) -> None:
    wanted = trace if diagnose else None
    if not as_json:
        if wanted is not None:
            show(wanted, as_json=False, steps=None, step_range=None, top=10, why=None, no_cache=False)
        return
    answer = {
        **manifest,
        "folder": str(folder),
        "nothing": nothing.line() if nothing else None,
        "diagnosis": _diagnosed(wanted) if wanted is not None else None,
    }
    print_json(answer)


def _diagnosed(trace: Path) -> dict[str, Any]:
    from warpline.findings.diagnosis import diagnose as analyse  # noqa: PLC0415 - polars loads only when it is used

    return analyse(open_with_progress(trace, None, None, no_cache=False)).to_dict()


def _readable(trace: Path | None) -> Path | None:
    """The trace that can be diagnosed; an nsys report as its SQLite export, kept beside it."""
    if trace is None or trace.suffix == ".ncu-rep":
        return None
    if trace.suffix != ".nsys-rep":
        return trace
    from warpline.sources.nsys.report_file import export_report  # noqa: PLC0415 - polars loads only when it is used

    return export_report(trace, trace.parent).rename(trace.with_suffix(".sqlite"))


def _say_where(result: Run) -> None:
    folder = _short(result.folder)
    typer.echo(f"warpline: the run is in {folder}", err=True)
    others = result.manifest["files"][1:]
    if others:
        typer.echo(f"warpline: {len(others)} more traces there: warpline diagnose {folder}/{others[0]}", err=True)
    if result.trace is not None and result.trace.suffix == ".ncu-rep":
        typer.echo(f"warpline: the report of Nsight Compute is {_short(result.trace)}", err=True)


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _in_container(
    image: str, tool: str, inner: list[str], execute: bool, diagnose: bool, explain: bool, as_json: bool
) -> int:
    """Prints the docker command, or runs it and diagnoses what it leaves."""
    from warpline.capture.container import docker_flags  # noqa: PLC0415
    from warpline.capture.launch import launch  # noqa: PLC0415
    from warpline.capture.tools import words_of  # noqa: PLC0415

    if tool not in {TORCH, NSYS, NCU}:
        raise UsageError("unknown-tool", f"--with takes torch, nsys or ncu, not {tool!r}")
    flags = docker_flags(image, tool, inner, Path.cwd())
    if not execute:
        _print_flags(flags, as_json, explain=explain)
        return 0
    if shutil.which("docker") is None:
        raise WarplineError("docker-missing", "docker is not on PATH", "leave out --exec to see the command")
    before = _runs()
    code = launch(words_of(flags), os.environ, output_to_stderr=as_json).exit_code
    for made in sorted(_runs() - before):
        _answer_from(made, diagnose, as_json)
    return code


def _runs() -> set[Path]:
    return set(Path(".warpline", "runs").glob("*/manifest.json"))


def _answer_from(manifest: Path, diagnose: bool, as_json: bool) -> None:
    """The diagnosis of a run that was made elsewhere, from its folder."""
    written = json.loads(manifest.read_text(encoding="utf-8"))
    trace = manifest.parent / written["files"][0] if written["files"] else None
    _print_answer(written, manifest.parent, _readable(trace), None, diagnose, as_json)


def _changed(plan: Plan) -> list[str]:
    """The options that differ from the defaults, as the command line has them."""
    words = [] if plan.settle_s else ["--skip", str(plan.skip)]
    for field, value in asdict(plan).items():
        name = "after" if field == "after_s" else field
        if value == getattr(_DEFAULT, field) or field in {"folder", "tool", "step_range", "skip", "settle_s"}:
            continue
        words += [f"--{'' if value else 'no-'}{name}"] if isinstance(value, bool) else [f"--{name}", str(value)]
    return words


def _print_flags(flags: Sequence[Flag], as_json: bool, explain: bool = True) -> None:
    """A command line: for a shell, for a person, or for a program."""
    from warpline.capture.manifest import SCHEMA  # noqa: PLC0415
    from warpline.capture.tools import words_of  # noqa: PLC0415

    if as_json:
        parts = [{"words": list(flag.words), "why": flag.why} for flag in flags]
        print_json({"schema": SCHEMA, "command": words_of(flags), "flags": parts})
    elif explain:
        width = min(max(len(shlex.join(flag.words)) for flag in flags), 60)
        for flag in flags:
            typer.echo(f"{shlex.join(flag.words):{width}}  {flag.why}")
    else:
        typer.echo(" \\\n  ".join(shlex.join(flag.words) for flag in flags))
