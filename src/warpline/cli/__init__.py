"""The command line: one module per verb, and one place where errors become one line and an exit code."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from warpline import __version__
from warpline.cli import bench, device, diagnose, doctor, kernel, path, roofline, scrub, sql, stats, whatif
from warpline.cli.run import CONTEXT as OWN_ARGUMENTS
from warpline.cli.run import run as run_program
from warpline.errors import EXIT_FAILED, WarplineError

app = typer.Typer(
    name="warpline",
    no_args_is_help=True,
    rich_markup_mode=None,  # Plain help: rich takes longer to load than everything else together.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _add(verb: Callable[..., int | None], **settings: Any) -> None:
    """Adds a command, listed with the whole first line of its docstring."""
    app.command(short_help=(verb.__doc__ or "").partition("\n")[0], **settings)(verb)


_add(diagnose.diagnose)
_add(run_program, context_settings=OWN_ARGUMENTS)
_add(stats.stats)
_add(sql.sql)
_add(kernel.kernel)
_add(roofline.roofline)
_add(device.device)
_add(bench.bench)
_add(doctor.doctor)
_add(scrub.scrub)
_add(path.path)
_add(path.budget)
_add(whatif.whatif, cls=whatif.WithFixes)
_add(diagnose.demo)

INTERRUPTED = 130


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Follow one line of PyTorch down to the warps that run it.

    `warpline TRACE` is short for `warpline diagnose TRACE`.
    """
    if version:
        typer.echo(f"warpline {__version__}")
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its exit code."""
    code = run(list(sys.argv[1:] if arguments is None else arguments))
    _leave(code)


def _leave(code: int) -> None:
    """End the process at once: to take apart all modules and tables first would take a tenth of a second."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)
    atexit._run_exitfuncs()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run the command line and return the exit code: every failure is one line on stderr, never a traceback."""
    command = typer.main.get_command(app)
    try:
        result = command.main(_with_default_verb(arguments), prog_name="warpline", standalone_mode=False)
    except WarplineError as error:
        return _fail(error.line(), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted: stopped by the user", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output closed it, as `head` does: not an error.
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - so that flushing at exit stays quiet
        return 0
    except MemoryError:
        return _fail("out-of-memory: the file needs more memory than is available", EXIT_FAILED)
    except RecursionError:
        return _fail("too-deep: the file is nested too deeply to read", EXIT_FAILED)
    except BaseException as error:
        return _unexpected(error)
    return result if isinstance(result, int) else 0


def _with_default_verb(arguments: list[str]) -> list[str]:
    """`warpline TRACE` means `warpline diagnose TRACE`; `-` is a trace on standard input."""
    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    first = next((place for place, word in enumerate(arguments) if word == "-" or not word.startswith("-")), None)
    if first is not None and first == 0 and arguments[0] not in known and _like_a_file(arguments[0]):
        return ["diagnose", *arguments]
    return arguments


def _like_a_file(word: str) -> bool:
    return word == "-" or os.path.exists(word) or any(mark in word for mark in "./\\")  # noqa: PTH110 - not yet a path


def _fail(line: str, exit_code: int) -> int:
    typer.echo(f"warpline: {line}", err=True)
    return exit_code


def _unexpected(error: BaseException) -> int:
    """Usage errors have their own message and code; any other error is a bug and is reported as one."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else EXIT_FAILED
    describe = getattr(error, "format_message", None)
    if describe is not None:
        return _fail(f"usage: {' '.join(describe().split())}; see warpline --help", getattr(error, "exit_code", 2))
    if os.environ.get("WARPLINE_DEBUG"):
        raise error
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return _fail(
        f"internal-error: {reason}; please report it, with the traceback that WARPLINE_DEBUG=1 shows", EXIT_FAILED
    )
