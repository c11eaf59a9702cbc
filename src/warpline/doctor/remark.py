"""A check about a command line, and the change that fixes it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from warpline.doctor.command_line import ParsedCommand
from warpline.doctor.machine import Machine
from warpline.doctor.model import Check


class Remark(Struct, frozen=True):
    """A check, and the change that fixes it."""

    check: Check
    fix: Callable[[ParsedCommand], ParsedCommand] | None = None


def setting(name: str, value: str | None) -> Callable[[ParsedCommand], ParsedCommand]:
    """The change that sets an option."""
    return lambda command: command.with_option(name, value)


def script_of(command: ParsedCommand, machine: Machine) -> str | None:
    """The text of the Python script that the command runs, if the file is on this machine."""
    path = next((word for word in command.program if word.endswith(".py")), None)
    return machine.read(path) if path else None


def output_remark(command: ParsedCommand, option: str, suffix: str, machine: Machine) -> Remark | None:
    """A check if the report cannot be written to its path."""
    path = command.value(option)
    if not path or "$" in path or "%" in path:
        return None
    folder = path.rpartition("/")[0] or "."
    if not machine.exists(folder):
        check = Check(
            "no-such-folder",
            "problem",
            f"the report goes to {folder}, which does not exist",
            "The profiler would run to the end and then fail to write.",
            (f"mkdir -p {folder}",),
        )
        return Remark(check)
    if not machine.writable(folder):
        check = Check(
            "folder-not-writable",
            "problem",
            f"the report goes to {folder}, which this user cannot write to",
            "The profiler would run to the end and then fail to write.",
            (f"{option}=/tmp/{path.rpartition('/')[2]}",),
        )
        return Remark(check)
    file = path if path.endswith(suffix) else path + suffix
    if machine.exists(file) and command.value("--force-overwrite") not in ("true",):
        check = Check(
            "report-exists",
            "warning",
            f"{file} exists, and the profiler does not overwrite it by default",
            "",
            ("--force-overwrite true",),
        )
        return Remark(check, setting("--force-overwrite", "true" if command.tool == "nsys" else None))
    return None
