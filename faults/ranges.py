"""Prints the constants of `warpline.replay.ranges`, and how often ranges hold for a suite that they were made without.

    python -m faults.ranges

Each suite is left out in turn: ranges are calibrated on the other suites of the table of blind errors, and held against
what the stopwatch showed of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median

from faults.blind_errors import BlindError, read_table
from faults.calibrate import (
    FEWEST_CASES,
    Calibration,
    Miss,
    bare_ranges,
    doubts_of,
    gain_misses,
    half_width,
    largest_error,
    step_misses,
)
from faults.scoreboard import STEP_TOLERANCE
from faults.spreads import Spreads, read_spreads
from warpline.replay.ranges import NARROW, HalfWidth, doubt_of_bare

Misses = Callable[[Sequence[BlindError], Spreads], list[Miss]]


@dataclass(frozen=True, slots=True)
class Held:
    """Whether one range, made without the suite, held one reading of the stopwatch."""

    suite: str
    case: str
    fix: str
    inside: bool
    width: float
    """High over low."""


@cache
def left_out(misses: tuple[Miss, ...]) -> list[tuple[HalfWidth, list[Miss]]]:
    """For each suite, the formula from the other suites, and the suite's own errors."""
    made = Calibration(misses)
    return [(made.half_width(suite), [miss for miss in misses if miss.suite == suite]) for suite in made.suites]


def held(misses: Sequence[Miss]) -> list[Held]:
    """Every reading against the range of its prediction, with each suite left out in turn."""
    result = []
    for width, asked in left_out(tuple(misses)):
        for miss in asked:
            half, doubt = width.of([miss.fix], miss.spread, miss.gain), miss.doubt
            high_over_low = doubt.above(1.0, half) / doubt.below(1.0, half)
            result.append(Held(miss.suite, miss.case, miss.fix, miss.beyond <= half, high_over_low))
    return result


def bare_held(table: Sequence[BlindError]) -> list[Held]:
    """The same for the bare step, one row a case."""
    cases, result = list({(row.suite, row.case): row for row in table}.values()), []
    for suite in sorted({row.suite for row in cases}):
        paces = bare_ranges([row for row in table if row.suite != suite])
        for row in (row for row in cases if row.suite == suite):
            doubt = doubt_of_bare(row.idle_share, paces)
            low, high = doubt.below(row.bare_ns, 0.0), doubt.above(row.bare_ns, 0.0)
            for before in row.before_ns:
                result.append(Held(suite, row.case, "", low <= before <= high, high / low))
    return result


def high_claims(table: Sequence[BlindError], spreads: Spreads) -> list[tuple[str, bool]]:
    """Cases that `high` would be said of with their suite left out, and whether the step was within 25 %."""
    claims = []
    widths = [
        {asked[0].suite: width for width, asked in left_out(tuple(of(table, spreads)))}
        for of in (step_misses, gain_misses)
    ]
    for row, spread, of_step, of_gain in doubts_of(table, spreads):
        half, half_gain = (width[row.suite].of([row.fix], spread, row.gain) for width in widths)
        if of_step.above(1.0, half) <= NARROW and of_gain.below(row.gain, half_gain) > 1.0:
            right = abs(row.expected_ns / row.after_fastest_ns - 1) <= STEP_TOLERANCE
            claims.append((row.case, right))
    return claims


def share(held_ones: Sequence[Held]) -> float:
    """Share of the readings that lie inside."""
    return sum(one.inside for one in held_ones) / len(held_ones)


def by_fix(held_ones: Sequence[Held]) -> dict[str, tuple[float, int]]:
    """Share inside and number of cases, for each fix that has enough of them."""
    groups = {fix: [one for one in held_ones if one.fix == fix] for fix in sorted({one.fix for one in held_ones})}
    counted = {fix: (share(ones), len({one.case for one in ones})) for fix, ones in groups.items()}
    return {fix: found for fix, found in counted.items() if found[1] >= FEWEST_CASES}


def _line(what: str, held_ones: Sequence[Held]) -> str:
    suites = {suite: share([one for one in held_ones if one.suite == suite]) for suite in {h.suite for h in held_ones}}
    worst = min(suites, key=lambda suite: suites[suite])
    return (
        f"{what}: {share(held_ones):.2f} inside, worst suite {suites[worst]:.2f} ({worst}), "
        f"median high/low {median(one.width for one in held_ones):.2f}"
    )


def main() -> int:
    """Prints constants and coverage."""
    table, spreads = read_table(), read_spreads()
    misses = {"STEP": step_misses(table, spreads), "GAIN": gain_misses(table, spreads)}
    for name, own in misses.items():
        print(f"{name} = {half_width(own)}")
    print(f"BARE = {bare_ranges(table)}")
    print(f"LARGEST_ERROR = {largest_error([miss for own in misses.values() for miss in own])}")
    print("\nEach suite left out, 80 % wanted, any reading of the stopwatch:")
    for name, own in misses.items():
        found = held(own)
        print(_line(name.lower(), found))
        print("  " + ", ".join(f"{fix} {inside:.2f} ({cases})" for fix, (inside, cases) in by_fix(found).items()))
    print(_line("bare", bare_held(table)))
    claims = high_claims(table, spreads)
    print(f"high: step within 25 % for {sum(right for _, right in claims)} of {len(claims)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
