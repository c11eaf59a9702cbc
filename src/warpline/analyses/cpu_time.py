"""Where the CPU's time goes, for traces without GPU work: by op, Python frame, sleep and wait, per step.

The steps are those of one thread: the one on which they lie, or with the most ops. Each moment belongs to the innermost
event that is open then (an op inside a frame inside a range), so that the parts sum exactly to the time. Where the
thread shows nothing of its own (a gap, a wait, the inside of a range) and another thread runs ops, communicates or runs
Python, as autograd, gloo and threads that prepare data do, the moment is theirs, in this order. A moment with no event
is a gap, named after the event that follows: without Python stacks, a sleep is such a gap.
"""

from __future__ import annotations

import re
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from msgspec import Struct, to_builtins
from msgspec.structs import asdict

from warpline.analyses.thread_events import CALL, FRAME, OP, OS_CALL, RANGE, ThreadEvents, thread_events
from warpline.analyses.user_frames import LineIs, Site, UserFrames, site_of
from warpline.capture.run_folder import recorded_entry
from warpline.intervals import intersection, union
from warpline.library_names import OPTIMIZER_STEP, PROFILER_FRAME
from warpline.trace.arrays import NONE, Bools, Int64s, Texts, most_frequent
from warpline.trace.nesting import nearest_marked
from warpline.trace.trace import Trace
from warpline.units import duration, share

CpuKind = Literal["sleep", "input", "wait", "comm", "op", "framework", "python", "range", "call", "profiler", "gap"]
KINDS: tuple[CpuKind, ...] = get_args(CpuKind)
EMPTY: tuple[CpuKind, ...] = ("wait", "framework", "range", "gap")
"""Kinds of time in which a thread shows nothing of its own: other threads may say what it waits for."""
THEIRS: tuple[CpuKind, ...] = ("op", "comm", "input", "python")
"""What other threads do then, the likelier reason first; where they wait too, nobody is asked."""
MEANING: dict[CpuKind, str] = {
    "sleep": "the program sleeps",
    "input": "data is loaded",
    "wait": "a lock, another thread or another process is awaited",
    "comm": "communication with other ranks, and waiting for them",
    "op": "framework ops",
    "framework": "the framework's own code between ops",
    "python": "Python code",
    "range": "inside a marked range, with nothing else recorded",
    "call": "CUDA and operating-system calls",
    "profiler": "the profiler itself",
    "gap": "nothing is recorded: the program's own code, sleeps and I/O",
}
SLEEP = r"built-in (function|method) (\w+\.)*sleep\b|^time\.sleep|^(u|nano|clock_nano)?sleep$"
WAIT = (
    r"built-in (function|method) [^>]*\b(acquire|poll|select|recv\w*|wait|join|lock|waitpid|get_nowait)\b"
    r"|threading\.py\(\d+\): (_?wait|join|acquire)|^queue\.py\(|multiprocessing/(connection|queues|synchronize)"
    r"|^(p?poll|p?select|epoll_p?wait|sem_\w*wait|pthread_cond_\w*wait|pthread_mutex_lock|futex|wait\w*)$"
)
AUTOGRAD = r"built-in method run_backward\b"
"""The call of the autograd engine, which runs ops on this thread or waits for those on others."""
COMM = r"^(gloo|mpi|nccl|ucc|xccl|hccl|c10d):|^record_param_comms$"
INPUT = (
    r"(?i)dataloader|torch/utils/data/|built-in (function|method) [^>]*\b(read\w*|open)\b|imread|PIL/"
    r"|^p?read\w*$|^fread$"
)
LOADER_WITH_WORKERS = r"_MultiProcessingDataLoaderIter\.__next__"
"""The range that torch records around the next batch of a DataLoader with workers."""
NEW_ITERATOR = "aten::random_"
"""A DataLoader draws a seed when an iterator of it is made: at every epoch, also where its workers stay."""
NEW_WORKERS = "new DataLoader workers, until their first batch"
WORKERS_START_NS = 1_000_000
"""Starting a process and its Python takes longer, and all else between two batches of a loop without ops shorter."""
PROFILER = rf"{PROFILER_FRAME}|^ProfilerStep|^profiler::"
SHOWN_BY = {
    "nsys": "Record with nsys profile --trace=cuda,nvtx,osrt, and with NVTX ranges around your code,",
    "kineto": "Record with with_stack=True",
    "run": "Record with warpline run --stacks",
}
"""How the profiler that was used records what the program does between its ops and calls."""
MIN_SHARE = 0.005
"""Smaller parts are summed as one row per kind."""
MIN_NAMED_SHARE = 0.05
"""Parts named in the sentence."""
NAMED_PARTS = 3
_BUILT_IN = re.compile(r"<built-in (?:function|method) ([\w.]+)")


class CpuPart(Struct, frozen=True):
    """One op, frame, wait or gap, with its own time: what runs inside it is not counted."""

    kind: CpuKind
    name: str
    self_ns: int
    count: int
    file: str | None = None
    """The user's file that leads to it, where Python stacks were recorded."""
    line: int | None = None
    function: str | None = None
    line_is: LineIs | None = None
    elsewhere: bool = False
    """Whether other threads do it, while the one that is looked at shows nothing of its own."""
    summed: int = 1
    """Number of parts that this row is the sum of: the small ones of a kind are one row."""
    usual_ns: int = 0
    """The same time if each op took the median of those with its name, line and input sizes, which do the same work: on
    a busy machine other programs interrupt some of them for much longer. Of other kinds nothing says what is usual."""

    @property
    def spot(self) -> str:
        """The place as text after "in"; empty without stacks."""
        site = site_of(asdict(self))
        return site.spot if site else ""


class CpuTime(Struct, frozen=True):
    """The time of one thread during the steps in view; the parts sum to `window_ns`."""

    thread: str
    window_ns: int
    steps: int
    """Number of steps; 1 if none were found, and the whole recording counts as one."""
    has_steps: bool
    parts: tuple[CpuPart, ...]
    """The longest first; then the sums of small ones."""
    source: str = "kineto"
    optimizer_ns: int = 0
    """Time inside optimizer.step(), whatever runs there."""

    @property
    def step_ns(self) -> float:
        """Time per step."""
        return self.window_ns / self.steps

    @property
    def kinds(self) -> dict[CpuKind, int]:
        """Time of each kind."""
        return {kind: sum(part.self_ns for part in self.parts if part.kind == kind) for kind in KINDS}

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        large = [part for part in self.parts if part.self_ns >= MIN_NAMED_SHARE * self.window_ns]
        named = [part for part in large if part.summed == 1][:NAMED_PARTS]
        parts = [
            f"{duration(part.self_ns / self.steps)} ({share(part.self_ns, self.window_ns)}) {_what(part)}"
            for part in named
        ]
        whole = f"each {duration(self.step_ns)} step" if self.has_steps else f"{duration(self.window_ns)} on the CPU"
        if not parts:
            return f"No part takes {100 * MIN_NAMED_SHARE:.0f} % of {whole}: the time is spread over many ops."
        unseen = any(part.kind == "gap" and not part.spot for part in named)
        hint = f" {shown_by(self.source)} to see what runs where nothing is recorded." if unseen else ""
        return f"Of {whole}: {'; '.join(parts)}.{hint}"

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON."""
        return {
            "thread": self.thread,
            "window_ns": self.window_ns,
            "steps": self.steps if self.has_steps else 0,
            "sentence": self.sentence,
            "optimizer_ns": self.optimizer_ns,
            "kinds": {f"{kind}_ns": length for kind, length in self.kinds.items()},
            "parts": [to_builtins(part) for part in self.parts],
        }


def shown_by(source: str) -> str:
    """How to record what a program does between its ops and calls: the start of a sentence."""
    return SHOWN_BY.get(source, "Record Python stacks, or ranges around your code,")


def _what(part: CpuPart) -> str:
    if part.elsewhere:
        return f"{part.name} on other threads"
    place = f" in {part.spot}" if part.spot else ""
    match part.kind:
        case "sleep":
            return f"asleep{place}"
        case "input":
            return f"loading data ({part.name}){place}"
        case "wait":
            return f"waiting ({part.name}){place}"
        case "range":
            return f"inside {part.name}{place}, with nothing else recorded"
        case "gap":
            return f"outside ops{place}" if place else f"with nothing recorded {part.name}"
    return f"{part.name}{place}"


def cpu_time(trace: Trace) -> CpuTime | None:
    """Where the time of the steps' thread goes; None if the trace has GPU work, or nothing on the CPU."""
    if len(trace.gpu):
        return None
    program = CpuProgram(trace)
    events = program.events
    steps = _steps(trace, events)
    if not len(events) and not steps:
        return None
    windows = steps or [(int(events.start_ns.min()), int(events.end_ns.max()))]
    found = program.segments(windows)
    window_ns = int(found.length_ns.sum())
    name, tid = trace.threads.name[program.thread], trace.threads.tid[program.thread]
    return CpuTime(
        thread=str(name or tid).removeprefix("thread "),
        window_ns=window_ns,
        steps=max(len(steps), 1),
        has_steps=len(steps) > 0,
        parts=_listed(_parts(found, np.append(trace.ops.shapes.codes, NONE)[found.op]), window_ns),
        source="run" if recorded_entry(trace.file) else trace.source,
        optimizer_ns=_time_inside(events[events.name.like(OPTIMIZER_STEP)], windows),
    )


def _time_inside(events: ThreadEvents, windows: list[tuple[int, int]]) -> int:
    """The time of the windows in which one of the events is open."""
    starts, ends = (np.array(edges, np.int64) for edges in zip(*windows, strict=True))
    return intersection(union(events.start_ns, events.end_ns), union(starts, ends)).total_ns()


class CpuSegments(Struct, frozen=True):
    """The time of some windows in segments, each of one event or gap; their lengths sum to the windows."""

    start_ns: Int64s
    length_ns: Int64s
    kind: Texts
    name: Texts
    event: Int64s
    """Equal numbers are one event; each gap has a number of its own, which is negative."""
    op: Int64s
    """Row of the table of ops; NONE for everything else."""
    site: Texts
    """The user's line, as text for `Site.parse`; None where it is unknown."""
    elsewhere: Bools
    """Whether another thread does it, while the one that is looked at shows nothing of its own."""

    def __getitem__(self, rows: Int64s | Bools) -> CpuSegments:
        return CpuSegments(*(getattr(self, name)[rows] for name in self.__struct_fields__))


class CpuProgram:
    """What the threads of a program without GPU work do, seen from the one on which its steps lie."""

    def __init__(self, trace: Trace) -> None:
        self.thread = _thread(trace)
        everything = thread_events(trace)
        mine = everything.thread == self.thread
        self.events = everything[mine].in_order()
        others = everything[~mine]
        self._others = others[others.kind.equal(OP, FRAME) | others.name.like(COMM)].in_order()
        self._frames = trace.once(UserFrames)

    def segments(self, windows: list[tuple[int, int]]) -> CpuSegments:
        """The time of the windows, by start."""
        events, thread = self.events, self.thread
        tree = events.nested()
        begins, lengths = segments(events.start_ns, events.end_ns, windows)
        owners = tree.innermost(np.full_like(begins, thread), begins)
        kinds = _kinds(events, tree.parents)[owners]
        # A gap is where its middle is, in a marked range too: it begins and ends in the calls around it.
        is_gap = np.append(events.kind.equal(RANGE), True)[owners]
        moments = np.where(is_gap, begins + lengths // 2, begins)
        # A gap is named after the event that follows.
        starting = self._start_workers(kinds, moments, lengths)
        following = np.searchsorted(events.start_ns, begins, side="right")
        following[following == len(events)] = NONE
        gaps = "before " + events.name.at(following).series()
        names = events.name.renamed(_short).at(owners).series().fill_null(gaps).fill_null("after the last event")
        kinds = np.where(starting, "input", kinds)
        theirs = self._elsewhere(begins, lengths, np.isin(kinds, EMPTY))
        taken_ns = np.zeros_like(lengths)
        np.add.at(taken_ns, np.searchsorted(begins, theirs.start_ns, side="right") - 1, theirs.length_ns)
        own = CpuSegments(
            begins,
            lengths - taken_ns,
            kinds,
            np.where(starting, NEW_WORKERS, np.array(names.to_list(), object)),
            # The inside of a range falls into pieces, as what lies between ops outside one does.
            np.where(is_gap, -1 - np.arange(len(owners)), owners),
            _op_rows(events, owners),
            self._frames.sites(np.full_like(moments, thread), moments),
            np.zeros(len(begins), bool),
        )
        both = CpuSegments(
            *(np.concatenate([getattr(one, name) for one in (own, theirs)]) for name in own.__struct_fields__)
        )
        both = both[both.length_ns > 0]
        return both[np.argsort(both.start_ns, kind="stable")]

    def _start_workers(self, kinds: Texts, moments: Int64s, lengths: Int64s) -> Bools:
        """Segments in which a DataLoader starts its workers anew, and waits for their first batch: between one batch
        and the next a new iterator is made, which takes as long as starting a process."""
        events, starting = self.events, np.zeros(len(moments), bool)
        batches = events[events.name.like(LOADER_WITH_WORKERS)]
        seeds = events.start_ns[events.name.equal(NEW_ITERATOR)]
        for end, start, first in zip(batches.end_ns, batches.start_ns[1:], batches.end_ns[1:], strict=False):
            between = (moments >= end) & (moments < start) & np.isin(kinds, ("gap", "range"))
            if ((seeds >= end) & (seeds < start)).any() and (lengths[between] >= WORKERS_START_NS).any():
                starting |= between | ((moments >= start) & (moments < first) & (kinds == "input"))
        return starting

    def _elsewhere(self, begins: Int64s, lengths: Int64s, empty: Bools) -> CpuSegments:
        """What other threads do in segments in which this one shows nothing of its own."""
        events = self._others
        tree = events.nested()
        kinds = _kinds(events, tree.parents)
        ranks = np.select([kinds == kind for kind in THEIRS], range(len(THEIRS)), len(THEIRS))
        windows = list(zip(begins[empty].tolist(), (begins + lengths)[empty].tolist(), strict=True))
        moments, times = segments(events.start_ns, events.end_ns, windows)
        chosen = np.full(len(moments), NONE)
        for thread in np.unique(events.thread):
            here = tree.innermost(np.full_like(moments, thread), moments)
            chosen = np.where(ranks[here] < ranks[chosen], here, chosen)
        taken = chosen != NONE
        which = chosen[taken]
        return CpuSegments(
            moments[taken],
            times[taken],
            kinds[which],
            np.array(events.name.renamed(_short).at(which).series().to_list(), object),
            len(self.events) + which,
            _op_rows(events, which),
            np.full(len(which), None, object),
            np.ones(len(which), bool),
        )


def _op_rows(events: ThreadEvents, which: Int64s) -> Int64s:
    rows = np.append(np.where(events.kind.equal(OP), events.row, NONE), NONE)
    return rows[which]


def _steps(trace: Trace, events: ThreadEvents) -> list[tuple[int, int]]:
    """The steps in view in which the thread has an event; all of them if none has: what is recorded beside the steps
    says nothing about them."""
    steps = trace.steps_in_view
    begun = np.searchsorted(np.sort(events.start_ns), steps.end_ns)
    over = np.searchsorted(np.sort(events.end_ns), steps.start_ns, side="right")
    if (begun > over).any():
        steps = steps[begun > over]
    return sorted(zip(steps.start_ns.tolist(), steps.end_ns.tolist(), strict=True))


def _thread(trace: Trace) -> int:
    """The thread on which the steps lie, if anything else does; else the one with the most ops, frames or calls."""
    marked = most_frequent(trace.steps_in_view.thread)
    for table in (trace.ops, trace.python, trace.api, trace.osrt, trace.ranges):
        if (table.thread != NONE).any():
            return marked if marked in table.thread else most_frequent(table.thread)
    return marked


def segments(starts: Int64s, ends: Int64s, windows: list[tuple[int, int]]) -> tuple[Int64s, Int64s]:
    """The segments between any two neighbouring starts or ends within the windows: where each begins, and its length.

    Windows that overlap count once.
    """
    begins, lengths, past = [starts[:0]], [starts[:0]], -(1 << 62)
    # np.unique (NumPy 2.4) hashes, which takes 30 times as long as sorting.
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


def _kinds(events: ThreadEvents, parents: Int64s) -> Texts:
    """The kind of each event, and one more for none: a gap."""
    names, is_op = events.name, events.kind.equal(OP)
    below_loading = nearest_marked(parents, names.like(INPUT) & ~is_op) != NONE
    below_profiler = nearest_marked(parents, names.like(PROFILER)) != NONE
    is_call, is_range = events.kind.equal(CALL, OS_CALL), events.kind.equal(RANGE)
    is_wait, is_comm = names.like(WAIT), names.like(COMM)
    calls_ops = np.zeros(len(parents), bool)
    calls_ops[parents[is_op & (parents != NONE)]] = True
    # A built-in that calls ops is the framework's: its own time is what calling them costs, not Python's.
    is_framework = names.like("^<built-in ") & (calls_ops | names.like(AUTOGRAD))
    found = np.select(
        [below_profiler, names.like(SLEEP), below_loading, is_wait, is_comm, is_op, is_call, is_range, is_framework],
        ["profiler", "sleep", "input", "wait", "comm", "op", "call", "range", "framework"],
        "python",
    )
    return np.append(found, "gap").astype(object)


def _short(name: str) -> str:
    """`sleep` for `<built-in function sleep>`; other names as recorded."""
    built_in = _BUILT_IN.match(name)
    return built_in[1] if built_in else name


def _parts(found: CpuSegments, sizes: Int64s) -> list[CpuPart]:
    """Segments summed by kind, name and place in the user's code; `sizes` is a code for the sizes of the inputs."""
    table = pl.DataFrame(
        {
            "kind": found.kind.tolist(),
            "name": found.name.tolist(),
            "elsewhere": found.elsewhere,
            "frame": found.site.tolist(),
            "sizes": sizes,
            "event": found.event,
            "self_ns": found.length_ns,
        },
        schema_overrides={"kind": pl.String, "name": pl.String, "frame": pl.String},
    )
    part = ["kind", "name", "elsewhere", "frame"]
    each = table.group_by(*part, "sizes", "event").agg(pl.col("self_ns").sum())
    is_known = (pl.col("kind") == "op") & (pl.col("sizes") != NONE)
    usual = pl.when(is_known.first()).then(pl.col("self_ns").median() * pl.len()).otherwise(pl.col("self_ns").sum())
    usual = pl.min_horizontal(usual, pl.col("self_ns").sum())  # a few that were short are no more usual
    alike = each.group_by(*part, "sizes").agg(pl.col("self_ns").sum(), pl.len().alias("count"), usual.alias("usual_ns"))
    counted = alike.group_by(part).agg(pl.col("self_ns").sum(), pl.col("count").sum(), pl.col("usual_ns").sum())
    ordered = counted.sort("self_ns", "name", "kind", "frame", descending=[True, False, False, False])
    parts = []
    for kind, name, elsewhere, frame, self_ns, count, usual_ns in ordered.iter_rows():
        place = asdict(site) if frame and (site := Site.parse(frame)) else {}
        parts.append(CpuPart(kind, name, self_ns, count, elsewhere=elsewhere, usual_ns=round(usual_ns), **place))
    return parts


def _listed(parts: list[CpuPart], window_ns: int) -> tuple[CpuPart, ...]:
    """The larger parts, and the rest of each kind as one."""
    large = sorted((part for part in parts if part.self_ns >= MIN_SHARE * window_ns), key=lambda part: -part.self_ns)
    rests = []
    for kind in KINDS:
        small = [part for part in parts if part.kind == kind and part.self_ns < MIN_SHARE * window_ns]
        if small:
            name = f"{len(small)} smaller" if len(small) > 1 else small[0].name
            self_ns, count = sum(part.self_ns for part in small), sum(part.count for part in small)
            elsewhere = all(part.elsewhere for part in small)
            usual_ns = sum(part.usual_ns for part in small)
            rest = CpuPart(kind, name, self_ns, count, elsewhere=elsewhere, summed=len(small), usual_ns=usual_ns)
            rests.append(rest)
    return (*large, *sorted(rests, key=lambda part: -part.self_ns))
