"""The bundled trace as a wheel holds it: packed, and the same to the last character, in an order that takes less space."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest
from paths import DEMO

from warpline import bundled
from warpline.bundled import bundled_trace, in_order, packed, unpacked
from warpline.scrub import vocabulary


def test_the_packed_trace_is_the_trace() -> None:
    text = lzma.decompress(DEMO.read_bytes()).decode()
    ordered = in_order(text)
    assert sorted(ordered.split("\n")) == sorted(text.split("\n"))
    assert len(json.loads(ordered)["traceEvents"]) == len(json.loads(text)["traceEvents"])
    small = packed(ordered)
    assert unpacked(small) == ordered
    assert len(small) < 0.6 * DEMO.stat().st_size


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        '{"ts": 5, "dur": 0.007}\n{"ts": 12.5}\n{"ts": 12.500, "correlation": 7}\n{"correlation": 3, "dur": 12345.678}',
        '{"ts": -1.000, "External id": 18446744073709551615}\n{"name": "\\"ts\\": 1.000"}',
    ],
)
def test_any_lines_come_back(text: str) -> None:
    assert unpacked(packed(text)) == text


@pytest.mark.parametrize("file", [bundled.__file__, vocabulary.__file__])
def test_what_builds_a_wheel_needs_nothing_of_the_package(file: str) -> None:
    code = f"from runpy import run_path; run_path({file!r})"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)


def test_without_the_trace_it_is_unpacked_and_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with bundled_trace() as path:
        assert path == DEMO
    text = '{"traceEvents": [\n{"ts": 1.000}\n]}'
    (tmp_path / bundled.PACKED).write_bytes(packed(text))
    monkeypatch.setattr(bundled, "HERE", tmp_path)
    with bundled_trace() as path:
        assert path.name == DEMO.name
        assert lzma.decompress(path.read_bytes()).decode() == text
    assert not path.exists()
