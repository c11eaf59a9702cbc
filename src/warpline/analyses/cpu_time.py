"""Where the CPU's time goes, for traces without GPU work: by op, Python frame, sleep and wait, per step.

One thread is looked at: the one with the steps, or with the most ops. Each moment of its steps belongs to the innermost
event that is open then (an op inside a frame inside a range), so that the parts sum exactly to the time. A moment with
no event is a gap, named after the event that follows: without Python stacks, a sleep is such a gap.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from msgspec import Struct, to_builtins

from warpline.analyses.user_frames import Site
from warpline.library_names import LIBRARY_FRAME, PROFILER_FRAME
from warpline.trace.arrays import NONE, Bools, Int64s, ids, integers
from warpline.trace.names import matches
from warpline.trace.nesting import clock_tick_ns, nearest_marked, nest, order_for_nesting
from warpline.trace.trace import Trace
from warpline.units import duration, share

Kind = Literal["sleep", "input", "wait", "op", "python", "call", "profiler", "gap"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MEANING: dict[Kind, str] = {
    "sleep": "the program sleeps",
    "input": "data is loaded",
    "wait": "a lock, another thread or another process is awaited",
    "op": "framework ops",
    "python": "Python code",
    "call": "CUDA and operating-system calls",
    "profiler": "the profiler itself",
    "gap": "nothing is recorded: the program's own code, sleeps and I/O",
}
SLEEP = r"built-in (function|method) (\w+\.)*sleep\b|^time\.sleep|^(u|nano|clock_nano)?sleep$"
WAIT = (
    r"built-in (function|method) [^>]*\b(acquire|poll|select|recv\w*|wait|join|lock|waitpid|get_nowait)\b"
    r"|threading\.py\(\d+\): (_?wait|join|acquire)|^queue\.py\(|multiprocessing/(connection|queues|synchronize)"
    r"|^(p?poll|p?select|epoll_p?wait|sem_\w*wait|pthread_cond_\w*wait|pthread_mutex_lock|futex|wait\w*)$|^(gloo|mpi):"
)
INPUT = (
    r"(?i)dataloader|torch/utils/data/|built-in (function|method) [^>]*\b(read\w*|open)\b|imread|PIL/"
    r"|^p?read\w*$|^fread$"
)
PROFILER = rf"{PROFILER_FRAME}|^ProfilerStep|^profiler::"
SHOWN_BY = {
    "nsys": "Record with nsys profile --trace=cuda,nvtx,osrt, and with NVTX ranges around your code,",
    "kineto": "Record with with_stack=True",
}
"""How the profiler that was used records what the program does between its ops and calls."""
MIN_SHARE = 0.005
"""Smaller parts are summed as one row per kind."""
MIN_NAMED_SHARE = 0.05
"""Parts named in the sentence."""
NAMED_PARTS = 3


class CpuPart(Struct, frozen=True):
    """One op, frame, wait or gap, with its own time: what runs inside it is not counted."""

    kind: Kind
    name: str
    file: str | None
    """The user's file that leads to it, where Python stacks were recorded."""
    line: int | None
    """First line of that function."""
    self_ns: int
    count: int

    @property
    def spot(self) -> str:
        """`train.py:12`; empty without stacks."""
        return f"{self.file}:{self.line}" if self.file else ""


class CpuTime(Struct, frozen=True):
    """The time of one thread during the steps in view; the parts sum to `window_ns`."""

    thread: str
    window_ns: int
    steps: int
    """Number of steps; 1 if none were found, and the whole recording counts as one."""
    has_steps: bool
    parts: tuple[CpuPart, ...]
    """The longest first."""
    source: str = "kineto"

    @property
    def step_ns(self) -> float:
        """Time per step."""
        return self.window_ns / self.steps

    @property
    def kinds(self) -> dict[Kind, int]:
        """Time of each kind."""
        return {kind: sum(part.self_ns for part in self.parts if part.kind == kind) for kind in KINDS}

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        named = [part for part in self.parts if part.self_ns >= MIN_NAMED_SHARE * self.window_ns][:NAMED_PARTS]
        parts = [
            f"{duration(part.self_ns / self.steps)} ({share(part.self_ns, self.window_ns)}) "
            f"{_what(part)}{f' in {part.spot}' if part.spot else ''}"
            for part in named
        ]
        whole = f"each {duration(self.step_ns)} step" if self.has_steps else f"{duration(self.window_ns)} on the CPU"
        if not parts:
            return f"No part takes {100 * MIN_NAMED_SHARE:.0f} % of {whole}: the time is spread over many ops."
        unseen = any(part.kind == "gap" for part in named)
        shown_by = SHOWN_BY.get(self.source, "Record Python stacks, or ranges around your code,")
        hint = f" {shown_by} to see what runs where nothing is recorded." if unseen else ""
        return f"Of {whole}: {'; '.join(parts)}.{hint}"

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON."""
        return {
            "thread": self.thread,
            "window_ns": self.window_ns,
            "steps": self.steps if self.has_steps else 0,
            "sentence": self.sentence,
            "kinds": {f"{kind}_ns": length for kind, length in self.kinds.items()},
            "parts": [to_builtins(part) for part in self.parts],
        }


def _what(part: CpuPart) -> str:
    words = {
        "sleep": "asleep",
        "input": f"loading data ({part.name})",
        "wait": f"waiting ({part.name})",
        "gap": f"with nothing recorded {part.name}",
    }
    return words.get(part.kind, part.name)


def cpu_time(trace: Trace) -> CpuTime | None:
    """Where the time of the steps' thread goes; None if the trace has GPU work, or nothing on the CPU."""
    if len(trace.gpu):
        return None
    thread = _thread(trace)
    if thread is None:
        return None
    events = thread_events(trace).filter(pl.col("thread") == thread).drop("thread").cast({"name": pl.String})
    if not len(events):
        return None
    starts, ends = integers(events["start_ns"]), integers(events["end_ns"])
    all_steps = trace.steps_in_view.stored
    steps = all_steps.filter(_any_inside(all_steps, starts, ends))
    # What is recorded beside the steps says nothing about them.
    steps = steps if len(steps) or not len(all_steps) else all_steps
    windows = (
        [(int(start), int(end)) for start, end in steps.select("start_ns", "end_ns").sort("start_ns").iter_rows()]
        if len(steps)
        else [(int(starts.min()), int(ends.max()))]
    )
    order = order_for_nesting(np.zeros_like(starts), starts, ends)
    events, starts, ends = events[order], starts[order], ends[order]
    tree = nest(np.zeros_like(starts), starts, ends, clock_tick_ns(starts, ends))
    begins, lengths = segments(starts, ends, windows)
    owners = tree.innermost(np.zeros_like(begins), begins)
    parts = _parts(_described(events, tree.parents), _gaps(events, starts, begins), owners, lengths)
    window_ns = int(lengths.sum())
    return CpuTime(
        thread=str(trace.stored("threads")["name"][thread] or trace.stored("threads")["tid"][thread]).removeprefix(
            "thread "
        ),
        window_ns=window_ns,
        steps=max(len(steps), 1),
        has_steps=len(steps) > 0,
        parts=_listed(parts, window_ns),
        source=trace.source,
    )


def _any_inside(steps: pl.DataFrame, starts: Int64s, ends: Int64s) -> pl.Series:
    """Which steps have an event of the thread in them."""
    begun = np.searchsorted(np.sort(starts), integers(steps["end_ns"]))
    over = np.searchsorted(np.sort(ends), integers(steps["start_ns"]), side="right")
    return pl.Series(begun > over, dtype=pl.Boolean)


def _thread(trace: Trace) -> int | None:
    """The thread on which the steps lie, if anything else does; else the one with the most ops, frames or calls."""
    marked = trace.steps_in_view.stored["thread"].drop_nulls()
    for name in ("ops", "python", "api", "osrt", "ranges"):
        counted = trace.stored(name)["thread"].drop_nulls().value_counts(sort=True)
        if len(counted):
            owner = int(marked.mode()[0]) if len(marked) else NONE
            return owner if owner in counted["thread"] else int(counted["thread"][0])
    return None


def thread_events(trace: Trace) -> pl.DataFrame:
    """Ops, frames, ranges and calls of all threads: origin, name, thread, start and end."""
    ranges = trace.stored("ranges").filter(~trace.ranges.name.like("^ProfilerStep")).drop_nulls("name")
    stored = {"op": "ops", "python": "python", "call": "api", "os": "osrt"}
    tables = {origin: trace.stored(name) for origin, name in stored.items()} | {"range": ranges}
    parts = [
        table.filter(pl.col("thread").is_not_null(), pl.col("end_ns").is_not_null()).select(
            pl.lit(origin).alias("origin"), "name", "thread", "start_ns", "end_ns"
        )
        for origin, table in tables.items()
    ]
    return pl.concat(parts)


def segments(starts: Int64s, ends: Int64s, windows: list[tuple[int, int]]) -> tuple[Int64s, Int64s]:
    """The stretches between any two neighbouring begins or ends within the windows: where each begins, and its length.

    Windows that overlap count once.
    """
    begins, lengths, past = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], -(1 << 62)
    # np.unique (NumPy 2.4) hashes, which takes 50 times as long as sorting.
    edges = np.sort(np.concatenate([starts, ends]))
    edges = edges[np.append(edges[1:] != edges[:-1], True)[: len(edges)]]
    for first, end in windows:
        begin = max(first, past)
        if end <= begin:
            continue
        inner = edges[np.searchsorted(edges, begin, side="right") : np.searchsorted(edges, end)]
        cuts = np.concatenate([[begin], inner, [end]])
        begins.append(cuts[:-1])
        lengths.append(np.diff(cuts))
        past = end
    return np.concatenate(begins), np.concatenate(lengths)


def _described(events: pl.DataFrame, parents: Int64s) -> pl.DataFrame:
    """Each event's kind, name, and the user's frame that leads to it."""
    names, origin = events["name"], events["origin"]
    sleeping, waiting, loading, profiling = (_like(names, pattern) for pattern in (SLEEP, WAIT, INPUT, PROFILER))
    frames = (origin == "python").to_numpy()
    below_loading = nearest_marked(parents, loading & ((origin != "op").to_numpy())) != NONE
    below_profiler = nearest_marked(parents, profiling) != NONE
    kind = np.select(
        [below_profiler, sleeping, below_loading, waiting, (origin == "op").to_numpy(), _is_call(origin)],
        ["profiler", "sleep", "input", "wait", "op", "call"],
        "python",
    )
    own = frames & ~_like(names, LIBRARY_FRAME)
    around = ids(nearest_marked(parents, own))
    return pl.DataFrame({"kind": kind, "name": _short(names), "frame": names.gather(around)})


def _like(names: pl.Series, pattern: str) -> Bools:
    found: Bools = matches(names.cast(pl.Categorical), pattern).to_numpy()
    return found


def _is_call(origin: pl.Series) -> Bools:
    found: Bools = origin.is_in(["call", "os"]).to_numpy()
    return found


def _short(names: pl.Series) -> pl.Series:
    """`sleep` for `<built-in function sleep>`; other names as recorded."""
    built_in = names.str.extract(r"^<built-in (?:function|method) ([\w.]+)")
    return built_in.fill_null(names)


def _gaps(events: pl.DataFrame, starts: Int64s, begins: Int64s) -> pl.Series:
    """For each segment, the event that begins next."""
    following = np.searchsorted(starts, begins, side="right")
    following[following == len(starts)] = NONE
    return ("before " + events["name"].gather(ids(following))).fill_null("after the last event")


def _parts(described: pl.DataFrame, gaps: pl.Series, owners: Int64s, lengths: Int64s) -> list[CpuPart]:
    """Segments summed by kind, name and the user's frame."""
    rows = ids(owners)
    table = pl.DataFrame(
        {
            "kind": described["kind"].gather(rows).fill_null("gap"),
            "name": described["name"].gather(rows).fill_null(gaps),
            "frame": described["frame"].gather(rows),
            # An event may have several segments; each gap is one.
            "occurrence": np.where(owners == NONE, -1 - np.arange(len(owners)), owners),
            "self_ns": lengths,
        }
    )
    counted = table.group_by("kind", "name", "frame").agg(
        pl.col("self_ns").sum(), pl.col("occurrence").n_unique().alias("count")
    )
    found = []
    ordered = counted.sort("self_ns", "name", "kind", "frame", descending=[True, False, False, False])
    for kind, name, frame, self_ns, count in ordered.iter_rows():
        site = Site.parse(frame) if frame else None
        found.append(
            CpuPart(kind, name, site.file if site else None, site.line if site else None, int(self_ns), int(count))
        )
    return found


def _listed(parts: list[CpuPart], window_ns: int) -> tuple[CpuPart, ...]:
    """The larger parts, and the rest of each kind as one."""
    large = [part for part in parts if part.self_ns >= MIN_SHARE * window_ns]
    for kind in KINDS:
        small = [part for part in parts if part.kind == kind and part.self_ns < MIN_SHARE * window_ns]
        if small:
            rest = sum(part.self_ns for part in small), sum(part.count for part in small)
            large.append(CpuPart(kind, f"{len(small)} smaller" if len(small) > 1 else small[0].name, None, None, *rest))
    return tuple(sorted(large, key=lambda part: -part.self_ns))
