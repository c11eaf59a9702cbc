"""Why nothing was recorded, from the reports of the processes, and what to type instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warpline.capture.launch import Ending
from warpline.capture.manifest import PROBLEMS
from warpline.capture.plan import TORCH, Plan
from warpline.capture.process_record import RECORDED, RECORDING
from warpline.capture.steps import LOOP
from warpline.errors import EXIT_INCONCLUSIVE, WarplineError

_RECORD_ALL = "omit steps= to record everything"
LIMITS = ("seconds", "megabytes")
"""Options that end a recording."""
_FREE_DISK = "free some disk space, or choose another folder with --output"


def why_nothing(
    folder: Path, plan: Plan, parts: list[dict[str, Any]], ending: Ending, in_code: bool = False
) -> WarplineError | None:
    """Why there is no trace; None if there is one. The hint is a command, or arguments if `in_code`."""
    if any(part["state"] == RECORDED for part in parts):
        return None
    code, message, hint = _reason(folder, plan, parts, ending, in_code)
    return WarplineError(code, message, hint, ending.exit_code or EXIT_INCONCLUSIVE)


def why_fewer(plan: Plan, parts: list[dict[str, Any]]) -> str | None:
    """Why fewer steps were recorded than asked for, and what to type instead; None if all were."""
    short = [part for part in parts if part["state"] == RECORDED and 0 < part["steps_recorded"] < plan.steps]
    if not short:
        return None
    part = short[0]
    recorded = f"recorded {part['steps_recorded']} of {plan.steps} steps"
    if part["ended_by"] in LIMITS:
        return f"{recorded}: the limit --{part['ended_by']} was reached"
    before = part["first_step"] or 0
    seen = before + part["steps_recorded"]
    return (
        f"{recorded}: the program ended after {seen}, and {before} come before the recording, to find out what a step "
        f"is, to time it and to warm up; try {_options(_fitting(plan, seen))}"
    )


def _fitting(plan: Plan, seen: int) -> dict[str, int]:
    """Settings with which a program of so many steps is recorded."""
    skip = max(seen // 4, 1)
    return {"skip": skip, "warmup": 1, "steps": min(max(seen - skip - 2, 1), plan.steps)}


def _options(numbers: dict[str, int]) -> str:
    return " ".join(f"--{name} {number}" for name, number in numbers.items())


def _reason(
    folder: Path, plan: Plan, parts: list[dict[str, Any]], ending: Ending, in_code: bool
) -> tuple[str, str, str]:
    problems = folder / PROBLEMS
    if problems.exists():
        first = problems.read_text(encoding="utf-8", errors="replace").splitlines()[0][:300]
        return "not-armed", f"warpline could not start inside the program: {first}", "try --with nsys"
    if any(part["state"] == RECORDING for part in parts):
        if not ending.exit_code:
            return "not-recorded", "the program succeeded but wrote no trace: is the disk full?", _FREE_DISK
        return (
            "recording-lost",
            f"the program was terminated ({ending.signal or f'exit code {ending.exit_code}'}) during the recording; "
            f"torch.profiler holds its events in the program's memory, so all of them are lost",
            "try --with nsys, which records from outside, or fewer steps: --steps 1",
        )
    if not parts:
        return _no_process(plan, ending)
    part = max(parts, key=lambda each: sum(each["steps_seen"].values()))
    if part["ended_by"] == "other profiler":
        return "own-profiler", part["notes"][0], "diagnose the trace that it writes: warpline TRACE"
    if part["ended_by"] == "error":
        hint = _FREE_DISK if _is_about_files(part) else "try --with nsys, and report it"
        return "not-recorded", f"the recording failed: {part['notes'][-1]}", hint
    seen = max(part["steps_seen"].values(), default=0)
    if seen:
        source = LOOP if LOOP in part["steps_seen"] else max(part["steps_seen"], key=part["steps_seen"].__getitem__)
        code, message, hint = _too_few(plan, part["steps_seen"][source], source, in_code)
        return code, message, f"correct its own error first, or {hint}" if ending.exit_code else hint
    before = "correct its own error first, or " if ending.exit_code else ""
    if in_code:
        return (
            "no-steps",
            "no step was found",
            f"{before}{_RECORD_ALL}, or call warpline.step() at the end of each step",
        )
    return (
        "no-steps",
        f"no step was found, and the program ended before the time window opened ({plan.after_s:g} s)",
        f"{before}record it from the start with --whole, or call warpline.step() at the end of each step",
    )


def _is_about_files(part: dict[str, Any]) -> bool:
    kind = part["notes"][-1].partition(":")[0]
    return kind in {"OSError", "FileNotFoundError", "PermissionError", "FileExistsError", "NotADirectoryError"}


def _no_process(plan: Plan, ending: Ending) -> tuple[str, str, str]:
    if ending.exit_code:
        how = ending.signal or f"exit code {ending.exit_code}"
        return (
            "nothing-recorded",
            f"the program ended with {how} before anything was recorded",
            "see its own error message",
        )
    return (
        "no-torch",
        "no Python process of the program imported torch (or Python ran with -I, -E or -S)",
        "try --with nsys" if plan.tool == TORCH else "record it from the start with --whole",
    )


def _too_few(plan: Plan, seen: int, source: str, in_code: bool) -> tuple[str, str, str]:
    if seen > plan.first_recorded:
        # Without an optimizer step, forward calls that accumulate gradients may be micro-batches of one step.
        message = f"the program ended after {seen} calls ({source}) before it was clear what a step is"
        everything = _RECORD_ALL if in_code else "record it from the start with --whole"
        return "no-steps", message, f"{everything}, or call warpline.step() at the end of each step"
    message = (
        f"the program ended after {seen} step{'s' if seen > 1 else ''} ({source}), but the recording starts "
        f"after {plan.first_recorded}"
    )
    if seen < 3:
        return "too-few-steps", message, _RECORD_ALL if in_code else "record it from the start with --whole"
    numbers = _fitting(plan, seen)
    arguments = ", ".join(f"{name}={number}" for name, number in numbers.items())
    return "too-few-steps", message, f"try {arguments if in_code else _options(numbers)}"
