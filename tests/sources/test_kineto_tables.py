"""Facts of a Kineto file's head."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kineto_files import call, kernel, write

from warpline.sources.kineto import read_kineto
from warpline.trace.open import open_trace


@pytest.mark.parametrize(("base", "epoch"), [(1_700_000_000_000_000_000, "1700000000000000000"), (10**21, "0")])
def test_a_base_that_no_clock_shows_is_not_used(tmp_path: Path, base: int, epoch: str) -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0, "dur": 5, "args": {"stream": 7}}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"baseTimeNanoseconds": base, "traceEvents": [kernel]}))
    assert read_kineto(path).meta["epoch_ns"] == epoch


@pytest.mark.parametrize(("symbol", "name"), [("copy.kd", "copy"), ("scale(float*) [clone .kd]", "scale(float*)")])
def test_the_descriptor_of_rocm_is_no_part_of_a_kernels_name(symbol: str, name: str, tmp_path: Path) -> None:
    events = [call("hipLaunchKernel", 0, 5, 1), kernel(symbol, 10, 20, 1), kernel("Memset (Device)", 40, 5, 2)]
    trace = open_trace(write(tmp_path, events), cache=False)
    assert trace.gpu.name.texts.tolist() == [name, "Memset (Device)"]
