"""``warpline run``: profiles some steps of an unchanged program, and diagnoses them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click
from msgspec import to_builtins

from warpline.capture.plan import NCU, NSYS, TORCH, Plan, skipping
from warpline.capture.tool_commands import NCU_LAUNCHES
from warpline.cli.options import json_option
from warpline.cli.recorded import answer, answer_from, print_flags
from warpline.errors import EXIT_FAILED, UsageError, WarplineError

CONTEXT = {"allow_interspersed_args": False}
"""Arguments after the program's name belong to the program."""
_DEFAULT = Plan(folder="")


@click.command(context_settings=CONTEXT)
@click.argument("program", nargs=-1, metavar="PROGRAM…", help="Run this: a command, a script, or a module with -m.")
@click.option("-m", "module", is_flag=True, help="Run the program as a Python module.")
@click.option("--with", "tool", metavar="TOOL", help="Record with torch (default), nsys or ncu.")
@click.option("--skip", type=click.IntRange(min=0), help="Time this many unprofiled steps first; default: 8 to 24.")
@click.option(
    "--warmup", type=click.IntRange(min=0), default=_DEFAULT.warmup, help="Discard this many profiled steps first."
)
@click.option("--steps", type=click.IntRange(min=1), default=_DEFAULT.steps, help="Record this many steps.")
@click.option(
    "--seconds", type=click.FloatRange(min=0.1), default=_DEFAULT.seconds, help="Stop recording after this time."
)
@click.option(
    "--megabytes", type=click.IntRange(min=1), default=_DEFAULT.megabytes, help="Stop recording at this memory use."
)
@click.option(
    "--after",
    type=click.FloatRange(min=0),
    default=_DEFAULT.after_s,
    help="After this many seconds without steps, record a time window.",
)
@click.option("--whole", is_flag=True, help="Record from the start, with or without steps.")
@click.option("--stop", is_flag=True, help="End the program once it is recorded.")
@click.option("--shapes/--no-shapes", default=_DEFAULT.shapes, help="Record shapes of inputs (roofline needs them).")
@click.option("--stacks/--no-stacks", default=_DEFAULT.stacks, help="Record Python stacks (slower).")
@click.option("--memory/--no-memory", default=_DEFAULT.memory, help="Record every allocation.")
@click.option("--lines/--no-lines", default=_DEFAULT.lines, help="Look at two more steps for source lines.")
@click.option("--dataflow/--no-dataflow", default=_DEFAULT.dataflow, help="Look at two more steps for data flow.")
@click.option("--kernel", default="", metavar="REGEX", help="Profile only these kernels (ncu).")
@click.option("--launches", type=click.IntRange(min=1), default=NCU_LAUNCHES, help="Profile this many launches (ncu).")
@click.option("--tool-arg", multiple=True, metavar="FLAG", help="Pass one more flag to nsys or ncu.")
@click.option("--name", help="Name the run's folder in .warpline/runs.")
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="FOLDER", help="Write to another folder.")
@click.option("--container", metavar="IMAGE", help="Print the docker command for this image.")
@click.option("--exec", "execute", is_flag=True, help="Run that docker command.")
@click.option("--diagnose/--no-diagnose", default=True, help="Diagnose the recorded trace.")
@click.option("--explain", is_flag=True, help="Explain each flag without running anything.")
@json_option
def run(
    program: tuple[str, ...],
    module: bool,
    tool: str | None,
    skip: int | None,
    warmup: int,
    steps: int,
    seconds: float,
    megabytes: int,
    after: float,
    whole: bool,
    stop: bool,
    shapes: bool,
    stacks: bool,
    memory: bool,
    lines: bool,
    dataflow: bool,
    kernel: str,
    launches: int,
    tool_arg: tuple[str, ...],
    name: str | None,
    output: Path | None,
    container: str | None,
    execute: bool,
    diagnose: bool,
    explain: bool,
    as_json: bool,
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
    from warpline.capture.run import RunRequest, chosen_tool, explanation, prepared, say_on_stderr  # noqa: PLC0415
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
    extra = tool_arg
    words = list(program)
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
    request = RunRequest(program_of(words, module), tool, name, output, stop, kernel, launches, extra, as_json)
    plan = Plan(**{**to_builtins(plan), "tool": chosen_tool(request)})
    if explain:
        print_flags(explanation(request, Plan(**{**to_builtins(plan), "folder": "FOLDER"})), as_json)
        return 0
    result = record(request, prepared(request, plan), say_on_stderr)
    return answer(result, diagnose, as_json)


def _in_container(
    image: str, tool: str, inner: list[str], execute: bool, diagnose: bool, explain: bool, as_json: bool
) -> int:
    """Print the docker command, or run it and diagnose its result."""
    from warpline.capture.container import docker_flags  # noqa: PLC0415
    from warpline.capture.launch import launch  # noqa: PLC0415
    from warpline.capture.tool_commands import words_of  # noqa: PLC0415

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
    for field, value in to_builtins(plan).items():
        name = "after" if field == "after_s" else field
        if value == getattr(_DEFAULT, field) or field in {"folder", "tool", "step_range", "skip", "settle_s"}:
            continue
        words += [f"--{'' if value else 'no-'}{name}"] if isinstance(value, bool) else [f"--{name}", str(value)]
    return words
