"""What the program runs while the device is idle: the Python function or op that fills most of each kind of gap.

Gaps are sampled: at evenly spaced moments, which frame and which op is the innermost on the thread that ends the gap?
From the outermost call inwards, the last one that still fills half of the time is the answer. Frames come from the
trace, else from a second pass at the same program (`warpline run`); without either, ops remain.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from warpline.analyses.idle.gaps import CAUSES, Gaps
from warpline.analyses.user_frames import CALL, LineIs, Site, UserFrames, site_of
from warpline.library_names import LIBRARY_FRAME, MODULE_FRAME
from warpline.trace.arrays import NONE, Bools, Floats, Int64s, combinations
from warpline.trace.nesting import Nest
from warpline.trace.trace import Trace

MOMENTS, LEAST_SAMPLES, MOST_SAMPLES = 8_000, 8, 256
"""Moments that are looked at, in all and of each gap."""
MOST_GAPS = 1_000
"""The longest gaps: short ones add little."""
LEAST_SHARE = 0.05
"""Kinds of gaps with a smaller share of the idle time are left out."""
LEAST_OF_TIME = 0.5
"""A place is named where it has at least this share of the time."""
SCRIPT, LEAST_OF_SCRIPT = ": <module>", 0.2
"""A script's own frame says nothing; of the calls that it makes, one with less of the time says nothing either."""
HOST_CAUSES = ("dispatch", "sync", "transfer", "input", "memory", "cold_start", "unknown")
"""Causes for which the CPU's activity says more."""
_BUILT_IN = re.compile(r"<built-in (?:function|method) (\w+)")
ROOT = 0
"""Position of the tree's root."""


class GapPlace(Struct, frozen=True):
    """What fills most of the gaps of one kind."""

    cause: str
    gaps: int
    """Number of gaps, over the window."""
    gap_ns: int
    """Mean length of such a gap."""
    filled_ns: int
    """How much of it this call takes."""
    what: str
    """The function or op."""
    file: str | None
    line: int | None
    """Where it is called in the user's code; null where the op alone is known."""
    function: str | None
    """The user's function that calls it, directly or through libraries."""
    line_is: LineIs | None
    called_by: str | None
    """That function, or the DataLoader."""

    @property
    def sentence(self) -> str:
        """The place, without its times."""
        site = site_of(asdict(self))
        if site is not None and site.line_is != CALL and self.called_by == site.function:
            return site.spot if self.what == site.function else f"{self.what} called by {site.spot}"
        spot = f" ({site.spot})" if site else ""
        caller = f" called by {self.called_by}" if self.called_by and self.called_by != self.what else ""
        return f"{self.what}{caller}{spot}"


def gap_places(trace: Trace, gaps: Gaps) -> list[GapPlace]:
    """For each kind of gap, what runs in it; the kind with the most idle time first."""
    lengths = gaps.ends - gaps.starts
    ended = np.flatnonzero(gaps.ended_by != NONE)
    longest = ended[np.argsort(-lengths[ended], kind="stable")[:MOST_GAPS]]
    main_cause = np.argmax(gaps.by_cause(longest), axis=0)
    least_ns, found = LEAST_SHARE * int(lengths[ended].sum()), []
    for number, cause in enumerate(CAUSES):
        rows = longest[main_cause == number]
        total_ns = int(lengths[rows].sum())
        if cause in HOST_CAUSES and len(rows) and total_ns >= least_ns:
            found.append((total_ns, _place(trace, gaps, rows, cause)))
    return [place for _, place in sorted(found, key=lambda each: -each[0]) if place is not None]


def _place(trace: Trace, gaps: Gaps, rows: Int64s, cause: str) -> GapPlace | None:
    start, end, calls = gaps.starts[rows], gaps.ends[rows], trace.gpu.api_id[gaps.ended_by[rows]]
    total_ns = int((end - start).sum())
    # A launch that takes long, since it loads code, is a part of what fills the gap.
    returned = np.append(trace.api.end_ns, 0)[calls]
    end = np.where(calls == NONE, end, np.clip(returned, start, end))
    known = np.flatnonzero((calls != NONE) & (end > start))
    if not len(known):
        return None
    start, end, thread = start[known], end[known], trace.api.thread[calls[known]]
    samples = int(np.clip(MOMENTS // len(known), LEAST_SAMPLES, MOST_SAMPLES))
    share = (np.arange(samples) + 0.5) / samples
    moments = (start[:, None] + share * (end - start)[:, None]).astype(np.int64).ravel()
    weights = np.repeat((end - start) / samples, samples)
    sampled = _Samples(trace, np.repeat(thread, samples), moments, weights)
    return sampled.place(cause, len(rows), total_ns)


class _Samples:
    """Moments of gaps, and the calls that were open at each of them, as a tree of names."""

    def __init__(self, trace: Trace, threads: Int64s, moments: Int64s, weights: Floats) -> None:
        self._frames, self._threads, self._moments = trace.once(UserFrames), threads, moments
        self._total = float(weights.sum())
        self._tree = _Tree()
        rows, ops = self._frames.innermost(threads, moments), _innermost_ops(trace, threads, moments)
        one_of_each, self._which = combinations(rows, ops)
        rows, ops = rows[one_of_each], ops[one_of_each]
        spent = np.bincount(self._which, weights, len(rows))
        op_names = trace.ops.name.at(ops).texts
        self._calls = {NONE: ROOT}
        """The call of each frame that was met."""
        self._ends: list[int] = []
        """The innermost call of each different pair of frame and op."""
        for row, op, op_name, time in zip(rows.tolist(), ops.tolist(), op_names.tolist(), spent.tolist(), strict=True):
            frame = self._call(row)
            self._ends.append(self._tree.call(frame, op_name) if op != NONE else frame)
            self._tree.time[self._ends[-1]] += time
        self._tree.add_up()

    def _call(self, frame: int) -> int:
        """A frame as a call of the tree, below the frames that make it."""
        new: list[int] = []
        while frame not in self._calls:
            new.append(frame)
            frame = self._frames.caller(frame)
        at = self._calls[frame]
        for each in reversed(new):
            at = self._calls[each] = self._tree.call(at, self._frames.name(each))
        return at

    def place(self, cause: str, count: int, total_ns: int) -> GapPlace | None:
        """The innermost call that fills half of the sampled time."""
        tree = self._tree
        best = tree.innermost(ROOT, self._total)
        if best == ROOT:
            return None
        inside = np.array([tree.is_within(end, best) for end in self._ends])[self._which]
        path = tree.path(best)
        site, caller = self._site(path, inside)
        return GapPlace(
            cause,
            count,
            total_ns // count,
            round(tree.time[best] / count),
            _label(next((name for name in reversed(path) if not name.startswith(MODULE_FRAME)), path[-1])),
            site.file if site else None,
            site.line if site else None,
            site.function if site else None,
            site.line_is if site else None,
            caller,
        )

    def _site(self, path: list[str], inside: Bools) -> tuple[Site | None, str | None]:
        """The user's line that runs at most of these moments, and the function that it belongs to."""
        sites = Counter(filter(None, self._frames.sites(self._threads[inside], self._moments[inside])))
        if not sites:
            return None, _loader(path)
        site = Site.parse(min(sites, key=lambda text: (-sites[text], text)))
        # The user's line may also lie inside the call: a library that calls back.
        above = [frame for frame in map(Site.of_frame, path) if frame]
        calls = site and any((one.file, one.function) == (site.file, site.function) for one in above)
        return site, _loader(path) or (site.function if site and calls else None)


class _Tree:
    """Calls by name, below those that make them."""

    def __init__(self) -> None:
        self.name, self.time, self._above, self._below = [""], [0.0], [ROOT], [dict[str, int]()]

    def call(self, above: int, name: str) -> int:
        """The call of this name that another one makes."""
        known = self._below[above]
        if name not in known:
            known[name] = len(self.name)
            self.name.append(name)
            self.time.append(0.0)
            self._above.append(above)
            self._below.append({})
        return known[name]

    def add_up(self) -> None:
        """Add the time of each call to those that make it."""
        for at in range(len(self.time) - 1, ROOT, -1):  # calls are numbered after those that make them
            self.time[self._above[at]] += self.time[at]

    def innermost(self, at: int, total: float) -> int:
        """The innermost call below with half of the time; if that is a script itself, its largest call, unless that is
        small, and so on within that one."""
        while True:
            best = at
            while (largest := self._largest(best)) != ROOT and self.time[largest] >= LEAST_OF_TIME * total:
                best = largest
            if not self.name[best].endswith(SCRIPT):
                return best
            if largest == ROOT or self.time[largest] < LEAST_OF_SCRIPT * total:
                return ROOT
            at, total = largest, self.time[largest]

    def _largest(self, at: int) -> int:
        return max(self._below[at].values(), key=lambda each: self.time[each], default=ROOT)

    def path(self, at: int) -> list[str]:
        """Names from the outermost call to this one."""
        names = []
        while at != ROOT:
            names.append(self.name[at])
            at = self._above[at]
        return names[::-1]

    def is_within(self, at: int, above: int) -> bool:
        """Whether a call is another one, or below it."""
        while at > above:  # calls are numbered after those that make them
            at = self._above[at]
        return at == above


def _loader(path: list[str]) -> str | None:
    """`the DataLoader`, if the call is made by one."""
    return "the DataLoader" if any("torch/utils/data/" in frame for frame in path[:-1]) else None


def _label(frame: str) -> str:
    """A short name: `scipy.ndimage zoom`, `sleep`, `aten::copy_`."""
    built_in = _BUILT_IN.match(frame)
    if built_in:
        return built_in[1]
    site = Site.of_frame(frame)
    if site is None:
        return frame
    if not re.search(LIBRARY_FRAME, frame) and "/" not in site.file:
        return site.function
    package = site.file.split("site-packages/")[-1].split("dist-packages/")[-1]
    words = [word for word in package.removesuffix(".py").split("/")[:-1] if word]
    return ".".join([*words, site.function]) if words and not package.startswith("/") else site.function


def _innermost_ops(trace: Trace, threads: Int64s, moments: Int64s) -> Int64s:
    ops = trace.ops
    columns = ops.thread, ops.start_ns, ops.end_ns, ops.parent, ops.depth
    return Nest(*columns).innermost(threads, moments) if len(ops) else np.full(len(moments), NONE, np.int64)
