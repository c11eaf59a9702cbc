"""Writes the constants of the ranges into the package, and their tables into docs/ranges.md.

    python -m faults.write_ranges

After a new suite was added to the table of blind errors (`make ranges` prints the same, and writes nothing).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from faults.blind_errors import BlindError, read_table
from faults.calibrate import bare_ranges, gain_misses, half_width, largest_error, step_misses
from faults.ranges import Held, bare_held, by_fix, held, high_claims, share
from faults.spreads import Spreads, read_spreads
from warpline.replay.ranges import BareRange, HalfWidth

ROOT = Path(__file__).parents[1]
MODULE, PAGE = ROOT / "src" / "warpline" / "replay" / "ranges.py", ROOT / "docs" / "ranges.md"
FEWEST_SHOWN = 8
"""Cases from which on a fix has a row in the table of what is held."""
PACES = ("the GPU sets the pace", "both do", "the host does")


def module_text(text: str, table: Sequence[BlindError], spreads: Spreads) -> str:
    """The module with the constants of this table."""
    steps, gains = step_misses(table, spreads), gain_misses(table, spreads)
    for name, law in (("STEP", half_width(steps)), ("GAIN", half_width(gains))):
        text = re.sub(rf"(?ms)^{name} = HalfWidth\(\n.*?^\)\n", _constants(name, law), text)
    paces = ", ".join(
        f"BareRange({_number(one.below_idle_share)}, {one.low}, {one.high})" for one in bare_ranges(table)
    )
    text = re.sub(r"(?m)^BARE = .*$", f"BARE = ({paces})", text)
    text = re.sub(r"(?m)^LARGEST_ERROR = .*$", f"LARGEST_ERROR = {largest_error([*steps, *gains])}", text)
    right, claims = _high(table, spreads)
    return re.sub(r"\d+ of \d+\nsuch predictions", f"{right} of {claims}\nsuch predictions", text)


def _constants(name: str, law: HalfWidth) -> str:
    rows = "".join(f'        "{fix}": {constant},\n' for fix, constant in law.by_fix.items())
    return (
        f"{name} = HalfWidth(\n    others={law.others},\n    by_fix={{\n{rows}    }},\n"
        f"    spread_power={law.spread_power},\n    gain_power={law.gain_power},\n)\n"
    )


def _number(value: float) -> str:
    return "math.inf" if math.isinf(value) else str(value)


def page_text(text: str, table: Sequence[BlindError], spreads: Spreads) -> str:
    """The page with the tables of these errors, each between its marks."""
    misses = {"step": step_misses(table, spreads), "gain": gain_misses(table, spreads)}
    found = {name: held(own) for name, own in misses.items()}
    right, claims = _high(table, spreads)
    parts = {
        "constants": _constants_table({name: half_width(own) for name, own in misses.items()}),
        "bare": _bare_table(bare_ranges(table)),
        "held": _held_table({**found, "bare step": bare_held(table)}),
        "fixes": _fixes_table(found),
    }
    for name, part in parts.items():
        text = re.sub(rf"(?s)<!-- {name} -->\n.*?<!-- end -->", f"<!-- {name} -->\n{part}<!-- end -->", text)
    said = f"{right} of {claims} such predictions ({100 * right / claims:.0f} %)"
    return re.sub(r"\d+ of \d+ such predictions \(\d+ %\)", said, text)


def _high(table: Sequence[BlindError], spreads: Spreads) -> tuple[int, int]:
    claims = high_claims(table, spreads)
    return sum(right for _, right in claims), len(claims)


def _constants_table(laws: Mapping[str, HalfWidth]) -> str:
    rows = []
    for name, law in laws.items():
        own = ", ".join(f"`{fix}` {constant:.3f}" for fix, constant in law.by_fix.items())
        rows.append(f"| {name} | {law.others:.3f}; {own} | {law.spread_power:.3f} | {law.gain_power:.3f} |\n")
    return f"| | constant | spread^a | gain^b |\n|---|---|---|---|\n{''.join(rows)}"


def _bare_table(paces: Sequence[BareRange]) -> str:
    limits = [f"under {100 * pace.below_idle_share:.0f} %" for pace in paces[:-1]]
    limits.append(f"{100 * paces[-2].below_idle_share:.0f} % or more")
    rows = (
        f"| {limit}: {who} | {pace.low:.3f} to {pace.high:.3f} |\n"
        for limit, who, pace in zip(limits, PACES, paces, strict=True)
    )
    return f"| GPU idle | range, times the estimate |\n|---|---|\n{''.join(rows)}"


def _held_table(found: Mapping[str, Sequence[Held]]) -> str:
    rows = []
    for name, ones in found.items():
        suites = [share([one for one in ones if one.suite == suite]) for suite in {one.suite for one in ones}]
        rows.append(f"| {name} | {share(ones):.2f} | {min(suites):.2f} | {median(one.width for one in ones):.2f} |\n")
    return f"| | inside | worst suite | median high/low |\n|---|---|---|---|\n{''.join(rows)}"


def _fixes_table(found: Mapping[str, Sequence[Held]]) -> str:
    shares = {name: by_fix(ones) for name, ones in found.items()}
    rows = (
        f"| `{fix}` ({cases}) | {inside:.2f} | {shares['gain'][fix][0]:.2f} |\n"
        for fix, (inside, cases) in shares["step"].items()
        if cases >= FEWEST_SHOWN
    )
    return f"| fix (cases) | step | gain |\n|---|---|---|\n{''.join(rows)}"


def main() -> int:
    """Writes both files."""
    table, spreads = read_table(), read_spreads()
    for path, make in ((MODULE, module_text), (PAGE, page_text)):
        path.write_text(make(path.read_text(encoding="utf-8"), table, spreads), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
