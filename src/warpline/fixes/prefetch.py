"""Loads and copies data in the background while the device computes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple

from warpline.analyses.idle.host_activity import LOADING
from warpline.analyses.user_frames import Site
from warpline.capture.trial.use import ProgramUse
from warpline.fixes.claim import Claim, Place
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import MAX_LEFT, StepContents
from warpline.fixes.tryable import TryableChange
from warpline.fixes.words import in_place, listed
from warpline.library_names import LIBRARY_FRAME
from warpline.replay.costs import shares
from warpline.replay.costs.cost import OPTIMISTIC, PESSIMISTIC
from warpline.replay.graph_edit import NOTHING, Effect, GraphEdit
from warpline.replay.patterns.copies import copies_of, unblock
from warpline.replay.patterns.loading import hand_over, has_workers, loader_limit
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import NONE, Bools, Int64s, Texts, grouped
from warpline.trace.table import Names
from warpline.trace.trace import Trace, Window
from warpline.units import count, duration

MIN_STEP_SHARE = 0.03
MIN_HIDDEN_SHARE = 0.1
"""Share of the step that loading or copies take before, for a prefetch to be recognised by what it hides."""
MIN_STEPS = 1
"""With steps there is a next batch to load; a trace without steps may run only once."""
LISTED = 3
LISTED_SHARE = 0.1
"""Names listed in a claim, and the share of the loading time that each must have."""
LOADER = r"(?i)dataloader"
SHORT_NAME = re.compile(r"^<built-in (?:function|method) (\w+).*$|^.*\(\d+\): (.*)$")
"""Function name in a Python frame: `<built-in function sleep>`, `torch/utils/data/dataloader.py(733): __next__`."""
LOAD_IN_BACKGROUND = (
    "Load in the background: DataLoader(dataset, batch_size=…, num_workers=8, pin_memory=True, prefetch_factor=4, "
    "persistent_workers=True); move sleeps, file reads, decoding and augmentation out of the loop into "
    "Dataset.__getitem__."
)


def apply(edit: GraphEdit, case: int) -> int:
    """Shrink input segments, which still bound the step from below, and move batch copies to their own stream."""
    labelled = edit.labelled
    copies = copies_of(labelled, "HtoD", edit)
    # Where workers load already, more of them may bring nothing: the host may have no core for them.
    loads_already = labelled.once(has_workers)
    if loads_already:
        edit.effect = Effect.DOUBTFUL
    loading = 0.0 if case == PESSIMISTIC and loads_already else hand_over(edit, case)
    if case != OPTIMISTIC:
        # A separate stream does not help a copy that blocks its thread.
        pinned = copies[~labelled.source_memory[copies].equal("Pageable")]
        copies = NOTHING if loading > edit.graph.duration[copies].sum() / labelled.step_count else pinned
    if len(copies):
        if case != PESSIMISTIC:
            unblock(edit, copies, case, keep_waiting=False)
        edit.detach(copies)
        edit.stop_following(copies)
    return int((labelled.input_share > 0).sum()) + len(copies)


class HostLoading(Struct, frozen=True):
    """Host time that loads data, and what runs there."""

    name: Texts
    thread: Int64s
    start_ns: Int64s
    end_ns: Int64s

    def __len__(self) -> int:
        return len(self.name)

    def __getitem__(self, rows: Int64s | Bools) -> HostLoading:
        return HostLoading(self.name[rows], self.thread[rows], self.start_ns[rows], self.end_ns[rows])

    @property
    def time_ns(self) -> Int64s:
        """How long each takes."""
        return self.end_ns - self.start_ns

    @property
    def labels(self) -> list[str]:
        """The name of each for a claim."""
        return [_label(name) for name in self.name]

    def within(self, window: Window) -> HostLoading:
        """What starts in the window."""
        return self[(self.start_ns >= window.start_ns) & (self.start_ns <= window.end_ns)]

    def outermost(self) -> HostLoading:
        """What lies in no other of the same thread."""
        ordered = self[np.lexsort((-self.end_ns, self.start_ns, self.thread))]
        is_outer = np.ones(len(ordered), bool)
        for _, rows in grouped(np.arange(len(ordered)), ordered.thread):
            reach = np.maximum.accumulate(ordered.end_ns[rows])
            is_outer[rows[1:]] = ordered.start_ns[rows[1:]] >= reach[:-1]
        return ordered[is_outer]


def _label(name: str) -> str:
    if re.search(LOADER, name):
        return "DataLoader"
    found = SHORT_NAME.search(name)
    return next((text for text in found.groups() if text is not None), name) if found else name


def slow_input(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """The device waits while the program loads its data."""
    waited = evidence.bare.idle_ns["input"]
    if waited < MIN_STEP_SHARE * evidence.step_ns or evidence.recorded_steps < MIN_STEPS:
        return None
    loading = _loading(evidence)
    time_ns = _time_by_name(loading.labels, loading)
    names = sorted((-length, label) for label, length in time_ns.items() if length >= LISTED_SHARE * time_ns.total())
    among = f" ({listed(label for _, label in names[:LISTED])})" if names else ""
    places = _places(evidence, loading)
    average = ", on average," if evidence.question.replay.is_average else ""
    return Claim(
        f"The GPU is idle for {duration(waited)} of {evidence.noun.one('each')}{average} while the program loads "
        f"data{among}.",
        places,
        f"{_now(evidence, loading, places)}{_with_workers(evidence)} {LOAD_IN_BACKGROUND}",
        effort="setting" if _loaders(evidence.trace).like(LOADER).any() else None,  # an argument of the DataLoader
    )


def _time_by_name(names: Iterable[str], loading: HostLoading) -> Counter[str]:
    time_ns = Counter[str]()
    for name, length in zip(names, loading.time_ns.tolist(), strict=True):
        time_ns[name] += length
    return time_ns


def _now(evidence: Evidence, loading: HostLoading, places: tuple[Place, ...]) -> str:
    """Describes the current loader."""
    iterators, work = _loaders(evidence.trace), evidence.labelled.loader_work
    if iterators.like("_SingleProcessDataLoaderIter").any():
        reading = _own_function(evidence.trace, loading)
        inside = f", most of it in {reading}" if reading else ""
        return f"The DataLoader has no workers: it loads in the loop's own process{inside}. "
    if iterators.like("_MultiProcessingDataLoaderIter").any():
        known = f"{loader_limit(work, evidence.step_ns)} " if work else ""
        return f"The DataLoader has too few workers, or they are too slow: more workers, or cheaper samples. {known}"
    return _blocking(places[0]) if len(loading) else ""


def _blocking(place: Place) -> str:
    """What loads, and where; a function of the user's is at its own place."""
    if place.op and place.op == place.function:
        return f"{place.spot} blocks the loop. "
    return f"{place.op} blocks the loop{in_place(place.spot)}. "


def _loaders(trace: Trace) -> Names:
    """The ranges of the window, among which are the iterators of DataLoaders."""
    ranges, window = trace.ranges, trace.window
    return ranges.name[(ranges.start_ns >= window.start_ns) & (ranges.start_ns <= window.end_ns)]


def _with_workers(evidence: Evidence) -> str:
    """Workers that the prediction assumes, workers that would hide all loading, and the cost left in the loop."""
    trial = evidence.trial(FIX.name)
    work = evidence.labelled.loader_work
    workers = max(1 / shares.LOADER_SHARE.expected, work.workers if work else 0)
    needed = math.ceil(workers * trial.floor_ns / trial.unbounded_ns)
    enough = "which hide all loading" if needed <= workers else f"which load a batch in {duration(trial.floor_ns)}"
    more = "" if needed <= workers else f"; about {needed} would hide all loading"
    taken = duration(evidence.labelled.host.worker_tensor.expected)
    return (
        f"The prediction assumes {workers:.0f} workers, {enough}{more}. "
        f"Receiving a tensor from a worker costs the loop {taken}, or less with pin_memory=True."
    )


def _own_function(trace: Trace, loading: HostLoading) -> str | None:
    """The user's function that takes the most time during loading."""
    own = trace.python[~trace.python.name.like(LIBRARY_FRAME)]
    during = np.zeros(len(own), bool)
    for thread, spans in grouped(np.arange(len(loading)), loading.thread):
        begun, until = loading.start_ns[spans], loading.end_ns[spans]  # by time
        frames = np.flatnonzero(own.thread == thread)
        span = np.searchsorted(begun, own.start_ns[frames], side="right") - 1
        inside = (own.start_ns[frames] > begun[span]) & (own.end_ns[frames] <= until[span])
        during[frames] = (span >= 0) & inside
    called = HostLoading(own.name.texts, own.thread, own.start_ns, own.end_ns)[during].outermost()
    time_ns = _time_by_name(called.name, called)
    longest = min(time_ns, key=lambda name: (-time_ns[name], name), default=None)
    site = Site.of_frame(longest) if longest else None
    return site.spot if site else None


def _loading(evidence: Evidence) -> HostLoading:
    """Loading in the window: outermost ops, ranges and frames named so, else the frames in gaps before uploads."""
    trace, found = evidence.trace, list[HostLoading]()
    for table in (trace.ops, trace.ranges, trace.python):
        # A thread that launches nothing loads beside the loop, or sleeps.
        launches = np.isin(table.thread, evidence.labelled.host_time.launching)
        rows = table[table.name.like(LOADING) & launches & (table.end_ns != NONE)]
        found.append(HostLoading(rows.name.texts, rows.thread, rows.start_ns, rows.end_ns))
    named = _joined(found).within(trace.window).outermost()
    before_uploads = _before_uploads(evidence)
    # A lock or a short read does not explain loading that happens elsewhere.
    return named if named.time_ns.sum() >= before_uploads.time_ns.sum() / 2 else before_uploads


def _joined(parts: list[HostLoading]) -> HostLoading:
    return HostLoading(*(np.concatenate(column) for column in zip(*map(astuple, parts), strict=True)))


def _before_uploads(evidence: Evidence) -> HostLoading:
    """Time before an upload, named after the user's function that runs at its midpoint; empty without frames."""
    if not evidence.user_frames.exist:
        return HostLoading(np.empty(0, object), *np.empty((3, 0), np.int64))
    spans = evidence.labelled.host_time.loading()
    frames = evidence.user_frames.at(spans.lanes, (spans.starts + spans.ends) // 2).tolist()
    names = np.array([evidence.user_frames.name(frame) or "Python" for frame in frames], object)
    return HostLoading(names, spans.lanes, spans.starts, spans.ends).within(evidence.trace.window)


def _places(evidence: Evidence, loading: HostLoading) -> tuple[Place, ...]:
    """Where data is loaded; without ranges and frames, where it is copied to the device."""
    if not len(loading):
        return evidence.places(evidence.labelled.copy_kind.equal("HtoD"))
    middle = (loading.start_ns + loading.end_ns) // 2
    return evidence.places_at(loading.labels, loading.thread, middle, loading.time_ns.astype(np.float64))


def copy_not_overlapped(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Copies on the compute stream that could overlap with kernels."""
    copies = evidence.changed(FIX.name).moved
    time = evidence.exposed_per_step(copies)
    waited = evidence.bare.idle_ns["input"]
    if time < MIN_STEP_SHARE * evidence.step_ns or waited > time or evidence.recorded_steps < MIN_STEPS:
        return None
    return Claim(
        f"Copies to the device run on the compute stream: {count(evidence.per_step(copies))} {evidence.noun.per}, "
        f"{duration(evidence.time_per_step(copies))}, of which {duration(time)} with no kernel running.",
        evidence.places(copies),
    )


def was_made(before: StepContents, after: StepContents) -> bool:
    """The same kernels and copies; what is hidden now is the loading, or the copies."""
    if before.kernels != after.kernels or set(before.copies) != set(after.copies):
        return False
    least = MIN_HIDDEN_SHARE * before.step_ns
    loading = before.idle_ns["input"] >= least and after.idle_ns["input"] <= MAX_LEFT * before.idle_ns["input"]
    return loading or (before.copy_ns >= least and after.copy_ns <= MAX_LEFT * before.copy_ns)


def why_not_tried(use: ProgramUse) -> str | None:
    """Where it would change nothing, or the data."""
    if not use.loaders:
        return "the program makes no DataLoader"
    if all(one.is_iterable and not one.workers for one in use.loaders):
        return "each worker would yield the whole IterableDataset"
    return "the loaders keep their workers already" if all(one.is_persistent for one in use.loaders) else None


FIX = Fix(
    name="prefetch",
    words="prefetching in the background",
    summary="Data is loaded and copied in the background while the device computes (workers, a copy stream).",
    assumptions=(
        (
            "Loading is detected by ranges and frames of a DataLoader, by sleeps and file reads, and by CPU time "
            "before a copy to the device."
        ),
        (
            "A step still takes at least as long as its loading divided among the workers: 7, in the best case 16, in "
            "the worst 2."
        ),
        "Where worker processes load already, more of them bring nothing in the worst case.",
        (
            "Receiving a tensor from a worker costs the loop 0.65 ms on the host of an H200, or 0.05 ms if a thread "
            "pins memory; more on a slower host."
        ),
        (
            "Batch copies overlap with kernels; if loading takes longer than copying, or from pageable "
            "memory, only in the best case."
        ),
    ),
    effort="few_lines",
    apply=apply,
    findings=(
        Rule(
            name="slow_input",
            cause="input",
            summary="the GPU waits while the loop loads data",
            look=slow_input,
            advice=Advice(
                pytorch=LOAD_IN_BACKGROUND,
                cuda=(
                    "Read and decode the next batch in another thread, into alternating pinned buffers, "
                    "while the device computes the current one."
                ),
                other="Load the next batches in background processes or threads (tf.data's prefetch, grain, DALI).",
                neutral="Read the next input in another thread while the device computes.",
            ),
        ),
        Rule(
            name="copy_not_overlapped",
            cause="transfer",
            summary="copies on the compute stream, with no kernel running",
            look=copy_not_overlapped,
            advice=Advice(
                pytorch=(
                    "Copy the next batch while this one computes: with torch.cuda.stream(copy_stream): next_batch = "
                    "batch.to('cuda', non_blocking=True) from pinned memory, and "
                    "torch.cuda.current_stream().wait_stream(copy_stream) before it is used."
                ),
                cuda=(
                    "Copy the next batch with cudaMemcpyAsync from pinned memory on a separate stream, and let "
                    "the compute stream wait for it with cudaStreamWaitEvent."
                ),
            ),
            most="medium",
        ),
    ),
    needs=("a step", "ranges, frames or CPU calls that show loading"),
    after=("coalesce_copies",),
    was_made=was_made,
    tried=(
        TryableChange(
            "prefetch",
            "more DataLoader workers, kept alive, each with four batches ahead",
            "DataLoader(…, num_workers=N, persistent_workers=True, prefetch_factor=4)",
            why_not_tried,
        ),
    ),
)
