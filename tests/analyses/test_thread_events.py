"""Ops, frames, ranges and calls of a thread as one list that nests."""

from __future__ import annotations

from pathlib import Path

from kineto_files import AUTOGRAD, annotation, call, frame, op, write

from warpline.analyses.thread_events import thread_events
from warpline.trace.arrays import NONE
from warpline.trace.open import open_trace


def test_events_of_all_tables_are_one_tree_per_thread(tmp_path: Path) -> None:
    events = [
        annotation("ProfilerStep#0", 0, 100),
        annotation("forward", 10, 60),
        frame("train.py(3): step", 5, 90, 1, None),
        op("aten::mm", 20, 30),
        call("cudaLaunchKernel", 30, 5, 1),
        op("backward", 20, 30, thread=AUTOGRAD),
    ]
    found = thread_events(open_trace(write(tmp_path, events), cache=False)).in_order()
    tree = found.nested()
    around = {
        found.name.text(row): None if parent == NONE else found.name.text(int(parent))
        for row, parent in enumerate(tree.parents)
    }
    assert around == {
        "train.py(3): step": None,
        "forward": "train.py(3): step",
        "aten::mm": "forward",
        "cudaLaunchKernel": "aten::mm",
        "backward": None,
    }
    assert found.kind.texts.tolist() == ["python", "range", "op", "call", "op"]
