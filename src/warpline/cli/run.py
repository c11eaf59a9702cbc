"""``warpline run``: profiles some steps of an unchanged program, and diagnoses them."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from warpline.capture.plan import NCU, NSYS, TORCH, Plan, skipping
from warpline.capture.tools import NCU_LAUNCHES
from warpline.cli.options import JsonOption
from warpline.cli.recorded import answer, answer_from, print_flags
from warpline.errors import EXIT_FAILED, UsageError, WarplineError

CONTEXT = {"allow_interspersed_args": False}
"""Arguments after the program's name belong to the program."""
_DEFAULT = Plan(folder="")
_HOW_MUCH = "How much"
_WHAT = "What"
_WHERE = "Where"

ProgramArgument = Annotated[
    list[str] | None, typer.Argument(metavar="PROGRAM…", help="Run this: a command, a script, or a module with -m.")
]
ModuleOption = Annotated[bool, typer.Option("-m", help="Run the program as a Python module.")]
ToolOption = Annotated[
    str | None,
    typer.Option("--with", metavar="TOOL", help="Record with torch (default), nsys or ncu.", rich_help_panel=_WHAT),
]
SkipOption = Annotated[
    int | None,
    typer.Option(
        "--skip", min=0, help="Time this many unprofiled steps first; default: 8 to 24.", rich_help_panel=_HOW_MUCH
    ),
]
WarmupOption = Annotated[
    int, typer.Option("--warmup", min=0, help="Discard this many profiled steps first.", rich_help_panel=_HOW_MUCH)
]
StepCountOption = Annotated[
    int, typer.Option("--steps", min=1, help="Record this many steps.", rich_help_panel=_HOW_MUCH)
]
SecondsOption = Annotated[
    float, typer.Option("--seconds", min=0.1, help="Stop recording after this time.", rich_help_panel=_HOW_MUCH)
]
MegabytesOption = Annotated[
    int,
    typer.Option("--megabytes", min=1, help="Stop recording at this memory use.", rich_help_panel=_HOW_MUCH),
]
AfterOption = Annotated[
    float,
    typer.Option(
        "--after", min=0, help="After this many seconds without steps, record a time window.", rich_help_panel=_HOW_MUCH
    ),
]
WholeOption = Annotated[
    bool, typer.Option("--whole", help="Record from the start, with or without steps.", rich_help_panel=_HOW_MUCH)
]
StopOption = Annotated[
    bool, typer.Option("--stop", help="End the program once it is recorded.", rich_help_panel=_HOW_MUCH)
]
ShapesOption = Annotated[
    bool,
    typer.Option("--shapes/--no-shapes", help="Record shapes of inputs (roofline needs them).", rich_help_panel=_WHAT),
]
StacksOption = Annotated[
    bool, typer.Option("--stacks/--no-stacks", help="Record Python stacks (slower).", rich_help_panel=_WHAT)
]
MemoryOption = Annotated[
    bool, typer.Option("--memory/--no-memory", help="Record every allocation.", rich_help_panel=_WHAT)
]
LinesOption = Annotated[
    bool,
    typer.Option("--lines/--no-lines", help="Look at two more steps for source lines.", rich_help_panel=_WHAT),
]
DataflowOption = Annotated[
    bool,
    typer.Option("--dataflow/--no-dataflow", help="Look at two more steps for data flow.", rich_help_panel=_WHAT),
]
KernelOption = Annotated[
    str, typer.Option("--kernel", metavar="REGEX", help="Profile only these kernels (ncu).", rich_help_panel=_WHAT)
]
LaunchesOption = Annotated[
    int, typer.Option("--launches", min=1, help="Profile this many launches (ncu).", rich_help_panel=_WHAT)
]
ArgumentOption = Annotated[
    list[str] | None,
    typer.Option("--tool-arg", metavar="FLAG", help="Pass one more flag to nsys or ncu.", rich_help_panel=_WHAT),
]
NameOption = Annotated[
    str | None, typer.Option("--name", help="Name the run's folder in .warpline/runs.", rich_help_panel=_WHERE)
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FOLDER", help="Write to another folder.", rich_help_panel=_WHERE),
]
ContainerOption = Annotated[
    str | None,
    typer.Option(
        "--container", metavar="IMAGE", help="Print the docker command for this image.", rich_help_panel=_WHERE
    ),
]
ExecOption = Annotated[bool, typer.Option("--exec", help="Run that docker command.", rich_help_panel=_WHERE)]
DiagnoseOption = Annotated[bool, typer.Option("--diagnose/--no-diagnose", help="Diagnose the recorded trace.")]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Explain each flag without running anything.")]


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
    lines: LinesOption = _DEFAULT.lines,
    dataflow: DataflowOption = _DEFAULT.dataflow,
    kernel: KernelOption = "",
    launches: LaunchesOption = NCU_LAUNCHES,
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

    Times a few unprofiled steps, then records a few; the program runs to its end, and its exit code is returned.

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
        lines=lines,
        dataflow=dataflow,
    )
    extra = tuple(tool_arg or ())
    words = list(program or [])
    if container is not None:
        if not words or not container:
            raise UsageError("no-program", "there is nothing to run", "type: warpline run --container IMAGE train.py")
        if output is not None:
            raise UsageError("no-output", "a container writes to .warpline/runs in this folder", "use --name")
        inner = ["--with", tool or TORCH, *_changed(plan)]
        inner += [f"--{option}={value}" for option, value in (("name", name), ("kernel", kernel)) if value]
        inner += ["--launches", str(launches)] * (launches != NCU_LAUNCHES) + [f"--tool-arg={word}" for word in extra]
        inner += ["--stop"] * stop + ["-m"] * module + ["--", *words]
        return _in_container(container, tool or TORCH, inner, execute, diagnose, explain, as_json)
    if execute:
        raise UsageError("no-container", "--exec runs the command of --container", "add --container IMAGE")
    request = Request(program_of(words, module), tool, name, output, stop, kernel, launches, extra, as_json)
    plan = Plan(**{**asdict(plan), "tool": chosen_tool(request)})
    if explain:
        print_flags(explanation(request, Plan(**{**asdict(plan), "folder": "FOLDER"})), as_json)
        return 0
    result = record(request, prepared(request, plan), say_on_stderr)
    return answer(result, diagnose, as_json)


def _in_container(
    image: str, tool: str, inner: list[str], execute: bool, diagnose: bool, explain: bool, as_json: bool
) -> int:
    """Print the docker command, or run it and diagnose its result."""
    from warpline.capture.container import docker_flags  # noqa: PLC0415
    from warpline.capture.launch import launch  # noqa: PLC0415
    from warpline.capture.tools import words_of  # noqa: PLC0415

    if tool not in {TORCH, NSYS, NCU}:
        raise UsageError("unknown-tool", f"--with takes torch, nsys or ncu, not {tool!r}")
    flags = docker_flags(image, tool, inner, Path.cwd())
    if not execute:
        print_flags(flags, as_json, explain=explain)
        return 0
    if shutil.which("docker") is None:
        raise WarplineError("docker-missing", "docker is not on PATH", "leave out --exec to see the command")
    before = _runs()
    code = launch(words_of(flags), os.environ, output_to_stderr=as_json).exit_code
    made = sorted(_runs() - before)
    if not made:
        raise WarplineError("no-run", "the container wrote no run here", "see its messages above", code or EXIT_FAILED)
    answer_from(made[-1], diagnose, as_json)
    return code


def _runs() -> set[Path]:
    return set(Path(".warpline", "runs").glob("*/manifest.json"))


def _changed(plan: Plan) -> list[str]:
    """The options that differ from the defaults, as command-line flags."""
    words = [] if plan.settle_s else ["--skip", str(plan.skip)]
    for field, value in asdict(plan).items():
        name = "after" if field == "after_s" else field
        if value == getattr(_DEFAULT, field) or field in {"folder", "tool", "step_range", "skip", "settle_s"}:
            continue
        words += [f"--{'' if value else 'no-'}{name}"] if isinstance(value, bool) else [f"--{name}", str(value)]
    return words
