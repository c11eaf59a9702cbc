"""Runs the verb that the command line names; here errors become one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from warpline import __version__
from warpline.cli.output import say
from warpline.errors import EXIT_FAILED, WarplineError
from warpline.sanitise import sanitise

VERBS = {
    "diagnose": "diagnose",
    "report": "report",
    "view": "view",
    "run": "run",
    "compare": "compare",
    "baseline": "baseline",
    "gate": "gate",
    "history": "history",
    "stats": "stats",
    "sql": "sql",
    "kernel": "kernel",
    "explain": "explain",
    "dive": "dive",
    "metric": "metric",
    "ops": "ops",
    "parts": "parts",
    "roofline": "roofline",
    "device": "device",
    "bench": "bench",
    "doctor": "doctor",
    "scrub": "scrub",
    "path": "path",
    "budget": "budget",
    "memory": "memory",
    "whatif": "whatif",
    "export": "export",
    "lint": "lint",
    "demo": "diagnose",
}
"""Each verb and its module, in the order of the help."""


class Verbs(click.Group):
    """Loads the module of a verb when the verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb, listed with the whole first line of its docstring."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(import_module(f"warpline.cli.{VERBS[cmd_name]}"), cmd_name)
        command.short_help = (command.help or "").partition("\n")[0]
        return command


INTERRUPTED = 130


SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


@click.group(cls=Verbs, context_settings=SETTINGS, invoke_without_command=True)
@click.version_option(__version__, message="warpline %(version)s", help="Print the version and stop.")
@click.pass_context
def app(context: click.Context) -> None:
    """Follow one line of PyTorch down to the warps that run it.

    `warpline TRACE` is short for `warpline diagnose TRACE`.
    """
    if context.invoked_subcommand is None:
        say(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its exit code."""
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run the command line and return the exit code: every failure is one line on stderr, never a traceback."""
    try:
        result = app.main(_with_default_verb(arguments), prog_name="warpline", standalone_mode=False)
    except WarplineError as error:
        from warpline.sources.stdin import without_spool  # noqa: PLC0415 - only where something failed

        return _fail(without_spool(error.line()), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
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
    first = next((place for place, word in enumerate(arguments) if word == "-" or not word.startswith("-")), None)
    if first is not None and first == 0 and arguments[0] not in VERBS and _like_a_file(arguments[0]):
        return ["diagnose", *arguments]
    return arguments


def _like_a_file(word: str) -> bool:
    return word == "-" or os.path.exists(word) or any(mark in word for mark in "./\\")  # noqa: PTH110 - not yet a path


def _fail(line: str, exit_code: int) -> int:
    say(f"warpline: {sanitise(line)}", err=True)
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
