"""The user's Python line of an op or a call: from the frames of the trace, else from those of a second pass."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.library_names import LIBRARY_FRAME
from warpline.sources.health import HealthEntry
from warpline.trace.arrays import NONE, Bools, Int64s, Texts, grouped, last_match
from warpline.trace.nesting import Nest, nearest_marked
from warpline.trace.schema import Ops, Python
from warpline.trace.steps.same_ops import OpOrder, same_ops
from warpline.trace.table import filled
from warpline.trace.trace import Trace

LEAST_MATCHED = 0.9
"""Share of the ops that must be in the second pass too; fewer are worth a note."""
_LINE = re.compile(r"\((\d+)\): ")
_FRAME = re.compile(r"^(?P<file>.+?)\((?P<mark>def |open |~)?(?P<line>\d{1,9})\): (?P<function>.*)$")
LineIs = Literal["call", "near", "open", "definition"]
"""What a line is: of the call, close to it, the one that ran when the recording began, or the function's first."""
CALL, NEAR, OPEN, DEFINITION = get_args(LineIs)
_MARKS = {CALL: "", NEAR: "~", OPEN: "open ", DEFINITION: "def "}
_MEANINGS = {mark or None: meaning for meaning, mark in _MARKS.items()}
OPEN_WITHIN_NS = 50_000
"""Time between two frames that torch finds open: it takes a few microseconds for each, and longer to start."""
SCRIPT = "<module>"
"""The function that Python calls a script's own code."""


class Site(Struct, frozen=True):
    """A place in the user's code."""

    file: str
    line: int
    function: str
    line_is: LineIs
    """`open` or `definition` in torch's traces, which have no other line; else as `warpline run` has recorded it."""

    @classmethod
    def parse(cls, text: str) -> Site | None:
        """Parse `train.py(12): step`, `train.py(~12): step` or `train.py(def 7): step`; None for anything else."""
        found = _FRAME.match(text)
        return cls(found["file"], int(found["line"]), found["function"], _MEANINGS[found["mark"]]) if found else None

    @classmethod
    def of_frame(cls, name: str) -> Site | None:
        """The place of a frame of a trace, by its name; None for what is no function of a file."""
        return cls.parse(_marked(name, DEFINITION))

    @property
    def spot(self) -> str:
        """The place as text after "in": `train.py:12`, or the function if the line of the call is not known."""
        if self.line_is == CALL:
            return f"{self.file}:{self.line}"
        if self.line_is == NEAR:
            return f"{self.function}, near {self.file}:{self.line}"
        if self.function == SCRIPT:
            return f"the top level of {self.file}"
        if self.line_is == OPEN:
            return f"{self.function} of {self.file}"
        return f"{self.function}, defined at {self.file}:{self.line}"

    @property
    def with_function(self) -> str:
        """The place and its function: `train.py:12 step`."""
        return f"{self.spot} {self.function}" if self.line_is == CALL else self.spot

    @property
    def brief(self) -> str:
        """The place for a narrow column: `train.py:12` without folders, or `step()`."""
        file = self.file.replace("\\", "/").rpartition("/")[2]
        if self.line_is == CALL:
            return f"{file}:{self.line}"
        return file if self.function == SCRIPT else f"{self.function}()"


def _marked(name: str, line_is: LineIs) -> str:
    """A frame's name, with a mark of what its line is."""
    return _LINE.sub(rf"({_MARKS[line_is]}\1): ", name, count=1)


def open_frames(python: Python, frames: Nest) -> dict[str, str]:
    """The names of the frames that were open when the recording began, each with the text for `Site.parse`.

    Their names have the line that was running then. The name of a frame that begins later has the first line of its
    function, which is taken for both if it is one.
    """
    was_open = _open_at_start(frames)
    found = {name: Site.parse(name) for name in python.name[was_open].present()}
    functions = {(site.file, site.function) for site in found.values() if site}
    first_lines: dict[tuple[str, str], set[int]] = {}
    if functions:
        for name in python.name[~was_open].present():
            site = Site.parse(name)
            if site and (site.file, site.function) in functions:
                first_lines.setdefault((site.file, site.function), set()).add(site.line)
    texts = {}
    for name, site in found.items():
        lines = first_lines.get((site.file, site.function), set()) if site else set()
        texts[name] = _with_line(name, lines.pop(), DEFINITION) if len(lines) == 1 else _marked(name, OPEN)
    return texts


def _open_at_start(frames: Nest) -> Bools:
    """torch writes the frames that it finds open first, in one go, for each thread."""
    found = np.zeros(len(frames.starts), bool)
    earliest = int(frames.starts.min()) if len(found) else 0
    for first in np.flatnonzero(np.diff(frames.lanes, prepend=NONE) != 0).tolist():
        found[first] = frames.starts[first] - earliest <= OPEN_WITHIN_NS
        for at in range(first + 1, len(found)):
            late = frames.starts[at] - frames.starts[at - 1] > OPEN_WITHIN_NS
            if not found[first] or late or frames.parents[at] != at - 1:
                break
            found[at] = True
    return found


class UserFrames:
    """The frames of the user's code, prepared for many lookups.

    A trace without frames borrows those of a second pass: a moment within an op becomes the start of the same op there,
    and a moment between two ops the same share of the time between the same two ops.
    """

    def __init__(self, trace: Trace) -> None:
        source, self._twin = trace, None
        if not len(trace.python) and trace.companions is not None and trace.companions.stacks is not None:
            source = trace.companions.stacks
            self._twin = _Twin(trace, source) if len(source.python) else None
        self.python = source.python
        """The table that lookups give rows of."""
        self._names = self.python.name
        own = ~self._names.like(LIBRARY_FRAME)
        table = source.python
        frames = Nest(table.thread, table.start_ns, table.end_ns, table.parent, table.depth)
        self._parents = np.append(frames.parents, NONE)
        self._own_or_above = np.append(nearest_marked(frames.parents, own), NONE)
        self._frames = frames if len(own) else None
        self._open_frames = open_frames(self.python, frames)
        lines = trace.companions.look.lines if trace.companions is not None else pl.DataFrame()
        self._lines = np.append(_calling_lines(source, lines), NONE)

    @property
    def exist(self) -> bool:
        """Whether there are frames."""
        return self._frames is not None

    @property
    def borrowed(self) -> bool:
        """Whether the frames are those of a second pass."""
        return self._twin is not None

    @property
    def matched_share(self) -> float:
        """Share of the trace's ops that the frames are known for: less than 1 if the second pass ran other ops."""
        return self._twin.matched_share if self._twin is not None else float(self.exist)

    def at(self, threads: Int64s, moments: Int64s) -> Int64s:
        """Row of `python` of the innermost user frame on that thread at that moment, or NONE."""
        return self._own_or_above[self.innermost(threads, moments)]

    def innermost(self, threads: Int64s, moments: Int64s) -> Int64s:
        """The same for any frame."""
        if self._frames is None:
            return np.full(len(moments), NONE, np.int64)
        if self._twin is not None:
            threads, moments = self._twin.moments(threads, moments)
        return self._frames.innermost(threads, moments)

    def caller(self, frame: int) -> int:
        """Row of the frame that makes a call; NONE if none does."""
        return int(self._parents.item(frame))

    def name(self, frame: int) -> str:
        """A frame as text."""
        return (self._names.text(frame) if frame != NONE else None) or ""

    def stack_above(self, frame: int, most: int) -> list[str]:
        """The user's frames from this one outwards, at most so many."""
        found: list[str] = []
        while frame != NONE and len(found) < most:
            found.append(self._text(self.name(frame)) or "")
            frame = int(self._own_or_above[self._parents[frame]])
        return found

    def _text(self, name: str | None, line: int = NONE, line_is: LineIs = CALL) -> str | None:
        """A frame as text for `Site.parse`, with this line if it is known."""
        if name is None or line == NONE:
            return name and (self._open_frames.get(name) or _marked(name, DEFINITION))
        return _with_line(name, line, line_is)

    def sites(self, threads: Int64s, moments: Int64s) -> Texts:
        """The innermost user frames as text for `Site.parse`, with the line that was running where it is known."""
        texts, which = self.distinct_sites(threads, moments)
        return np.array(texts, object)[which]

    def distinct_sites(self, threads: Int64s, moments: Int64s) -> tuple[list[str | None], Int64s]:
        """The same as the distinct texts, and for each moment which of them it has."""
        if self._frames is None:
            return [None], np.zeros(len(moments), np.int64)
        if self._twin is not None:
            threads, moments = self._twin.moments(threads, moments)
        inner = self._frames.innermost(threads, moments)
        own = self._own_or_above[inner]
        lines = self._running_lines(threads, moments, inner, own)
        is_near = inner == own  # an operator is no call, and only the calls around it have lines
        beyond = int(lines.max(initial=NONE)) + 2
        words = [*self._names.words, None]
        name_of = np.append(filled(self._names.codes, len(words) - 1), len(words) - 1)
        found, which = np.unique((name_of[own] * beyond + lines + 1) * 2 + is_near, return_inverse=True)
        texts = [
            self._text(words[number // 2 // beyond], number // 2 % beyond - 1, NEAR if number % 2 else CALL)
            for number in found.tolist()
        ]
        known = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        return list(known), np.array([known[text] for text in texts], np.int64)[which]

    def _running_lines(self, threads: Int64s, moments: Int64s, inner: Int64s, own: Int64s) -> Int64s:
        """The line of each user frame that was running: the one that makes the call on the way to the innermost frame.

        An operator is no call. Its line lies between those of the calls before and after it in the same function; the
        smaller is taken, because a loop may lie between them.
        """
        line = self._lines[self._child_towards(own, inner)]
        alone = np.flatnonzero((own != NONE) & (inner == own))
        if not len(alone) or self._frames is None:
            return line
        latest = _latest(self._frames, threads[alone], moments[alone])
        before = self._lines[self._child_towards(own[alone], latest)]
        follower = np.minimum(latest + 1, len(self._parents) - 2)
        after = np.where(self._parents[follower] == own[alone], self._lines[follower], NONE)
        both = np.minimum(before, after)
        line[alone] = np.where(both != NONE, both, np.maximum(before, after))
        return line

    def _child_towards(self, above: Int64s, below: Int64s) -> Int64s:
        """The call that `above` makes on the way down to `below`; NONE if there is none."""
        row = below.copy()
        while True:
            climbing = np.flatnonzero((row != NONE) & (row != above) & (self._parents[row] != above))
            if not len(climbing):
                break
            row[climbing] = self._parents[row[climbing]]
        return np.where((row == above) | (above == NONE), NONE, row)


def _calling_lines(trace: Trace, lines: pl.DataFrame) -> Int64s:
    """For each row of `python`, the calling line in the file of its parent; NONE where it is not known.

    torch's trace names the first line of the function that is called. The file of a second pass has the calling lines,
    by the moment at which the call began. Calls that begin at the same nanosecond are told apart by their order, if
    they are as many.
    """
    if not len(lines):
        return np.full(len(trace.python), NONE, np.int64)
    start = trace.python.start_ns + int(trace.facts.get("epoch_ns", "0"))
    row = last_match(_numbered(lines["start_ns"].to_numpy()), _numbered(start))
    return np.append(lines["line"].to_numpy(), NONE)[row]


def _numbered(moments: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The moments, the position of each among equal ones, and how many are equal."""
    _, which, count = np.unique(moments, return_inverse=True, return_counts=True)
    order = np.argsort(which, kind="stable")
    position = np.empty(len(moments), np.int64)
    position[order] = np.arange(len(moments)) - np.searchsorted(which[order], which[order])
    return moments, position, count[which]


def _with_line(name: str, line: int, line_is: LineIs) -> str:
    """A frame's name with another line, and a mark of what it is."""
    return _LINE.sub(f"({_MARKS[line_is]}{line}): ", name, count=1)


def _latest(frames: Nest, threads: Int64s, moments: Int64s) -> Int64s:
    """The last frame that began on that thread by that moment; NONE if there is none."""
    result = np.full(len(moments), NONE, np.int64)
    for thread in np.unique(threads):
        mine = threads == thread
        first, beyond = np.searchsorted(frames.lanes, [thread, thread + 1])
        at = first + np.searchsorted(frames.starts[first:beyond], moments[mine], side="right") - 1
        result[mine] = np.where(at >= first, at, NONE)
    return result


class _Twin:
    """The moments of a trace in a second recording of the same program."""

    def __init__(self, trace: Trace, other: Trace) -> None:
        ops, others = trace.ops, other.ops
        partner = same_ops(OpOrder.of_trace(trace), OpOrder.of_trace(other))
        self.matched_share = float((partner != NONE).mean()) if len(partner) else 0.0
        known = np.flatnonzero(partner != NONE)
        mine, theirs = ops[known], others[partner[known]]
        place = np.full(len(ops) + 1, NONE, np.int64)
        place[known] = np.arange(len(known))
        self._nest = Nest(mine.thread, mine.start_ns, mine.end_ns, place[mine.parent], mine.depth)
        self._begin, self._to = np.append(theirs.start_ns, NONE), np.append(theirs.thread, NONE)
        outer = np.flatnonzero(mine.depth == 0)
        self._outer = {lane: _Outer(mine[rows], theirs[rows]) for lane, rows in grouped(outer, mine.thread[outer])}

    def moments(self, threads: Int64s, moments: Int64s) -> tuple[Int64s, Int64s]:
        """Threads and moments in the other recording; NONE where nothing corresponds."""
        inside = self._nest.innermost(threads, moments)
        to, when = self._to[inside], self._begin[inside]
        outside = np.flatnonzero(inside == NONE)
        for lane, mine in grouped(outside, threads[outside]):
            if lane in self._outer:
                to[mine], when[mine] = self._outer[lane].between(moments[mine])
        return to, when


class _Outer(Struct, frozen=True):
    """Outermost ops of a thread, in order, here and in the other recording."""

    here: Ops
    there: Ops

    def between(self, moments: Int64s) -> tuple[Int64s, Int64s]:
        """The same share of the time between the op before and the op after each moment."""
        here, there = self.here, self.there
        after = np.searchsorted(here.start_ns, moments, side="right")
        inner = (after > 0) & (after < len(here))
        if not inner.any():
            return np.full(len(moments), NONE, np.int64), np.full(len(moments), NONE, np.int64)
        at = np.clip(after, 1, len(here) - 1)
        ended, resumed = there.end_ns[at - 1], there.start_ns[at]
        length = np.maximum(here.start_ns[at] - here.end_ns[at - 1], 1)
        share = np.clip((moments - here.end_ns[at - 1]) / length, 0.0, 1.0)
        follows = inner & (resumed >= ended) & (there.thread[at] == there.thread[at - 1])
        when = ended + (share * (resumed - ended)).astype(np.int64)
        return np.where(follows, there.thread[at], NONE), np.where(follows, when, NONE)


def with_sites(table: pl.DataFrame) -> pl.DataFrame:
    """The table with its `frame` column (text) replaced by file, line, function, and what the line is."""
    places = [Site.parse(frame) if frame is not None else None for frame in table["frame"]]
    return table.with_columns(
        pl.Series("file", [site.file if site else None for site in places], dtype=pl.String),
        pl.Series("line", [site.line if site else None for site in places], dtype=pl.Int64),
        pl.Series("function", [site.function if site else None for site in places], dtype=pl.String),
        pl.Series("line_is", [site.line_is if site else None for site in places], dtype=pl.String),
    ).drop("frame")


def site_of(row: Mapping[str, Any]) -> Site | None:
    """The place in a row of such a table; None without one."""
    return Site(row["file"], row["line"], row["function"], row["line_is"]) if row["file"] else None


def second_pass_health(trace: Trace) -> list[HealthEntry]:
    """Notes on the second pass beside a trace; none without one."""
    if trace.companions is None:
        return []
    frames = trace.once(UserFrames)  # reads the second pass: only then is known what is wrong with it
    if (beside := trace.companions.execution_trace) is not None and len(trace.dataflow):
        message = f"Which tensor comes from which op is known from {beside.name}, of the same process."
        return [HealthEntry("execution-trace", "info", message)]
    if trace.companions.problem:
        missing = "source lines" if beside is None else "tensor dependencies"
        return [HealthEntry("second-look-damaged", "warning", f"There are no {missing}: {trace.companions.problem}.")]
    share = frames.matched_share
    if not frames.borrowed or share >= LEAST_MATCHED:
        return []
    message = (
        f"The steps with Python frames ran other ops than the recorded ones: source lines and data flow are known for "
        f"{100 * share:.0f} % of the ops."
    )
    return [HealthEntry("second-look-differs", "info", message)]
