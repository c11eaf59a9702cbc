"""The device waits while the program gets its data."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from warpline.analyses.gaps import loading_spans
from warpline.analyses.host_activity import LOADING
from warpline.analyses.where import LIBRARY, Site, frame_names
from warpline.findings.evidence import Evidence
from warpline.findings.model import Place
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import in_function, listed
from warpline.replay.costs import constants
from warpline.replay.whatif import Prediction
from warpline.trace.columns import integers
from warpline.trace.names import matches, named
from warpline.trace.trace import Trace
from warpline.units import duration

LEAST_SHARE = 0.03
LEAST_STEPS = 1
"""A step is repeated, so there is another to load beside; a trace without steps may run once."""
LISTED = 3
LISTED_SHARE = 0.1
"""How many names a claim lists, and the share of loading that each must have."""
LOADER = r"(?i)dataloader"
SHORT_NAME = r"^<built-in (?:function|method) (\w+).*$|^.*\(\d+\): (.*)$"
"""What a Python frame runs: `<built-in function sleep>`, `torch/utils/data/dataloader.py(733): __next__`."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    waited = evidence.idle["input"] / evidence.steps
    if waited < LEAST_SHARE * evidence.step_ns or evidence.recorded_steps < LEAST_STEPS:
        return None
    loading = _loading(evidence)
    names = loading.group_by("label").agg(pl.col("time").sum()).sort("time", "label", descending=[True, False])
    names = names.filter(pl.col("time") >= LISTED_SHARE * pl.col("time").sum())
    among = f" ({listed(names['label'].head(LISTED))})" if len(names) else ""
    places = _places(evidence, loading)
    return Claim(
        f"The GPU is idle for {duration(waited)} of each step while the program gets its data{among}.",
        places,
        f"{_now(evidence.trace, loading, places)}{_with_workers(evidence)} {RULE.how}",
    )


def _now(trace: Trace, loading: pl.DataFrame, places: tuple[Place, ...]) -> str:
    """What is known of the loader as it is."""
    iterators = _within(trace.ranges, trace)["name"].cast(pl.String)
    if iterators.str.contains("_SingleProcessDataLoaderIter").any():
        reading = _own_function(trace, loading)
        inside = f", most of it in {reading}" if reading else ""
        return f"The DataLoader has no workers: it loads in the loop's own process{inside}. "
    if iterators.str.contains("_MultiProcessingDataLoaderIter").any():
        return "The DataLoader's workers are too few or too slow: more of them, or less work a sample. "
    return f"Now {places[0].op} holds the loop{in_function(places[0].spot)}. " if len(loading) else ""


def _with_workers(evidence: Evidence) -> str:
    """On how many workers the prediction counts, how many would hide all loading, and what stays in the loop."""
    trial = evidence.question.trial(RULE.fix)
    workers = constants.LOADER_WORKERS.expected
    needed = math.ceil(workers * trial.floor_ns / trial.unbounded_ns)
    enough = "which hide it" if needed <= workers else f"which make a batch in {duration(trial.floor_ns)}"
    more = "" if needed <= workers else f"; about {needed} would hide all loading"
    taken = duration(constants.TAKEN_TENSOR_NS.expected)
    return (
        f"The prediction counts on {workers:.0f} workers, {enough}{more}. "
        f"Taking a tensor from a worker costs the loop {taken}, and less where pin_memory lets a thread do it."
    )


def _own_function(trace: Trace, loading: pl.DataFrame) -> str | None:
    """The function of the program's own, called while it loads, that takes the most time."""
    own = trace.python.filter(~matches(trace.python["name"], LIBRARY)).select(
        pl.col("name").cast(pl.String), pl.col("thread", "start_ns", "end_ns").cast(pl.Int64)
    )
    spans = loading.select("thread", "start_ns", begun="start_ns", until="end_ns").sort("start_ns")
    during = own.sort("start_ns").join_asof(spans, on="start_ns", by="thread", check_sortedness=False)
    called = _outermost(during.filter(pl.col("start_ns") > pl.col("begun"), pl.col("end_ns") <= pl.col("until")))
    by_name = called.group_by("name").agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("time"))
    site = Site.parse(by_name.sort("time", "name", descending=[True, False])["name"][0]) if len(by_name) else None
    return f"{site.function} ({site.file}:{site.line})" if site else None


def _loading(evidence: Evidence) -> pl.DataFrame:
    """What gets data in the window: outermost ops, ranges and frames that say so, else what frames show of silences."""
    trace = evidence.trace
    columns = ("name", "thread", "start_ns", "end_ns")
    ranges = trace.ranges.filter(pl.col("thread").is_not_null(), pl.col("end_ns").is_not_null())
    told = [part.filter(named(LOADING)).select(columns) for part in (trace.ops, ranges, trace.python)]
    rows = pl.concat(
        [
            part.select(pl.col("name").cast(pl.String), pl.col("thread", "start_ns", "end_ns").cast(pl.Int64))
            for part in told
        ]
    )
    rows, silences = _outermost(_within(rows, trace)), _silences(evidence)
    # A lock or a short read does not explain loading that is elsewhere.
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
    """The time before an upload, by the program's own function that runs in the middle of it; none without frames."""
    trace = evidence.trace
    found = [
        pl.DataFrame({"thread": np.full(len(spans), thread), "start_ns": spans.starts, "end_ns": spans.ends})
        for thread, spans in loading_spans(evidence.scene.host_time).items()
    ]
    rows = _within(pl.concat(found), trace) if found and len(trace.python) else None
    if rows is None or not len(rows):
        return pl.DataFrame(schema={"name": pl.String, "thread": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64})
    middle = (integers(rows["start_ns"]) + integers(rows["end_ns"])) // 2
    names = frame_names(trace, evidence.user_frames.at(integers(rows["thread"]), middle))
    return rows.with_columns(name=names.fill_null("Python"))


def _places(evidence: Evidence, loading: pl.DataFrame) -> tuple[Place, ...]:
    """Where data is loaded; without ranges and frames, where it is copied to the device."""
    if not len(loading):
        return evidence.places(evidence.scene.work_text("copy_kind") == "HtoD")
    middle = (integers(loading["start_ns"]) + integers(loading["end_ns"])) // 2
    weight = loading["time"].cast(pl.Float64).to_numpy()
    return evidence.places_at(loading["label"], integers(loading["thread"]), middle, weight)


RULE = Rule(
    name="slow_input",
    cause="input",
    fix="prefetch",
    how=(
        "Load in the background: DataLoader(dataset, batch_size=…, num_workers=8, pin_memory=True, prefetch_factor=4, "
        "persistent_workers=True); move sleeps, file reads, decoding and augmentation out of the loop into "
        "Dataset.__getitem__."
    ),
    look=look,
)
