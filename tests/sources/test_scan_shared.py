"""Every real Kineto trace at hand: the scanners against each other, and against json where it can read the file."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from paths import SHARED
from scan_checks import by_json, decoded, difference

from warpline.sources.kineto.arguments import read_arguments
from warpline.sources.kineto.stream import scan_file

pytestmark = [pytest.mark.shared, pytest.mark.usefixtures("compiled")]

TRACES = sorted(path for path in SHARED.glob("**/kineto/*") if path.name.endswith((".json", ".json.gz")))
SMALL_BYTES, LARGE_BYTES = 300_000, 600_000
"""Compressed: json and a comparison event by event take too long on those that are not small, and the scanner in Python
on large ones, each of which has a smaller one by the same recorder beside it."""


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_every_way_reads_the_same(path: Path, tmp_path: Path) -> None:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    plain = tmp_path / "plain.json"
    plain.write_bytes(text)
    compiled = scan_file(plain, scanner="native")
    assert len(compiled) > 0
    assert (compiled.skipped, compiled.truncated, compiled.notes) == (0, False, [])
    assert difference(compiled, scan_file(plain, scanner="native", window_bytes=1 << 14)) == ""
    assert difference(compiled, scan_file(path, scanner="native", window_bytes=50_000)) == ""
    if path.stat().st_size < LARGE_BYTES:
        assert difference(compiled, scan_file(path, scanner="python")) == ""
    if path.stat().st_size < SMALL_BYTES:
        assert decoded(compiled) == by_json(text)
    rows = np.flatnonzero(compiled.args_offset >= 0)[:: max(1, len(compiled) // 50)]
    offsets, lengths = compiled.args_offset[rows].tolist(), compiled.args_length[rows].tolist()
    assert read_arguments(path, offsets, lengths) == read_arguments(plain, offsets, lengths)
