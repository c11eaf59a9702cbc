"""`python3 -m warpline.capture`: `warpline run` without the diagnosis, for machines with only Python and torch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from warpline.capture.plan import NCU, NSYS, TORCH, Plan, skipping
from warpline.capture.program import program_of
from warpline.capture.run import RunRequest, chosen_tool, prepare, run, say_on_stderr
from warpline.capture.tool_commands import NCU_LAUNCHES
from warpline.errors import WarplineError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run and record a program; return its exit code."""
    options = _parser().parse_args(arguments)
    words = options.program[1:] if options.program[:1] == ["--"] else options.program
    try:
        program = program_of(words, options.module)
        extra = tuple(options.tool_arg)
        request = RunRequest(
            program, options.tool, options.name, options.output, options.stop, options.kernel, options.launches, extra
        )
        plan = Plan(
            folder="",
            tool=chosen_tool(request),
            **skipping(options.skip),
            warmup=options.warmup,
            steps=options.steps,
            seconds=options.seconds,
            megabytes=options.megabytes,
            after_s=options.after,
            whole=options.whole,
            shapes=options.shapes,
            stacks=options.stacks,
            memory=options.memory,
            lines=options.lines,
            dataflow=options.dataflow,
        )
        result = run(request, prepare(request, plan), say_on_stderr)
    except WarplineError as error:
        say_on_stderr(error.line())
        return error.exit_code
    if result.nothing is not None:
        say_on_stderr(result.nothing.line())
        return result.nothing.exit_code
    say_on_stderr(f"wrote {result.folder}")
    return result.exit_code


def _parser() -> argparse.ArgumentParser:
    default = Plan(folder="")
    parser = argparse.ArgumentParser(prog="python3 -m warpline.capture", description=__doc__)
    parser.add_argument("--with", dest="tool", choices=(TORCH, NSYS, NCU))
    parser.add_argument("-m", dest="module", action="store_true")
    parser.add_argument("--name")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--kernel", default="")
    parser.add_argument("--launches", type=int, default=NCU_LAUNCHES)
    parser.add_argument("--tool-arg", action="append", default=[])
    parser.add_argument("--skip", type=int)
    for name in ("warmup", "steps", "megabytes"):
        parser.add_argument(f"--{name}", type=int, default=getattr(default, name))
    parser.add_argument("--seconds", type=float, default=default.seconds)
    parser.add_argument("--after", type=float, default=default.after_s)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--stop", action="store_true")
    parser.add_argument("--shapes", action=argparse.BooleanOptionalAction, default=default.shapes)
    parser.add_argument("--stacks", action=argparse.BooleanOptionalAction, default=default.stacks)
    parser.add_argument("--memory", action=argparse.BooleanOptionalAction, default=default.memory)
    parser.add_argument("--lines", action=argparse.BooleanOptionalAction, default=default.lines)
    parser.add_argument("--dataflow", action=argparse.BooleanOptionalAction, default=default.dataflow)
    parser.add_argument("program", nargs=argparse.REMAINDER)
    return parser


if __name__ == "__main__":
    sys.exit(main())
