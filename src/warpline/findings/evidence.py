"""What the rules look at: the trace, its idle time, and the replay that answers "what if"."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl

from warpline.analyses.gaps import CAUSES, idle_gaps
from warpline.analyses.where import frame_names, user_frames, with_sites
from warpline.findings.changes import Change, change_of
from warpline.findings.model import Place
from warpline.intervals import difference, union
from warpline.replay.model import WORK, Bools, Int64s
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

    def ask(self, fix: str) -> Prediction:
        """The prediction for a fix."""
        return self.question.ask(fix)

    def gains(self, fix: str, least: float) -> bool:
        """Whether a fix finds something to change and is expected to gain at least so much."""
        return self.question.gains(fix, least)

    def changed(self, fix: str) -> Change:
        """What the fix changes, found once: the nodes that a claim may count."""
        if fix not in self._changes:
            self._changes[fix] = change_of(self.scene, fix)
        return self._changes[fix]

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

    def in_steps(self, nodes: Bools) -> Bools:
        """Nodes that began, or were launched, in the steps in view."""
        inside: Bools = nodes & (self.scene.step != NONE)
        return inside

    def per_step(self, nodes: Bools) -> float:
        """How many of the nodes a step has."""
        return float(self.in_steps(nodes).sum()) / self.steps

    def time_per_step(self, nodes: Bools) -> float:
        """Measured GPU time of the nodes in a step, in nanoseconds."""
        graph, chosen = self.scene.graph, self.in_steps(nodes) & (self.scene.graph.kind == WORK)
        return float((graph.measured_end - graph.measured_start)[chosen].sum()) / self.steps

    def exposed_per_step(self, nodes: Bools) -> float:
        """Time of the nodes in a step during which the device runs no other kernel, in nanoseconds."""
        graph, mine = self.scene.graph, self.in_steps(nodes)
        others = (self.scene.kind == "kernel") & ~nodes
        spans = [union(graph.measured_start[part], graph.measured_end[part]) for part in (mine, others)]
        return difference(*spans).total_ns() / self.steps

    def places(self, nodes: Bools) -> tuple[Place, ...]:
        """The ops that launched these nodes, with the user's line where it is known, the most frequent first."""
        ops = self.scene.op[np.flatnonzero(self.in_steps(nodes))]
        ops = ops[ops != NONE]
        if not len(ops):
            return ()
        table = self.trace.ops
        moments = integers(table["thread"])[ops], integers(table["start_ns"])[ops]
        return self.places_at(table["name"].gather(ops).cast(pl.String), *moments)

    def call_places(self, calls: Bools) -> tuple[Place, ...]:
        """The outermost ops around these API calls, or the calls themselves where there is no op."""
        chosen = np.flatnonzero(self.in_steps(calls))
        if not len(chosen):
            return ()
        return self.places_at(self.call_labels(chosen), *self.call_moments(chosen))

    def call_labels(self, calls: Int64s) -> pl.Series:
        """The outermost op around each API call, or the call's own name."""
        roots = self.scene.root_op_of_call[calls]
        ops = self.trace.ops["name"].cast(pl.String)
        known = ops.gather(pl.Series(roots).replace(NONE, None).cast(pl.UInt32))
        return known.fill_null(pl.Series(self.scene.call_name[calls].tolist(), dtype=pl.String))

    def call_moments(self, calls: Int64s) -> tuple[Int64s, Int64s]:
        """Thread and begin of each API call."""
        rows = self.scene.graph.row[calls]
        return integers(self.trace.api["thread"])[rows], integers(self.trace.api["start_ns"])[rows]

    def places_at(self, labels: pl.Series, threads: Int64s, moments: Int64s) -> tuple[Place, ...]:
        """What was done at these moments, by label and by the user's own line, the most frequent first."""
        frames = user_frames(self.trace, threads, moments)
        rows = pl.DataFrame({"op": labels, "frame": frame_names(self.trace, frames)})
        counted = with_sites(rows.group_by("op", "frame").agg(count=pl.len()))
        listed = counted.sort("count", "op", descending=[True, False]).head(LISTED_PLACES)
        return tuple(Place(row["op"], row["file"], row["line"], row["count"]) for row in listed.rows(named=True))
