"""The benchmark's bigger traces are valid: copies follow each other and share no ids."""

from __future__ import annotations

import gzip
import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from scan_samples import OF_2021, TODAY

from warpline.sources.kineto.stream import scan_file

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "make_trace.py"
STEP = (
    b'{"ph":"X","cat":"user_annotation","name":"ProfilerStep#4","pid":730,"tid":730,'
    b'"ts":6187519811400.000,"dur":200.5,"args":{"External id":1}},'
)


@pytest.mark.parametrize("source", [TODAY, OF_2021], ids=["today", "2021"])
@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_copies_do_not_collide(source: bytes, suffix: str, tmp_path: Path) -> None:
    make_trace: Any = runpy.run_path(str(SCRIPT))["make_trace"]
    small, big = tmp_path / "small.json", tmp_path / f"big.{suffix}"
    small.write_bytes(source.replace(b'"traceEvents": [', b'"traceEvents": [' + STEP).replace(b": inf", b": 0"))
    assert make_trace(small, big, 3, None) == 3
    one, three = scan_file(small), scan_file(big)
    assert len(three) == 3 * len(one)
    assert (three.skipped, three.truncated, three.header) == (0, False, one.header)
    assert [name for name in three.names if name.startswith("Prof")] == [f"ProfilerStep#{step}" for step in (4, 5, 6)]
    for key in ("correlation", "External id", "external id"):
        values = three.fields[key].values.tolist()
        assert len(set(values)) == 3 * len(set(one.fields[key].values.tolist()))
    timed = three.time_ns.reshape(3, -1)
    assert (timed[0] - timed[0].min()).tolist() == (timed[2] - timed[2].min()).tolist()
    assert timed[0].max() < timed[1].min() <= timed[1].max() < timed[2].min()
    json.loads(gzip.decompress(big.read_bytes()) if suffix == "json.gz" else big.read_bytes())
