"""The device waits while the program gets its data."""

from __future__ import annotations

import polars as pl

from warpline.findings.evidence import Evidence
from warpline.findings.model import Place
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import listed
from warpline.replay.scene import INPUT_FRAME, INPUT_RANGE
from warpline.replay.whatif import Prediction
from warpline.trace.link import integers
from warpline.trace.names import named
from warpline.units import duration

LEAST_SHARE = 0.03
LEAST_STEPS = 2
"""One step has no other to load beside."""
LISTED = 3
SHORT_NAME = r"^<built-in (?:function|method) (\w+).*$|^.*\(\d+\): (.*)$"
"""What a Python frame runs: `<built-in function sleep>`, `torch/utils/data/dataloader.py(733): __next__`."""


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    waited = evidence.idle["input"] / evidence.steps
    if waited < LEAST_SHARE * evidence.step_ns or evidence.steps < LEAST_STEPS:
        return None
    loading = _loading(evidence)
    names = loading.group_by("label").agg(pl.col("time").sum()).sort("time", "label", descending=[True, False])
    among = f" ({listed(names['label'].head(LISTED))})" if len(names) else ""
    return Claim(
        f"The GPU is idle for {duration(waited)} of each step while the program gets its data{among}.",
        _places(evidence, loading),
    )


def _loading(evidence: Evidence) -> pl.DataFrame:
    """Outermost ranges and Python frames of the window in which the program gets its data."""
    window, trace = evidence.trace.window, evidence.trace
    inside = pl.col("start_ns").is_between(window.start_ns, window.end_ns) & pl.col("end_ns").is_not_null()
    columns = ("name", "thread", "start_ns", "end_ns")
    ranges = trace.ranges.filter(inside, named(INPUT_RANGE), pl.col("thread").is_not_null()).select(columns)
    frames = trace.python.filter(inside, named(INPUT_FRAME)).select(columns)
    both = pl.concat([part.with_columns(pl.col("name").cast(pl.String)) for part in (ranges, frames)])
    both = both.with_columns(pl.col("thread", "start_ns", "end_ns").cast(pl.Int64)).sort(
        "thread", "start_ns", -pl.col("end_ns")
    )
    before = pl.col("end_ns").cum_max().shift(1).over("thread")
    outermost = both.filter(before.is_null() | (pl.col("start_ns") >= before))
    short = pl.coalesce(pl.col("name").str.extract(SHORT_NAME, 1), pl.col("name").str.extract(SHORT_NAME, 2), "name")
    return outermost.with_columns(label=short, time=pl.col("end_ns") - pl.col("start_ns"))


def _places(evidence: Evidence, loading: pl.DataFrame) -> tuple[Place, ...]:
    """Where data is loaded; without ranges and frames, where it is copied to the device."""
    if not len(loading):
        return evidence.places(evidence.scene.work_text("copy_kind") == "HtoD")
    moments = integers(loading["thread"]), integers(loading["start_ns"])
    return evidence.places_at(loading["label"], *moments, loading["time"].cast(pl.Float64).to_numpy())


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
