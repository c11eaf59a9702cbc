"""Threads as tracks: API calls, ops, ranges and Python frames."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from warpline import api_names
from warpline.analyses.op_calls import on_one_line
from warpline.reports.page.contract import EventKind, Inputs, Track, TrackKind
from warpline.reports.page.names import Names
from warpline.reports.page.rows import Pack, Rows, numbered
from warpline.sanitise import sanitise
from warpline.trace.arrays import NONE, Int64s, integers
from warpline.trace.trace import Trace

MODULE = "nn.Module: "
_API_KINDS: tuple[tuple[re.Pattern[str], EventKind], ...] = (
    (re.compile(api_names.LAUNCH), "launch"),
    (re.compile(f"{api_names.DEVICE_WAIT}|{api_names.STREAM_WAIT}|{api_names.EVENT_WAIT}"), "wait"),
    (re.compile(f"{api_names.COPY}|{api_names.MEMSET}"), "api_copy"),
    (re.compile(f"{api_names.ALLOCATION}|{api_names.FREE}|{api_names.EMPTY_CACHE_FREE}"), "allocate"),
)


class HostTracks:
    """Adds the tracks of all threads; remembers where ops and calls went, for links."""

    def __init__(self, trace: Trace, pack: Pack, names: Names) -> None:
        self._trace, self._pack, self._names = trace, pack, names
        self.inputs: list[Inputs] = []

    def threads(self) -> list[str]:
        """A label for each row of `threads`."""
        rows = self._trace.stored("threads").select("name", "tid").iter_rows()
        named = (
            name if name and not name.isdecimal() else f"thread {tid}" if tid is not None else "thread"
            for name, tid in rows
        )
        return list(map(sanitise, named))

    def add_ops(self) -> Int64s:
        """Ops, each linked with the forward op that it differentiates."""
        ops = self._trace.stored("ops")
        names = numbered(ops, ["name"], lambda name: self._names.number(name, "op"))
        inputs = numbered(ops, ["shapes", "dtypes", "module"], self._inputs)
        forward = integers(ops["forward_op"])
        first = self._pack.count
        place = self._add("ops", ops, names, integers(ops["depth"], 0), inputs, np.full(len(ops), NONE))
        if (forward != NONE).any():
            links = np.where(forward != NONE, np.append(place, NONE)[forward], NONE)
            self._pack.relink(place - first, links)
        return place

    def add_api(self, ops: Int64s) -> Int64s:
        """API calls, each linked with the op around it."""
        api = self._trace.stored("api")
        names = numbered(api, ["name"], lambda name: self._names.number(name, _api_kind(name)))
        return self._add("api", api, names, links=np.append(ops, NONE)[integers(api["op_id"])])

    def add_ranges(self) -> None:
        """Ranges of the threads; those that were never closed have no end, and are left out."""
        ranges = self._trace.stored("ranges").filter(
            pl.col("thread").is_not_null(), pl.col("end_ns").is_not_null(), pl.col("style").cast(pl.String) != "gpu"
        )
        self._add("ranges", ranges, numbered(ranges, ["name"], lambda name: self._names.number(name, "range")))

    def add_python(self) -> None:
        """Python frames."""
        python = self._trace.stored("python")

        def number(name: str) -> int:
            return self._names.number(name, "module" if name.startswith(MODULE) else "python")

        self._add("python", python, numbered(python, ["name"], number), integers(python["depth"], 0))

    def _add(
        self,
        kind: TrackKind,
        frame: pl.DataFrame,
        names: Int64s,
        depth: Int64s | None = None,
        arguments: Int64s | None = None,
        links: Int64s | None = None,
    ) -> Int64s:
        thread = integers(frame["thread"], 0)
        found = np.unique(thread)
        rows = Rows(
            np.searchsorted(found, thread),
            integers(frame["start_ns"]),
            integers(frame["end_ns"]),
            names,
            depth,
            arguments,
            links,
        )
        label = self._api_label() if kind == "api" else kind
        return self._pack.add([Track(kind, label, 0, [], thread=number) for number in found.tolist()], rows)

    def _api_label(self) -> str:
        names = self._trace.stored("api")["name"].unique().cast(pl.String)
        return "HIP API" if names.str.starts_with("hip").any() else "CUDA API"

    def _inputs(self, shapes: str | None, dtypes: str | None, module: str | None) -> int:
        if not (shapes or dtypes or module):
            return 0
        recorded = on_one_line(shapes or ""), on_one_line(dtypes or ""), module or ""
        self.inputs.append(Inputs(*map(sanitise, recorded)))
        return len(self.inputs)


def _api_kind(name: str) -> EventKind:
    return next((kind for pattern, kind in _API_KINDS if pattern.search(name)), "api")
