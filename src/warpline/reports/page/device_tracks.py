"""Devices as tracks: one per stream, the idle gaps by cause, and what the device waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from warpline.analyses.idle.gaps import CAUSES, Gaps
from warpline.analyses.roofline.pieces import Gathered
from warpline.analyses.roofline.table import kernel_floors
from warpline.errors import CannotAnswer
from warpline.reports.page.contract import Launch, Track, TrackKind
from warpline.reports.page.names import Names
from warpline.reports.page.rows import Pack, Rows, numbered
from warpline.sanitise import sanitise
from warpline.trace.arrays import NONE, Int64s, combinations, integers

NO_STREAM = -1
LAUNCH_COLUMNS = (
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    *("registers", "shared_bytes", "bytes", "source_memory", "target_memory"),
)

BOUNDS = ("compute", "memory", "latency")
MOST_FLOORS = 200_000
"""Operations up to which the roofline is computed: about 10 µs each."""
EVERY_STREAM = 0xFFFFFFFF
"""CUPTI's number for no stream (CUPTI_SYNCHRONIZATION_INVALID_VALUE): a wait for the whole device."""


class DeviceTracks:
    """Adds the tracks of all devices."""

    def __init__(self, work: Gathered, pack: Pack, names: Names, inside: Mapping[int, int]) -> None:
        self._trace, self._work, self._pack, self._names, self._inside = work.trace, work, pack, names, inside
        self.launches: list[Launch] = []

    def add_streams(self, ops: Int64s, calls: Int64s) -> Int64s:
        """Operations, each linked with the call that launched it, else with its op."""
        gpu = self._trace.stored("gpu")
        names = numbered(gpu, ["kind", "name", "short_name"], self._names.gpu)
        launches = numbered(self._explained(gpu), (*LAUNCH_COLUMNS, "floor_ns", "bound", "inside"), self._launch)
        call, op = np.append(calls, NONE)[integers(gpu["api_id"])], np.append(ops, NONE)[integers(gpu["op_id"])]
        return self._by_stream(gpu, "stream", names, launches, np.where(call != NONE, call, op))

    def add_syncs(self, calls: Int64s) -> None:
        """What the device recorded of synchronisation, by stream."""
        syncs = (
            self._trace.stored("syncs")
            .filter(pl.col("end_ns") > pl.col("start_ns"))
            .with_columns(pl.col("stream").replace(EVERY_STREAM, None))
        )
        names = numbered(syncs, ["kind"], lambda kind: self._names.number(kind.replace("_", " "), "sync"))
        if len(syncs):
            self._by_stream(syncs, "waits", names, None, np.append(calls, NONE)[integers(syncs["api_id"])])

    def add_idle(self, gaps: Sequence[Gaps], operations: Int64s) -> None:
        """Idle time by cause in order of time, each part linked with the operation that ended its gap."""
        causes = np.array(
            [self._names.number(f"idle: {words}", "idle", words, cause) for cause, words in cause_words().items()]
        )
        for one in gaps:
            spans = one.spans
            ended_by = np.append(operations, NONE)[integers(one.table["gpu_id"])[spans.gaps]]
            rows = Rows(
                np.zeros(len(spans.starts), np.int64),
                spans.starts,
                spans.ends,
                causes[spans.causes],
                links=ended_by,
            )
            self._pack.add([Track("idle", "idle, by cause", 0, [], device=one.device)], rows)

    def _by_stream(
        self, frame: pl.DataFrame, label: str, names: Int64s, arguments: Int64s | None, links: Int64s
    ) -> Int64s:
        device, stream = integers(frame["device"], 0), integers(frame["stream"], NO_STREAM)
        one_of_each, track = combinations(device, stream)
        kind: TrackKind = "gpu" if label == "stream" else "syncs"
        tracks = [
            Track(kind, label if number == NO_STREAM else f"{label} {number}", 0, [], device=of)
            for of, number in zip(device[one_of_each].tolist(), stream[one_of_each].tolist(), strict=True)
        ]
        starts, ends = integers(frame["start_ns"]), integers(frame["end_ns"])
        return self._pack.add(tracks, Rows(track, starts, ends, names, None, arguments, links))

    def _explained(self, gpu: pl.DataFrame) -> pl.DataFrame:
        """The operations with the time that the roofline allows, to two digits so that equal launches stay equal, and
        with the kernel of Nsight Compute's report that each is."""
        try:
            floors = kernel_floors(self._trace, known_work=self._work) if len(gpu) <= MOST_FLOORS else {}
        except CannotAnswer:
            floors = {}
        times, bounds = np.full(len(gpu), NONE), np.full(len(gpu), NONE)
        for row, (floor_ns, bound) in floors.items():
            times[row], bounds[row] = rounded(floor_ns), BOUNDS.index(bound)
        inside = np.full(len(gpu), NONE)
        inside[list(self._inside)] = list(self._inside.values())
        known = [pl.Series(column).replace(NONE, None) for column in (times, bounds, inside)]
        return gpu.with_columns(floor_ns=known[0], bound=known[1], inside=known[2])

    def _launch(self, *row: int | str | None) -> int:
        if all(value is None for value in row):
            return 0
        (*axes, registers, shared, moved, source, target, floor, bound, inside) = row
        self.launches.append(
            Launch(
                _three(*axes[:3]),
                _three(*axes[3:]),
                _whole(registers),
                _whole(shared),
                _whole(moved),
                sanitise(source) if isinstance(source, str) else None,
                sanitise(target) if isinstance(target, str) else None,
                _whole(floor),
                BOUNDS[bound] if isinstance(bound, int) else None,
                _whole(inside),
            )
        )
        return len(self.launches)


def rounded(floor_ns: float) -> int:
    """The time to two digits."""
    return int(float(f"{floor_ns:.1e}"))


def cause_words() -> dict[str, str]:
    """Each cause of idle time, in words."""
    return {cause: cause.replace("_", " ") for cause in CAUSES}


def _whole(value: int | str | None) -> int | None:
    return value if isinstance(value, int) else None


def _three(*values: int | str | None) -> tuple[int, int, int] | None:
    x, y, z = (_whole(value) for value in values)
    return None if x is None else (x, y if y is not None else 1, z if z is not None else 1)
