"""Amounts on the command line: times with their unit, and counts with a prefix."""

from __future__ import annotations

import math
import re
from typing import Any

import click

_NUMBER = r"([0-9][0-9_,]*+(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?|\.[0-9]++)"
_TIMES = {"s": 1e9, "ms": 1e6, "us": 1e3, "µs": 1e3, "μs": 1e3, "ns": 1.0}
_DECIMAL = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_BINARY = {f"{prefix}i": 1024.0**power for power, prefix in enumerate("kmgt", start=1)}


class Time(click.ParamType[float]):
    """A time with its unit, in nanoseconds: 31.139ms, 383us, 1.2s."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse it."""
        match = re.fullmatch(rf"{_NUMBER}\s*([a-zµμ]+)", str(value).strip())
        if match is None or match[2] not in _TIMES:
            self.fail(f"{value!r} is not a time with a unit: 31.139ms, 383us or 1.2s", param, ctx)
        return _number(match[1]) * _TIMES[match[2]]


class Amount(click.ParamType[float]):
    """A count, with a decimal or binary prefix: 1.1e12, 137G, 402MB, 24MiB."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse it."""
        match = re.fullmatch(rf"{_NUMBER}\s*([kmgtp]i?)?(b|flops?)?", str(value).strip(), flags=re.IGNORECASE)
        factor = ({**_DECIMAL, **_BINARY}.get((match[2] or "").lower()) if match else None) or 0.0
        number = _number(match[1]) * factor if match else math.inf
        if not factor or not number < math.inf:
            self.fail(f"{value!r} is not an amount: 1.1e12, 137G or 402MB", param, ctx)
        return number


def _number(text: str) -> float:
    return float(text.replace(",", "").replace("_", ""))
