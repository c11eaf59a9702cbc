"""Tables of data flow, written by hand: calls with the tensors that they take and make."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from warpline.trace.schema import conform


@dataclass
class Flow:
    """Calls in order; a tensor is named by its storage, or by (storage, offset, elements)."""

    device: str = "cuda:0"
    rows: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0

    def call(self, op: str, *, parent: int | None = None, step: int = 0, shape: str = "[8]", **accesses: Any) -> int:
        """Add a call with lists of tensors by access (`read=[1]`, `make=[2]`); its number."""
        common = {"step": step, "call": self.calls, "op": op, "lane": 1, "parent": parent}
        rows = []
        for access, tensors in accesses.items():
            for tensor in tensors:
                storage, offset, elements = tensor if isinstance(tensor, tuple) else (tensor, 0, 8)
                rows.append(
                    {
                        **common,
                        "direction": "out" if access in {"make", "view"} else "in",
                        "argument": len(rows),
                        "access": access,
                        "tensor": storage,
                        "storage": storage,
                        "offset": offset,
                        "extent": elements,
                        "elements": elements,
                        "item_bytes": 4,
                        "shape": shape,
                        "dtype": "float",
                        "device": self.device,
                    }
                )
        self.rows += rows or [common]
        self.calls += 1
        return self.calls - 1

    def table(self) -> pl.DataFrame:
        """The `dataflow` table."""
        return conform("dataflow", pl.DataFrame(self.rows, infer_schema_length=None))
