"""An execution trace of torch (Chakra) beside a torch.profiler trace of the same run: the tensors that each op took and
made.

It is what `ExecutionTraceObserver` writes. Up to version 1.0.1, a node has its facts beside its name, not in `attrs`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from warpline.capture.second_pass_file import flow_of_nodes, nodes_of
from warpline.errors import UnreadableFile
from warpline.library_names import PROFILER_STEP
from warpline.sources.detect import detect
from warpline.sources.kinds import EXECUTION_TRACE
from warpline.sources.second_pass import DAMAGE, MOST_BYTES, dataflow_rows
from warpline.sources.unpack import Unpacked

NAMED_SO = re.compile(r"(^|[._-])(et|eg|execution[._-]?(trace|graph))([._-]|$)", re.IGNORECASE)
"""How people call such a file: `et.json`, `resnet_et.json.gz`, `dlrm_eg_0.json`, `rank0.execution_trace.json`."""
PROCESS = re.compile(rb'"pid"\s*:\s*(\d+)')
MOST_FILES = 16
"""Files of a folder that are looked into."""
STEP = re.compile(PROFILER_STEP)
FACTS = ("rf_id", "scope", "tid", "op_schema")


def execution_trace_beside(trace: Path, processes: Collection[int]) -> Path | None:
    """The execution trace of one of these processes in a trace's folder, by its name and its content."""
    try:
        names = sorted(entry.name for entry in trace.parent.iterdir() if NAMED_SO.search(entry.name))
    except OSError:
        return None
    files = (trace.with_name(name) for name in names if name != trace.name)
    return next((file for file in islice(files, MOST_FILES) if _is_of(file, processes)), None)


def _is_of(file: Path, processes: Collection[int]) -> bool:
    if not is_execution_trace(file):
        return False
    found = PROCESS.search(next(iter(Unpacked(file)), b""))
    return found is not None and int(found[1]) in processes


def is_execution_trace(file: Path) -> bool:
    """Whether a file is one, by its name and its content."""
    try:
        return NAMED_SO.search(file.name) is not None and file.is_file() and detect(file) is EXECUTION_TRACE
    except UnreadableFile:
        return False


def read_execution_trace(file: Path, step_names: Collection[str]) -> pl.DataFrame:
    """Rows of the `dataflow` table. Ranges of these names start a step; without any, all calls are of one step."""
    try:
        unpacked = Unpacked(file, limit_bytes=MOST_BYTES)
        text = b"".join(unpacked).decode("utf-8", errors="replace")
        rows = dataflow_rows(
            flow_of_nodes(_in_one_form(text), lambda name: name in step_names or bool(STEP.match(name)))
        )
    except DAMAGE as error:
        raise UnreadableFile(
            "bad-execution-trace", f"{file.name} cannot be read: {error}", "record again, or move that file away"
        ) from error
    return rows if (rows["step"] >= 0).any() else rows.with_columns(step=pl.lit(0, pl.Int32))


def _in_one_form(text: str) -> Iterator[dict[str, Any]]:
    """The nodes in the form of today."""
    for node in nodes_of(text):
        if "attrs" in node:
            yield node
            continue
        sides = {
            side: {"values": node[side], "shapes": node[f"{side[:-1]}_shapes"], "types": node[f"{side[:-1]}_types"]}
            for side in ("inputs", "outputs")
        }
        facts = [{"name": name, "value": node.get(name)} for name in FACTS]
        yield {"id": node["id"], "name": node["name"], "ctrl_deps": node["parent"], "attrs": facts, **sides}
