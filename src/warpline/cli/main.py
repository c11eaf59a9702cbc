"""Runs the verb that the command line names; here errors become one line and an exit code."""

from __future__ import annotations

import difflib
import errno
import inspect
import os
import re
import resource
import shlex
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from warpline import __version__
from warpline.cli.options import Asked
from warpline.cli.verbs import GROUPS, VERBS
from warpline.cli.write import discard_stdout, open_what_is_closed, print_json, say, say_error, write_plain_signs
from warpline.errors import EXIT_FAILED, UsageError, WarplineError
from warpline.sources.stdin import without_spool
from warpline.sources.valid_text import valid_text

ENDED_BY_SIGNAL = 128
"""Exit code of a process that a signal ended, as a shell gives it, less the signal's number."""
MAX_LISTED_VERBS = 3
"""Of an option that more verbs have, none is named."""
LEAST_ADDRESS_SPACE = 1_500_000_000
"""Bytes that native libraries reserve on two cores before the first file is read; with less they end the process."""
SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


class _UnknownVerb(click.UsageError):
    """The first word is neither a verb nor a file."""

    def __init__(self, word: str) -> None:
        super().__init__(f"there is no command and no file {word!r}")
        meant = " or ".join(f"warpline {name}" for name in difflib.get_close_matches(word, VERBS, 2))
        self.hint = f"did you mean {meant}?" if meant else "see warpline --help"


class Verbs(click.Group):
    """Loads the module of a verb when the verb is used; lists of verbs need none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb."""
        if cmd_name not in VERBS:
            return None
        module = import_module(f"warpline.cli.{VERBS[cmd_name].module or cmd_name}")
        command: click.Command = getattr(module, VERBS[cmd_name].function or cmd_name)
        _keep_example_lines(command)
        _refuse_what_is_no_text(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that the first word names."""
        word = args[0]
        if word not in VERBS and not word.startswith("-") and not ctx.resilient_parsing:
            raise _UnknownVerb(word)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs in the help."""
        grouped = {name for names in GROUPS.values() for name in names}
        for group, names in {**GROUPS, "Other": tuple(name for name in VERBS if name not in grouped)}.items():
            if names:
                with formatter.section(group):
                    formatter.write_dl([(name, VERBS[name].help) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The verbs that begin so."""
        verbs = [CompletionItem(name, help=verb.help) for name, verb in VERBS.items() if name.startswith(incomplete)]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)


def _keep_example_lines(command: click.Command) -> None:
    """A command of an example stays on one line, to be pasted, however narrow the terminal is."""
    command.help = re.sub(r"\n\n(?=  +warpline )", "\n\n\b\n", inspect.cleandoc(command.help or ""))
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            _keep_example_lines(inner)


class _Text(click.types.StringParamType):
    """A word that is compared, stored or sent to a library, and names no file: text in UTF-8."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word."""
        word = super().convert(value, param, ctx)
        if word != valid_text(word):
            self.fail(f"{word!r} is not UTF-8", param, ctx)
        return word


def _refuse_what_is_no_text(command: click.Command) -> None:
    """Python reads other bytes than UTF-8 on the command line as halves of surrogate pairs."""
    for parameter in command.params:
        if parameter.type is click.STRING:
            parameter.type = _Text()
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            _refuse_what_is_no_text(inner)


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
    """Run the command line and exit with its exit code. Who is asked to end removes its temporary files first."""
    for asked_to_end in (signal.SIGTERM, signal.SIGHUP):  # `kill`, and a terminal that is closed
        if signal.getsignal(asked_to_end) is not signal.SIG_IGN:  # `nohup` ignores the latter
            signal.signal(asked_to_end, lambda number, _: sys.exit(ENDED_BY_SIGNAL + number))
    open_what_is_closed()
    write_plain_signs()
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run the command line and return the exit code: every failure is one line on stderr, never a traceback.

    Under --json it is also `{"error": {"code", "message", "hint"}}` on stdout.
    """
    try:
        code = _answer(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output closed it, as `head` does: not an error.
        discard_stdout()
        return 0
    except OSError as error:
        discard_stdout()
        return _fail(_described(error), as_json=False)
    return code


def _answer(arguments: list[str]) -> int:
    asked, stdout = Asked(), sys.stdout
    try:
        _check_address_space()
        result = app.main(_with_default_verb(arguments), prog_name="warpline", standalone_mode=False, obj=asked)
    except BrokenPipeError:
        raise
    except SystemExit as error:
        if sys.stdout is not stdout:  # click exchanges it where the reader has gone, and gives an exit code of its own
            raise BrokenPipeError from error
        return error.code if isinstance(error.code, int) else EXIT_FAILED
    except click.ClickException as error:
        # The command line was not understood, so that nothing has noted --json yet.
        return _fail(_described(error, arguments), "--json" in arguments)
    except BaseException as error:
        return _fail(_described(error), asked.as_json)
    return result if isinstance(result, int) else 0


def _check_address_space() -> None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESS_SPACE:
        message = f"the address space is limited to {limit / 1e9:.2f} GB, and {LEAST_ADDRESS_SPACE / 1e9} GB are needed"
        raise WarplineError("out-of-memory", message, "raise the limit: ulimit -v unlimited")


def _with_default_verb(arguments: list[str]) -> list[str]:
    """`warpline TRACE` means `warpline diagnose TRACE`; `-` is a trace on standard input."""
    first = arguments[0] if arguments else ""
    _refuse_two_traces(arguments[1:] if first == "diagnose" else arguments)
    if (first == "-" or not first.startswith("-")) and first not in VERBS and _like_a_file(first):
        if len(arguments) > 1 and arguments[1] in VERBS:
            trace, verb, *others = arguments
            raise UsageError(
                "usage", "the command stands before the file", shlex.join(["warpline", verb, trace, *others])
            )
        return ["diagnose", *arguments]
    return arguments


def _refuse_two_traces(words: list[str]) -> None:
    if len(words) > 1 and words[0] not in VERBS and all(map(os.path.exists, words[:2])):
        raise UsageError(
            "two-traces", "warpline TRACE takes one recording", shlex.join(["warpline", "compare", *words])
        )


def _like_a_file(word: str) -> bool:
    return word == "-" or os.path.exists(word) or any(mark in word for mark in "./\\")  # noqa: PTH110 - not yet a path


def _described(error: BaseException, arguments: Sequence[str] = ()) -> WarplineError:
    """Any error with a code, a message and a hint; what is neither ours nor the user's is a bug, and says so."""
    match error:
        case WarplineError():
            return error
        case _UnknownVerb():
            return WarplineError("usage", error.format_message(), error.hint, error.exit_code)
        case click.NoSuchOption(ctx=click.Context(parent=None, command=Verbs())) if _is_of_diagnose(error):
            option = error.option_name
            hint = f"options stand last: warpline … {option}"
            return WarplineError("usage", f"{option} stands before the file", hint, error.exit_code)
        case click.NoSuchOption(ctx=click.Context() as context) if others := _verbs_with(error.option_name, context):
            has = " or ".join(f"warpline {name}" for name in others)
            return WarplineError("usage", _what_is_wrong(error), f"it is an option of {has}", error.exit_code)
        case click.UsageError():
            verb = [word for word in arguments[:1] if word in VERBS]
            path = error.ctx.command_path if error.ctx is not None else " ".join(["warpline", *verb])
            return WarplineError("usage", _what_is_wrong(error), f"see {path} --help", error.exit_code)
        case click.ClickException():
            return WarplineError("usage", error.format_message(), "see warpline --help", error.exit_code)
        case KeyboardInterrupt() | click.Abort():
            return WarplineError("interrupted", "stopped by the user", exit_code=ENDED_BY_SIGNAL + signal.SIGINT)
        case MemoryError() | RuntimeError(args=("can't start new thread",)):  # its stack needs memory, too
            return WarplineError("out-of-memory", "the file needs more memory than is available")
        case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EFBIG | errno.EIO):
            return WarplineError(
                "cannot-write", f"the output: {error.strerror}", "write it elsewhere, or free some space"
            )
        case RecursionError():
            return WarplineError("too-deep", "the file is nested too deeply to read")
    if os.environ.get("WARPLINE_DEBUG"):
        raise error
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return WarplineError("internal-error", reason, "please report it, with the traceback that WARPLINE_DEBUG=1 shows")


def _is_of_diagnose(error: click.NoSuchOption) -> bool:
    """Whether an option that `warpline` itself lacks is one of `warpline TRACE`."""
    command = import_module("warpline.cli.diagnose").diagnose
    return any(error.option_name in one.opts for one in command.params)


def _verbs_with(option: str, context: click.Context) -> list[str]:
    """The other verbs that have an option, at most three."""
    parent = context.parent
    if parent is None or not isinstance(parent.command, Verbs) or not option.startswith("--"):
        return []
    commands = ((name, parent.command.get_command(parent, name)) for name in VERBS)
    found = [name for name, one in commands if one and any(option in param.opts for param in one.params)]
    return found if len(found) <= MAX_LISTED_VERBS else []


def _what_is_wrong(error: click.UsageError) -> str:
    """What the command line lacks or misspells, without the whole help of a command group."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return "a command is missing"
    return error.format_message().rstrip(".")


def _fail(error: WarplineError, as_json: bool) -> int:
    if as_json:
        message, hint = without_spool(error.message), without_spool(error.hint)
        print_json({"error": {"code": error.code, "message": message, "hint": hint}})
    say_error(error)
    return error.exit_code
