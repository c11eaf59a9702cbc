"""Loads and copies data in the background while the device computes."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from warpline.analyses.idle.gaps import loading_spans
from warpline.analyses.idle.host_activity import LOADING
from warpline.analyses.user_frames import Site
from warpline.fixes.claim import Claim, Place
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Advice, Fix, Rule
from warpline.fixes.step_contents import MAX_LEFT, StepContents
from warpline.fixes.words import in_function, listed
from warpline.library_names import LIBRARY_FRAME
from warpline.replay.costs import shares
from warpline.replay.costs.cost import OPTIMISTIC, PESSIMISTIC
from warpline.replay.graph_edit import NOTHING, GraphEdit
from warpline.replay.patterns.copies import copies_of, unblock
from warpline.replay.patterns.loading import hand_over, has_workers
from warpline.replay.whatif import Prediction
from warpline.trace.arrays import integers
from warpline.trace.names import named_like
from warpline.trace.trace import Trace
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
SHORT_NAME = r"^<built-in (?:function|method) (\w+).*$|^.*\(\d+\): (.*)$"
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
    edit.may_do_nothing |= loads_already
    loading = 0.0 if case == PESSIMISTIC and loads_already else hand_over(edit, case)
    if case != OPTIMISTIC:
        # A separate stream does not help a copy that blocks its thread.
        pinned = copies[labelled.work_text("source_memory")[copies] != "Pageable"]
        copies = NOTHING if loading > edit.graph.duration[copies].sum() / labelled.step_count else pinned
    if len(copies):
        if case != PESSIMISTIC:
            unblock(edit, copies, case, keep_waiting=False)
        edit.detach(copies, keep_causes=False)
    return int((labelled.input_share > 0).sum()) + len(copies)


def slow_input(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """The device waits while the program loads its data."""
    waited = evidence.bare_idle_ns["input"]
    if waited < MIN_STEP_SHARE * evidence.step_ns or evidence.recorded_steps < MIN_STEPS:
        return None
    loading = _loading(evidence)
    names = loading.group_by("label").agg(pl.col("time").sum()).sort("time", "label", descending=[True, False])
    names = names.filter(pl.col("time") >= LISTED_SHARE * pl.col("time").sum())
    among = f" ({listed(names['label'].head(LISTED))})" if len(names) else ""
    places = _places(evidence, loading)
    average = ", on average," if evidence.question.replay.is_average else ""
    return Claim(
        f"The GPU is idle for {duration(waited)} of {evidence.noun.one('each')}{average} while the program loads "
        f"data{among}.",
        places,
        f"{_now(evidence.trace, loading, places)}{_with_workers(evidence)} {LOAD_IN_BACKGROUND}",
    )


def _now(trace: Trace, loading: pl.DataFrame, places: tuple[Place, ...]) -> str:
    """Describes the current loader."""
    iterators = _within(trace.stored("ranges"), trace)["name"].cast(pl.String)
    if iterators.str.contains("_SingleProcessDataLoaderIter").any():
        reading = _own_function(trace, loading)
        inside = f", most of it in {reading}" if reading else ""
        return f"The DataLoader has no workers: it loads in the loop's own process{inside}. "
    if iterators.str.contains("_MultiProcessingDataLoaderIter").any():
        return "The DataLoader has too few workers, or they are too slow: add workers or make each sample cheaper. "
    return f"{places[0].op} blocks the loop{in_function(places[0].spot)}. " if len(loading) else ""


def _with_workers(evidence: Evidence) -> str:
    """Workers that the prediction assumes, workers that would hide all loading, and the cost left in the loop."""
    trial = evidence.trial(FIX.name)
    workers = 1 / shares.LOADER_SHARE.expected
    needed = math.ceil(workers * trial.floor_ns / trial.unbounded_ns)
    enough = "which hide all loading" if needed <= workers else f"which load a batch in {duration(trial.floor_ns)}"
    more = "" if needed <= workers else f"; about {needed} would hide all loading"
    taken = duration(evidence.labelled.host.worker_tensor.expected)
    return (
        f"The prediction assumes {workers:.0f} workers, {enough}{more}. "
        f"Receiving a tensor from a worker costs the loop {taken}, or less with pin_memory=True."
    )


def _own_function(trace: Trace, loading: pl.DataFrame) -> str | None:
    """The user's function that takes the most time during loading."""
    own = (
        trace.stored("python")
        .filter(~trace.python.name.like(LIBRARY_FRAME))
        .select(pl.col("name").cast(pl.String), pl.col("thread", "start_ns", "end_ns").cast(pl.Int64))
    )
    spans = loading.select("thread", "start_ns", begun="start_ns", until="end_ns").sort("start_ns")
    during = own.sort("start_ns").join_asof(spans, on="start_ns", by="thread", check_sortedness=False)
    called = _outermost(during.filter(pl.col("start_ns") > pl.col("begun"), pl.col("end_ns") <= pl.col("until")))
    by_name = called.group_by("name").agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("time"))
    site = Site.parse(by_name.sort("time", "name", descending=[True, False])["name"][0]) if len(by_name) else None
    return f"{site.function} ({site.file}:{site.line})" if site else None


def _loading(evidence: Evidence) -> pl.DataFrame:
    """Loading in the window: outermost ops, ranges and frames named so, else the frames in gaps before uploads."""
    trace = evidence.trace
    columns = ("name", "thread", "start_ns", "end_ns")
    ranges = trace.stored("ranges").filter(pl.col("thread").is_not_null(), pl.col("end_ns").is_not_null())
    # A thread that launches nothing loads beside the loop, or sleeps.
    own = pl.col("thread").is_in(evidence.labelled.host_time.launching)
    told = [
        named_like(part, LOADING).filter(own).select(columns)
        for part in (trace.stored("ops"), ranges, trace.stored("python"))
    ]
    rows = pl.concat(
        [
            part.select(pl.col("name").cast(pl.String), pl.col("thread", "start_ns", "end_ns").cast(pl.Int64))
            for part in told
        ]
    )
    rows, silences = _outermost(_within(rows, trace)), _silences(evidence)
    # A lock or a short read does not explain loading that happens elsewhere.
    rows = rows if _total_ns(rows) >= _total_ns(silences) / 2 else silences
    name = pl.col("name")
    short = pl.coalesce(name.str.extract(SHORT_NAME, 1), name.str.extract(SHORT_NAME, 2), name)
    label = pl.when(name.str.contains(LOADER)).then(pl.lit("DataLoader")).otherwise(short)
    return rows.with_columns(label=label, time=pl.col("end_ns") - pl.col("start_ns"))


def _total_ns(rows: pl.DataFrame) -> int:
    return int((rows["end_ns"] - rows["start_ns"]).sum())


def _within(rows: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    window = trace.window
    return rows.filter(pl.col("start_ns").is_between(window.start_ns, window.end_ns))


def _outermost(rows: pl.DataFrame) -> pl.DataFrame:
    rows = rows.sort("thread", "start_ns", "end_ns", descending=[False, False, True])
    before = pl.col("end_ns").cum_max().shift(1).over("thread")
    return rows.filter(before.is_null() | (pl.col("start_ns") >= before))


def _silences(evidence: Evidence) -> pl.DataFrame:
    """Time before an upload, labelled with the user's function that runs at its midpoint; empty without frames."""
    trace = evidence.trace
    found = [
        pl.DataFrame({"thread": np.full(len(spans), thread), "start_ns": spans.starts, "end_ns": spans.ends})
        for thread, spans in loading_spans(evidence.labelled.host_time).items()
    ]
    rows = _within(pl.concat(found), trace) if found and evidence.user_frames.exist else None
    if rows is None or not len(rows):
        return pl.DataFrame(schema={"name": pl.String, "thread": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64})
    middle = (integers(rows["start_ns"]) + integers(rows["end_ns"])) // 2
    names = evidence.user_frames.names(evidence.user_frames.at(integers(rows["thread"]), middle))
    return rows.with_columns(name=names.fill_null("Python"))


def _places(evidence: Evidence, loading: pl.DataFrame) -> tuple[Place, ...]:
    """Where data is loaded; without ranges and frames, where it is copied to the device."""
    if not len(loading):
        return evidence.places(evidence.labelled.work_text("copy_kind") == "HtoD")
    middle = (integers(loading["start_ns"]) + integers(loading["end_ns"])) // 2
    weight = loading["time"].cast(pl.Float64).to_numpy()
    return evidence.places_at(loading["label"], integers(loading["thread"]), middle, weight)


def copy_not_overlapped(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Copies on the compute stream that could overlap with kernels."""
    copies = evidence.changed(FIX.name).moved
    time = evidence.exposed_per_step(copies)
    waited = evidence.bare_idle_ns["input"]
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
)
