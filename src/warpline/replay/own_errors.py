"""This user's own errors of predicted gains: fixes that `warpline compare` saw made, between two timed runs.

Only pairs whose bare steps were both timed by `warpline run` count: elsewhere the measured gain is an estimate, too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from warpline.errors import WarplineError
from warpline.sources.record_files import outcomes_file

FEWEST = 8
"""Own errors of a fix from which on they count, as for a constant of its own; the package's counts as many."""
LARGEST = 1e6
"""No program gets so many times faster; what the record says of one is damage."""
_QUERY = "select fix, predicted, spread, measured from outcomes where timed = 1"


class OwnError(Struct, frozen=True):
    """One prediction that met a stopwatch."""

    error: float
    """Distance of the logarithms of measured and predicted gain."""
    spread: float
    gain: float
    """As predicted."""


OwnErrors: TypeAlias = Mapping[str, Sequence[OwnError]]
"""By fix."""


def own_errors() -> OwnErrors:
    """The errors of the local record; none if there is no record, or it cannot be read."""
    path = outcomes_file()
    try:
        state = path.stat()
    except OSError:
        return {}
    return _read(path, state.st_mtime_ns, state.st_size)


@cache
def _read(path: Path, _changed_ns: int, _size: int) -> OwnErrors:
    from warpline.sources.local_record import rows  # noqa: PLC0415 - SQLite loads only where there is a record

    found: dict[str, list[OwnError]] = defaultdict(list)
    try:
        for fix, *numbers in rows(path, _QUERY):
            predicted, spread, measured = map(float, numbers)
            if all(1 / LARGEST < one < LARGEST for one in (predicted, spread, measured)):
                found[str(fix)].append(OwnError(abs(math.log(measured / predicted)), spread, predicted))
    except (WarplineError, ValueError, TypeError):
        return {}
    return found
