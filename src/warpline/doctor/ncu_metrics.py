"""Check ``ncu --metrics``: names that the chip lacks, or that never existed, and what to ask for instead."""

from __future__ import annotations

from collections.abc import Iterator

from warpline.doctor.command_line import Command
from warpline.doctor.machine import Machine
from warpline.doctor.model import Check
from warpline.doctor.remark import Remark, setting
from warpline.errors import UsageError
from warpline.hardware.counters.explain import Explanation, explain
from warpline.hardware.counters.table import catalogue, target_of

_CAPABILITY = ("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")


def metric_remarks(command: Command, machine: Machine) -> Iterator[Remark]:
    """Metrics that ncu would refuse, on this machine's chip or on every chip."""
    asked = command.value("--metrics")
    if asked is None:
        return
    chip = _chip(machine)
    listed = catalogue(chip)
    better: list[str] = []
    wrong: list[Explanation] = []
    for name in [word.strip() for word in asked.split(",") if word.strip()]:
        found = explain(name, chip, listed) if not name.startswith("regex:") else None
        if found is None or found.usable:
            better.append(name)
            continue
        wrong.append(found)
        instead = _instead(found)
        if instead:
            better.append(instead)
    for found in wrong:
        yield Remark(_check(found))
    if wrong and better:
        corrected = ",".join(dict.fromkeys(better))
        names = "metric" if len(wrong) == 1 else "metrics"
        check = Check("metrics-corrected", "note", f"{len(wrong)} {names} replaced or left out", "", ())
        yield Remark(check, setting("--metrics", corrected))


def _chip(machine: Machine) -> str | None:
    """The chip of this machine's first GPU; None without one, or where no list has it."""
    answer = machine.ask(_CAPABILITY)
    if answer is None or answer.status != 0 or not answer.output.strip():
        return None
    try:
        return target_of(answer.output.split()[0])
    except UsageError:
        return None


def _instead(found: Explanation) -> str:
    """The name to ask for; without a known chip, one that all chips have."""
    if found.state == "exists":
        return found.problem.rpartition(": ")[2]
    if found.chip is not None:
        options = found.instead.get(found.chip, ())
        return options[0].name if options else ""
    lists = [[option.name for option in options] for options in found.instead.values()]
    portable = [name for name in lists[0] if all(name in other for other in lists)] if lists else []
    return (portable or lists[0])[0] if lists else ""


def _check(found: Explanation) -> Check:
    where = f"on {found.chip}" if found.chip else "on any chip"
    if found.state == "exists":
        return Check("unknown-metric", "problem", f"{found.name}: {found.problem}", "ncu stops: it cannot find it.")
    seen = f"{found.name} does not exist {where}"
    instead = _instead(found)
    do = (instead,) if instead else tuple(found.near[:3]) or (f"warpline metric {found.name}",)
    return Check("unknown-metric", "problem", seen, "ncu reports n/a, or stops: Failed to find metric.", do)
