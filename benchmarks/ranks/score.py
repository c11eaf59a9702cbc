"""Scores `warpline FOLDER` on simulated jobs of many ranks: clocks, straggler, reason and price, by kind.

python -m benchmarks.ranks.score --first 1000 --count 200 [--kinds slow_kernels,jitter] [--ranks 8] [-v]

With `--plain-share 0.5`, half of the ranks record no arguments of collectives.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.ranks.simulate import FAULTS, make, random_setting
from warpline.ranks.job import open_job


class Scored(Struct, frozen=True):
    """One job: what was asked and what was answered."""

    kind: str
    seed: int
    world: int
    layout: str
    is_right: bool
    has_reason: bool
    true_gain: float
    gain: tuple[float, float, float]
    step_error: float
    offset_errors_us: list[float]
    seconds: float
    said: str

    @property
    def in_range(self) -> bool:
        """Whether the true gain lies in the printed range."""
        return self.gain[0] - 1e-9 <= self.true_gain <= self.gain[2] + 1e-9


def scored(kind: str, seed: int, ranks: int | None, plain_share: float = 0.0) -> Scored:
    """Simulate, answer and compare one job; of its ranks this share records no arguments of collectives."""
    folder = Path(tempfile.mkdtemp(prefix="ranks"))
    setting = random_setting(seed, kind, ranks)
    plain = np.random.default_rng([seed, 11]).permutation(setting.world)[: round(plain_share * setting.world)]
    try:
        truth = make(replace(setting, plain_ranks=tuple(plain.tolist())), folder)
        start = time.perf_counter()
        job = open_job(folder, cache=False, workers=1)
        seconds = time.perf_counter() - start
    finally:
        shutil.rmtree(folder)
    found = job.straggler
    error = np.array([clock.offset_ns / 1e3 for clock in job.clocks]) - np.array(truth.offsets_us)[list(job.ranks)]
    is_right = found.ranks == tuple(sorted(truth.ranks))
    if kind == "stalled_hosts":  # all hosts stall: any of them may be the one that is waited for
        is_right = bool(found.ranks)
    gain = (found.gain.low, found.gain.expected, found.gain.high)
    return Scored(
        kind,
        seed,
        truth.setting.world,
        truth.setting.layout,
        is_right,
        found.reason == truth.reason,
        truth.gain,
        gain,
        job.step_ns / 1e3 / found.gain.expected / truth.step_without_us - 1,
        np.abs(error - np.median(error)).tolist(),
        seconds,
        f"{found.ranks[:6]} {found.reason}, true {truth.ranks[:6]} {truth.reason}",
    )


def main() -> None:
    """Score some jobs and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--kinds", default=",".join(FAULTS))
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--plain-share", type=float, default=0.0, help="ranks without arguments of collectives")
    parser.add_argument("-v", "--verbose", action="store_true")
    asked = parser.parse_args()
    kinds = asked.kinds.split(",")
    rows = []
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C shows the figures so far
        for seed in range(asked.first, asked.first + asked.count):
            row = scored(kinds[seed % len(kinds)], seed, asked.ranks, asked.plain_share)
            rows.append(row)
            if asked.verbose or not (row.is_right and row.has_reason):
                gain = "–".join(f"{value:.3f}" for value in row.gain)
                about = f"{row.kind} {row.seed} {row.layout} {row.world}"
                print(f"{about}: {row.said}, gain {gain}, true {row.true_gain:.3f}", flush=True)
    show(rows)


def show(rows: list[Scored]) -> None:
    """The figures of all jobs, and by kind."""
    offsets = np.concatenate([row.offset_errors_us for row in rows])
    ranks, seconds = sum(row.world for row in rows), sum(row.seconds for row in rows)
    print(f"{len(rows)} jobs, {ranks} ranks, {seconds / ranks:.3f} s a rank")
    print(f"clocks: median {np.median(offsets):.2f} µs, 95 % {np.percentile(offsets, 95):.2f}, max {offsets.max():.2f}")
    print("| kind | jobs | straggler right | reason right | mean true gain | step error median, max | in range |")
    print("|---|---|---|---|---|---|---|")
    for kind in [*dict.fromkeys(row.kind for row in rows), "all"]:
        some = [row for row in rows if kind in {row.kind, "all"}]
        named = [row for row in some if row.true_gain > 1.01 and row.is_right]
        errors = np.abs([row.step_error for row in named]) if named else np.zeros(1)
        cells = (
            f"{len(some)} | {sum(row.is_right for row in some)} | {sum(row.has_reason for row in some)}",
            f"{np.mean([row.true_gain for row in some]):.3f}",
            f"{100 * np.median(errors):.1f} %, {100 * errors.max():.1f} %",
            f"{sum(row.in_range for row in named)} of {len(named)}",
        )
        print(f"| {kind} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
