"""The causes of idle time, and the parts of a device's gaps in order of time, each with one cause."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from warpline.trace.arrays import Int64s

CAUSES = (
    "dispatch",
    "sync",
    "transfer",
    "input",
    "memory",
    "comm",
    "cold_start",
    "launch_latency",
    "dependency",
    "profiler",
    "unknown",
)


class GapSpans(Struct, frozen=True):
    """The parts of all gaps in order of time, each with one cause; together they are exactly the gaps."""

    starts: Int64s
    ends: Int64s
    gaps: Int64s
    """Row of `Gaps.table` that each is a part of."""
    causes: npt.NDArray[np.integer]
    """Position in `CAUSES`."""

    @classmethod
    def joined(cls, parts: list[GapSpans]) -> GapSpans:
        """Those of some gaps, then those of later ones. Empties the list, so that no more than a column is in memory
        twice."""
        if len(parts) < 2:
            return parts.pop() if parts else cls(*(np.empty(0, np.int64) for _ in range(4)))
        columns = [[getattr(part, name) for part in parts] for name in ("causes", "gaps", "ends", "starts")]
        parts.clear()
        starts, ends, gaps, causes = (np.concatenate(columns.pop()) for _ in range(4))
        return cls(starts, ends, gaps, causes)

    def moved(self, by: int) -> GapSpans:
        """The same as parts of gaps that are so many rows further down, and in little memory."""
        return GapSpans(self.starts, self.ends, self.gaps + by, self.causes.astype(np.int8))

    def merged(self) -> GapSpans:
        """The same, with neighbours of one gap and one cause as one."""
        if not len(self.starts):
            return self
        new = (self.gaps[1:] != self.gaps[:-1]) | (self.causes[1:] != self.causes[:-1])
        first, last = np.append(True, new), np.append(new, True)
        return GapSpans(self.starts[first], self.ends[last], self.gaps[first], self.causes[first])

    def totals(self, count: int) -> Int64s:
        """Time of each cause (a row) in each of so many gaps (a column)."""
        found = np.zeros((len(CAUSES), count), np.int64)
        np.add.at(found, (self.causes, self.gaps), self.ends - self.starts)
        return found
