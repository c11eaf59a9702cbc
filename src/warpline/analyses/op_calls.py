"""The calls of a trace's ops as the work models take them, each distinct one judged once."""

from __future__ import annotations

import json
from functools import cache

import polars as pl

from warpline.trace.trace import Trace
from warpline.work import Launch, OpCall, Work, call_from_kineto, why_no_work, work_of


class OpCalls:
    """Ops by row, and the work of each distinct call, found once."""

    def __init__(self, trace: Trace) -> None:
        texts = [pl.col(name).cast(pl.String) for name in ("name", "shapes", "dtypes", "strides", "concrete")]
        columns = trace.ops.select(*texts, "parent")
        self._texts = {name: columns[name].to_list() for name in columns.columns}
        self._known: dict[object, Work | None] = {}

    def text(self, op: int) -> tuple[str, str, str]:
        """Name, shapes and types as recorded."""
        return self._texts["name"][op] or "", _compact(self._texts["shapes"][op]), _compact(self._texts["dtypes"][op])

    def ancestors(self, op: int) -> list[int]:
        """Ops around it, the nearest first."""
        found: list[int] = []
        parent = self._texts["parent"][op]
        while parent is not None and len(found) < 64:
            found.append(parent)
            parent = self._texts["parent"][parent]
        return found

    def work(self, op: int, launches: tuple[Launch, ...]) -> Work | None:
        """The work of a call; launches matter only where the arguments hide something."""
        key = (*self._key(op), launches if "TensorList" in (self._texts["dtypes"][op] or "") else ())
        if key not in self._known:
            self._known[key] = work_of(self._call(op, launches))
        return self._known[key]

    def why(self, op: int, launches: tuple[Launch, ...]) -> str:
        """Why a call has no work."""
        if not (self._texts["dtypes"][op] or "").strip("[]"):
            return "the trace has no shapes: record with record_shapes=True"
        return why_no_work(self._call(op, launches))

    def _key(self, op: int) -> tuple[object, ...]:
        own = tuple(self._texts[key][op] for key in ("name", "shapes", "dtypes", "strides", "concrete"))
        parent = self._texts["parent"][op]
        return (*own, self._texts["shapes"][parent] if parent is not None else None)

    def _call(self, op: int, launches: tuple[Launch, ...], depth: int = 1) -> OpCall:
        parent = self._texts["parent"][op]
        around = self._call(parent, (), depth - 1) if depth and parent is not None else None
        texts = [self._texts[key][op] for key in ("name", "shapes", "dtypes", "strides", "concrete")]
        return call_from_kineto(texts[0] or "", *texts[1:], launches=launches, parent=around)


@cache
def _compact(text: str | None) -> str:
    """JSON on one line, however the file was indented."""
    try:
        return json.dumps(json.loads(text), separators=(", ", ": ")) if text else ""
    except ValueError:
        return text or ""
