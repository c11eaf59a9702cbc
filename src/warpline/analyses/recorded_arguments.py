"""The arguments of events, which Kineto writes into its file and the trace leaves there."""

from __future__ import annotations

from typing import Any

from warpline.errors import WarplineError
from warpline.sources.kineto.arguments import read_arguments
from warpline.trace.arrays import Int64s
from warpline.trace.table import filled
from warpline.trace.trace import Trace


def recorded_arguments(trace: Trace, offsets: Int64s, lengths: Int64s) -> list[dict[str, Any]]:
    """The arguments at these places of the trace's file (`args_offset` and `args_length` of its tables).

    Empty where nothing is recorded: other profilers write none, and the file of a cached trace may be deleted.
    """
    if trace.source != "kineto" or not len(offsets):
        return [{}] * len(offsets)
    try:
        return read_arguments(trace.file, offsets.tolist(), filled(lengths, 0).tolist())
    except WarplineError:
        return [{}] * len(offsets)
