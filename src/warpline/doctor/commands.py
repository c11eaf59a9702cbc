"""Check a command line: what would go wrong, and the corrected line."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from warpline.doctor.command_line import Line, ParsedCommand, line_of, parse_line
from warpline.doctor.container_command import container_remarks, with_variables
from warpline.doctor.failures import known_failure
from warpline.doctor.machine import Machine
from warpline.doctor.model import Check, Examination
from warpline.doctor.ncu_command import ncu_remarks
from warpline.doctor.nsys_command import nsys_remarks
from warpline.doctor.remark import Remark

READING_VERBS = ("stats", "export", "analyze", "recipe")
"""Verbs of nsys that read a report."""


def examine_command(given: str | list[str], machine: Machine) -> Examination:
    """Examine one command line, given as text or as a list of words."""
    line = parse_line(given) if isinstance(given, str) else line_of(given)
    checks: list[Check] = []
    commands: list[ParsedCommand] = []
    environment: dict[str, str] = {}
    container: ParsedCommand | None = None
    for command in line.commands:
        if command.program[:1] == ("export",):
            environment |= dict(word.partition("=")[::2] for word in command.program[1:])
        corrected, found = _corrected(command, machine, environment)
        if container is not None and corrected.tool == "nsys" and corrected.verb in READING_VERBS:
            corrected, check = _in_the_same_container(corrected, container)
            found.append(check)
        if corrected.tool == "docker" and corrected.inner is not None and corrected.inner.tool == "nsys":
            container = corrected
        commands.append(corrected)
        checks += found
    if not any(command.tool for command in line.commands):
        seen = "the command contains no nsys, ncu or container"
        do = ('warpline doctor "nsys profile … python train.py"',)
        checks.append(Check("no-profiler", "unknown", seen, "There is nothing to check.", do))
    better = Line(tuple(commands), line.operators).text()
    shown = " ".join(given.replace("\\\n", " ").split()) if isinstance(given, str) else line.text()
    return Examination("command", shown, tuple(checks), better if better != line.text() else "")


def _in_the_same_container(command: ParsedCommand, container: ParsedCommand) -> tuple[ParsedCommand, Check]:
    """A report that one container's nsys writes is read by the same nsys."""
    seen = f"nsys {command.verb} runs outside the container in which nsys records"
    means = "The nsys of the host is often older, and nsys opens only reports of its own version and older ones."
    do = ("run both in the same container",)
    return replace(container, inner=command), Check("another-nsys", "warning", seen, means, do)


def _corrected(
    command: ParsedCommand, machine: Machine, environment: dict[str, str]
) -> tuple[ParsedCommand, list[Check]]:
    """Apply every fix, from the outermost tool inwards; return the command and the checks."""
    checks: list[Check] = []
    for remark in _remarks(command, machine, environment):
        checks.append(remark.check)
        if remark.fix is not None:
            command = remark.fix(command)
    # A profiler around a container has been moved inside it by now.
    if command.inner is not None:
        inner, more = _corrected(command.inner, machine, environment | command.environment)
        known = {check.name for check in checks}
        checks += [check for check in more if check.name not in known]
        command = with_variables(replace(command, inner=inner))
    return command, checks


def _remarks(command: ParsedCommand, machine: Machine, environment: dict[str, str]) -> Iterator[Remark]:
    if command.tool in ("nsys", "ncu"):
        moved = _outside_the_container(command)
        if moved is not None:
            yield moved
            # The remaining remarks are made when the profiler is examined inside the container.
            if moved.fix is not None:
                yield from container_remarks(moved.fix(command))
            return
    if command.tool == "nsys":
        yield from nsys_remarks(command, machine, environment)
    elif command.tool == "ncu":
        yield from ncu_remarks(command, machine)
    elif command.tool == "docker":
        yield from container_remarks(command)


def _outside_the_container(command: ParsedCommand) -> Remark | None:
    inner = command.inner
    if inner is None or inner.tool != "docker":
        return None
    seen = f"{command.tool} runs {inner.path} {inner.verb}"
    if inner.verb not in ("run", "exec") or not inner.image or not inner.program:
        return Remark(known_failure("outside-the-container").found(seen))

    def swap(outer: ParsedCommand) -> ParsedCommand:
        container = outer.inner
        assert container is not None
        profiler = replace(outer, program=container.program, inner=container.inner, before=())
        return replace(container, before=(*outer.before, *container.before), inner=profiler)

    return Remark(known_failure("outside-the-container").found(seen), swap)
