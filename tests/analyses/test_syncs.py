"""Synchronising calls are found by what they do, and pointed at the user's own line."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import call, copy, frame, kernel, launched, op, write

from warpline.analyses.syncs import sync_points
from warpline.analyses.user_frames import Site
from warpline.trace.open import open_trace


def test_each_place_is_one_row_with_its_line_and_blocked_time(tmp_path: Path) -> None:
    events = [
        frame("train.py(10): step", 0, 1000, 1, None),
        frame("torch/_tensor.py(5): item", 90, 100, 2, 1),
        frame("<built-in method item of Tensor object at 0x7f>", 95, 90, 3, 2),
        op("aten::item", 100, 60, external=1),
        op("aten::_local_scalar_dense", 102, 50, external=2),
        call("cudaMemcpyAsync", 104, 5, 1),
        copy("Memcpy DtoH (Device -> Pinned)", 108, 2, 1, 4),
        call("cudaStreamSynchronize", 110, 30, 2),
        call("cudaStreamSynchronize", 300, 20, 3),
        call("cudaMemcpyAsync", 400, 40, 4),
        copy("Memcpy HtoD (Pageable -> Device)", 420, 10, 4, 4096),
        call("cudaFree", 500, 15, 5),
        *launched("k", 600, 610, 5, 6),
        kernel("z", 700, 5, 7),
    ]
    trace = open_trace(write(tmp_path, events))
    rows = sync_points(trace).to_dicts()
    found = {(row["kind"], row["op"]): (row["count"], row["blocked_ns"], row["file"], row["line"]) for row in rows}
    assert found == {
        ("pageable copy", None): (1, 40_000, "train.py", 10),
        ("synchronise", "aten::item"): (1, 30_000, "train.py", 10),
        ("synchronise", None): (1, 20_000, "train.py", 10),
        ("free", None): (1, 15_000, "train.py", 10),
    }


@pytest.mark.parametrize(
    ("frame_text", "site"),
    [
        ("train.py(12): step", Site("train.py", 12, "step", "call")),
        ("a (b)/x.py(3): <lambda>", Site("a (b)/x.py", 3, "<lambda>", "call")),
        ("train.py(~12): step", Site("train.py", 12, "step", "near")),
        ("train.py(def 12): step", Site("train.py", 12, "step", "definition")),
        ("<built-in function len>", None),
        ("nn.Module: Linear_0", None),
    ],
)
def test_frames_are_parsed(frame_text: str, site: Site | None) -> None:
    assert Site.parse(frame_text) == site
