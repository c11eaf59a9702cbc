"""Check ``docker run``: what a PyTorch program and a profiler need from a container."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from warpline.capture.container import LOCKED_MEMORY_WHY, SHARED_MEMORY_WHY, STACK_WHY
from warpline.doctor.command_line import CommandOption, ParsedCommand
from warpline.doctor.failures import known_failure
from warpline.doctor.model import Check, State
from warpline.doctor.remark import Remark
from warpline.units import capitalised

STACK_BYTES = 67_108_864
"""NVIDIA's recommendation for its containers."""


def container_remarks(command: ParsedCommand) -> Iterator[Remark]:
    """All remarks about a container that runs a program."""
    if command.verb != "run":
        return
    if not command.image:
        yield Remark(
            Check("no-image", "problem", "there is no image to run", "", ("docker run … IMAGE python train.py",))
        )
        return
    yield from _devices(command)
    yield from _memory(command)
    profiler = command.inner.tool if command.inner is not None else ""
    if profiler in ("nsys", "ncu"):
        yield from _profiler(command, profiler)


def _adding(*words: str) -> Callable[[ParsedCommand], ParsedCommand]:
    name, _, value = words[0].partition("=") if len(words) == 1 else (words[0], "", words[1])
    return lambda command: replace(command, options=(*command.options, CommandOption(name, value or None, words)))


def with_variables(command: ParsedCommand) -> ParsedCommand:
    """Move the assignments before the inner command to the container's options, because it runs without a shell."""
    inner = command.inner
    if command.tool != "docker" or inner is None or not inner.before or not all("=" in word for word in inner.before):
        return command
    given = tuple(CommandOption("-e", word, ("-e", word)) for word in inner.before)
    return replace(command, options=(*command.options, *given), inner=replace(inner, before=()))


def _devices(command: ParsedCommand) -> Iterator[Remark]:
    given = (
        command.value("--gpus") is not None
        or command.value("--runtime") == "nvidia"
        or any("nvidia" in value for value in command.values("--device"))
    )
    if not given:
        means = "A container has no GPU by default."
        check = Check("no-gpu-in-container", "problem", "no --gpus", means, ("--gpus all",))
        yield Remark(check, _adding("--gpus", "all"))


def _memory(command: ParsedCommand) -> Iterator[Remark]:
    if command.value("--ipc") != "host" and command.value("--shm-size") is None:
        means = _sentence(SHARED_MEMORY_WHY)
        check = Check("small-shared-memory", "warning", "no --ipc=host and no --shm-size", means, ("--ipc=host",))
        yield Remark(check, _adding("--ipc=host"))
    limits = command.values("--ulimit")
    if not any(limit.startswith("memlock") for limit in limits):
        means = _sentence(LOCKED_MEMORY_WHY)
        check = Check("memlock-limited", "note", "no --ulimit memlock=-1", means, ("--ulimit memlock=-1",))
        yield Remark(check, _adding("--ulimit", "memlock=-1"))
    if not any(limit.startswith("stack") for limit in limits):
        seen = f"no --ulimit stack={STACK_BYTES}"
        check = Check("stack-limited", "note", seen, _sentence(STACK_WHY), (f"--ulimit stack={STACK_BYTES}",))
        yield Remark(check, _adding("--ulimit", f"stack={STACK_BYTES}"))


def _sentence(reason: str) -> str:
    return f"{capitalised(reason)}."


def _profiler(command: ParsedCommand, profiler: str) -> Iterator[Remark]:
    allowed = command.value("--privileged") is not None or any(
        "SYS_ADMIN" in value or value == "ALL" for value in command.values("--cap-add")
    )
    if not allowed:
        inner = command.inner
        sampling = inner is not None and inner.value("--sample") not in (None, "none")
        metrics = inner is not None and any(option.name.startswith("--gpu-metrics") for option in inner.options)
        needed = profiler == "ncu" or sampling or metrics
        state: State = "warning" if needed else "note"
        means = (
            "Performance counters need it, unless the driver allows them for all users."
            if profiler == "ncu"
            else "CPU sampling and GPU metrics need it; tracing CUDA does not."
        )
        check = known_failure("counters-forbidden").found(
            f"{profiler} in a container without --cap-add=SYS_ADMIN", state, means, ("--cap-add=SYS_ADMIN",)
        )
        yield Remark(check, _adding("--cap-add=SYS_ADMIN") if needed else None)
    mounted = any(command.values(name) for name in ("-v", "--volume", "--mount"))
    if not mounted:
        is_removed = command.value("--rm") is not None
        seen = "--rm without a mounted host folder" if is_removed else "no mounted host folder"
        means = "The report is deleted with the container." if is_removed else "The report stays in the container."
        check = Check("report-lost", "problem" if is_removed else "warning", seen, means, ('-v "$PWD":/work -w /work',))
        yield Remark(check, lambda given: _adding("-w", "/work")(_adding("-v", "$PWD:/work")(given)))
