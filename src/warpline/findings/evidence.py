"""What the rules look at: the trace, its idle time, its synchronising calls, and the replay that answers "what if"."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl

from warpline.analyses.gaps import CAUSES, idle_gaps
from warpline.analyses.syncs import sync_points
from warpline.analyses.where import frame_names, user_frames, with_sites
from warpline.findings.model import Place
from warpline.replay.model import WORK, Bools
from warpline.replay.whatif import Prediction, WhatIf
from warpline.trace.link import integers
from warpline.trace.nesting import NONE
from warpline.trace.trace import Trace

LISTED_PLACES = 5


class Evidence:
    """A trace made ready for the rules; everything is found when it is first asked for."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.question = WhatIf(trace)
        self.scene = self.question.scene
        self.steps = max(self.question.replay.marks.count, 1)
        self._answers: dict[str, Prediction] = {}

    def ask(self, fix: str) -> Prediction:
        """The prediction for a fix, made once."""
        if fix not in self._answers:
            self._answers[fix] = self.question.ask(fix)
        return self._answers[fix]

    @property
    def step_ns(self) -> float:
        """The step without the profiler, as replayed."""
        return self.question.bare_step_ns.expected

    @cached_property
    def idle(self) -> dict[str, int]:
        """Idle time of the busiest device by cause, over the window."""
        devices = idle_gaps(self.trace)
        best = min(devices, key=lambda gaps: sum(gaps.totals().values()), default=None)
        return best.totals() if best else dict.fromkeys(CAUSES, 0)

    @cached_property
    def idle_share(self) -> float:
        """Share of the window in which the busiest device is idle."""
        length = self.trace.window.length_ns
        return sum(self.idle.values()) / length if length else 0.0

    @cached_property
    def syncs(self) -> pl.DataFrame:
        """Synchronising calls by place."""
        return sync_points(self.trace)

    def in_steps(self, nodes: Bools) -> Bools:
        """Nodes of the steps in view."""
        return nodes & self.scene.in_steps

    def per_step(self, nodes: Bools) -> float:
        """How many of the nodes a step has."""
        return float(self.in_steps(nodes).sum()) / self.steps

    def time_per_step(self, nodes: Bools) -> float:
        """Measured GPU time of the nodes in a step, in nanoseconds."""
        graph, chosen = self.scene.graph, self.in_steps(nodes) & (self.scene.graph.kind == WORK)
        return float((graph.measured_end - graph.measured_start)[chosen].sum()) / self.steps

    def places(self, nodes: Bools) -> tuple[Place, ...]:
        """The ops that launched these nodes, with the user's line where it is known, the most frequent first."""
        ops = self.scene.op[np.flatnonzero(self.in_steps(nodes))]
        ops = ops[ops != NONE]
        if not len(ops):
            return ()
        table = self.trace.ops
        frames = user_frames(self.trace, integers(table["thread"])[ops], integers(table["start_ns"])[ops])
        rows = pl.DataFrame({"op": table["name"].gather(ops).cast(pl.String), "frame": frame_names(self.trace, frames)})
        counted = with_sites(rows.group_by("op", "frame").agg(count=pl.len()))
        listed = counted.sort("count", "op", descending=[True, False]).head(LISTED_PLACES)
        return tuple(Place(row["op"], row["file"], row["line"], row["count"]) for row in listed.rows(named=True))

    def sync_places(self, *kinds: str) -> tuple[Place, ...]:
        """Synchronising calls of these kinds as places, those that block longest first."""
        chosen = self.syncs.filter(pl.col("kind").is_in(kinds)).head(LISTED_PLACES)
        return tuple(
            Place(row["op"] or row["call"], row["file"], row["line"], row["count"]) for row in chosen.rows(named=True)
        )
