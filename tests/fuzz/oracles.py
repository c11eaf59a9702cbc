"""What must hold for every answer, whatever the input was."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from tests.fuzz.commands import Command
from warpline.errors import EXIT_INCONCLUSIVE, EXIT_REGRESSION

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters apart from the newline, and marks that change the direction of text."""
DIVE, SCALED = "warpline.dive/1", "warpline.scaled/1"
REQUIRED = {
    "diagnose": {"schema", "trace", "devices", "replay", "verdict", "plan", "findings", "audit"},
    "stats": {"schema", "reports", "unanswered"},
    "path": {"schema", "ops"},
    "roofline": {"schema", "trace", "by", "ceilings"},
    "budget": {"schema", "step_ns", "bound", "graph_step_ns"},
    "compare": {"schema", "verdict", "reasons", "a", "b", "change", "parts", "unexplained_ns"},
    "dive": {"schema", "kernels"},
    "doctor": {"schema", "examined"},
    "scrub": {"schema", "file", "clean"},
}
"""Keys of each verb's document."""
SLACK = 1e-9


def problems(command: Command, code: int, out: str, err: str) -> Iterator[str]:
    """What is wrong with an answer; each is one short line that begins with its kind."""
    if code not in command.codes:
        yield f"exit-code {code}"
    if "internal-error" in err or "Traceback" in err:
        yield "internal-error"
    for name, text in (("stdout", out), ("stderr", err)):
        if found := CONTROL.search(text):
            yield f"control-character U+{ord(found.group()):04X} on {name}"
    reported = (
        command.verb == "doctor"
        or (command.verb == "scrub" and "--check" in command.arguments)
        or code in {EXIT_REGRESSION, EXIT_INCONCLUSIVE}
    )
    if code != 0 and not reported and "warpline: " not in err:
        yield "no-reason: failed without a line on stderr"
    if command.as_json:
        yield from _document(command, code, out)


def _document(command: Command, code: int, out: str) -> Iterator[str]:
    if not out and "-o" in command.arguments:  # the answer is in the file
        return
    try:
        document = json.loads(out, parse_constant=_refuse)
    except ValueError as error:
        yield f"invalid-json: {error}"
        return
    if code != 0 and isinstance(document, dict) and "error" in document:
        return
    if isinstance(document, dict) and document.get("schema") == DIVE and command.verb == "diagnose":
        return  # a report of Nsight Compute
    if isinstance(document, dict) and document.get("schema") == SCALED and "--scale" in command.arguments:
        return
    missing = REQUIRED.get(command.verb, set()) - set(document if isinstance(document, dict) else ())
    if missing:
        yield f"missing-keys {sorted(missing)}"
        return
    if command.verb == "diagnose":
        yield from _accounting(document)
    if command.verb == "compare":
        yield from _parts(document)
    yield from _ranges(document)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _accounting(document: dict[str, Any]) -> Iterator[str]:
    """Every nanosecond of every device."""
    for device in document["devices"]:
        if device["busy_ns"] + device["idle_ns"] != device["window_ns"]:
            yield "accounting: busy and idle are not the window"
        if sum(device["busy"].values()) != device["busy_ns"]:
            yield "accounting: the parts of busy do not sum"
        if sum(device["idle"].values()) != device["idle_ns"]:
            yield "accounting: the causes of idle do not sum"
        if (
            min(
                device["window_ns"],
                device["busy_ns"],
                device["idle_ns"],
                *device["busy"].values(),
                *device["idle"].values(),
            )
            < 0
        ):
            yield "accounting: negative time"


def _parts(document: dict[str, Any]) -> Iterator[str]:
    """The parts of a comparison sum to the change of the step."""
    whole = (document["change"] or {}).get("step_ns")
    if whole is not None and sum(part["change_ns"] for part in document["parts"]) + document["unexplained_ns"] != whole:
        yield "accounting: the parts of the change do not sum"


def _ranges(value: Any, where: str = "") -> Iterator[str]:
    """Every range is in order, and made of numbers."""
    if isinstance(value, list):
        for inner in value:
            yield from _ranges(inner, where)
    if not isinstance(value, dict):
        return
    if {"low", "high"} <= value.keys():
        numbers = [value[key] for key in ("low", "expected", "high") if value.get(key) is not None]
        if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
            yield f"range: {where} is not made of numbers"
        elif any(one > other + SLACK * abs(other) for one, other in itertools.pairwise(numbers)):
            yield f"range: {where} is not in order"
    for key, inner in value.items():
        yield from _ranges(inner, key)
