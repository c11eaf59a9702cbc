"""Scores the tree on the recorded kernels: is the flaw named first, is the fixed form cleared, does the gain fit?

    python -m faults.kernels.score DIR
    python -m faults.kernels.score DIR --set unseen

DIR is what `faults.kernels.record` wrote. Reading `.ncu-rep` needs NVIDIA's ncu-report.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faults.kernels.case import FIXED, FLAWED, KernelCase
from faults.kernels.launch import ALL, SETS
from warpline.dive.model import KernelDive
from warpline.dive.tree import explain
from warpline.sources.ncu import read_report


@dataclass(frozen=True, slots=True)
class Scored:
    """One form of a case, and what the tree said."""

    case: KernelCase
    form: str
    found: KernelDive
    measured_gain: float | None

    @property
    def named(self) -> bool:
        """Whether the first reason is true of the form."""
        if self.form == FLAWED:
            return self.found.reason in (self.case.reason, *self.case.also)
        return self.found.reason in self.case.fixed_reasons

    @property
    def in_range(self) -> bool | None:
        """Whether the measured gain lies in the predicted range; None where no fix was measured."""
        if self.form != FLAWED or self.case.fixed is None or self.measured_gain is None:
            return None
        return self.found.gain.low <= self.measured_gain <= self.found.gain.high

    def line(self) -> str:
        """One line of the score."""
        gain = self.found.gain
        real = "" if self.measured_gain is None else f"{self.measured_gain:7.2f}×"
        fits = {True: "in range", False: "OUT", None: ""}[self.in_range if self.named else None]
        return (
            f"{'ok ' if self.named else 'NO '} {self.case.name:20} {self.form:7} {self.found.reason:20} "
            f"{gain.low:6.2f} {gain.expected:6.2f} {gain.high:7.2f} {real:9} {fits:9} "
            f"{self.found.bound} {self.found.limiter}"
        )


def scored(folder: Path, chosen: str | None) -> Iterator[Scored]:
    """Every recorded form of a set."""
    recorded = json.loads((folder / "times.json").read_text())
    gains = {row["case"]: row.get("gain") for row in recorded["cases"]}
    for row in recorded["reports"]:
        path = folder / f"{row['report']}.xz"
        if (chosen and not row["report"].startswith(chosen)) or not path.exists():
            continue
        for kernel, launched in zip(read_report(path).kernels, row["launched"], strict=True):
            case = ALL[launched["case"]]
            real = gains.get(case.name) if launched["form"] == FLAWED else None
            yield Scored(case, launched["form"], explain(kernel), real)


def main(arguments: list[str] | None = None) -> int:
    """Prints the score."""
    parser = argparse.ArgumentParser(prog="python -m faults.kernels.score", description="Score the tree.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", choices=sorted(SETS))
    options = parser.parse_args(arguments)
    rows = list(scored(options.folder, options.set))
    for row in rows:
        print(row.line())
    flawed = [row for row in rows if row.form == FLAWED and row.case.fixed is not None]
    controls = [row for row in rows if row.case.fixed is None]
    fixed = [row for row in rows if row.form == FIXED]
    fits = [row for row in flawed if row.named and row.in_range]
    print(
        f"flaw named first {sum(row.named for row in flawed)} of {len(flawed)}, fixed cleared "
        f"{sum(row.named for row in fixed)} of {len(fixed)}, controls {sum(row.named for row in controls)} of "
        f"{len(controls)}, gain in range {len(fits)} of {sum(row.named for row in flawed)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
