"""A comparison as a page: the answer of the terminal, and both steps drawn at one scale."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from step_traces import steps, trace

from warpline.cli.main import run


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """B takes twice as long."""
    return (
        trace(tmp_path, "a", steps(6, [("gemm", 40.0), ("relu", 5.0)], jitter=0.1)),
        trace(tmp_path, "b", steps(6, [("gemm", 85.0), ("relu", 5.0)], jitter=0.1)),
    )


def widths(picture: str) -> list[float]:
    """Of the ranges, the longest of which is the step."""
    paths = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}path")
    return [
        float(width)
        for path in paths
        if path.get("fill") == "var(--range)"
        for width in re.findall(r"h([\d.]+)v", path.get("d", ""))
    ]


def test_both_steps_are_drawn_at_one_scale(
    pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "change.html"
    assert run(["compare", *map(str, pair), "-o", str(file), "--no-history"]) in {0, 4}
    page = file.read_text()
    a, b = (base64.b64decode(text).decode() for text in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page))
    assert max(widths(b)) == pytest.approx(1200 - 150 - 16, abs=0.5)
    assert max(widths(a)) / max(widths(b)) == pytest.approx(55.2 / 100.2, rel=0.02)
    assert run(["compare", *map(str, pair), "--no-history"]) in {0, 4}
    answer = next(line for line in capsys.readouterr().out.splitlines() if " a step" in line)
    assert answer.split(" a step")[0] in page


def test_the_page_runs_nothing_and_is_not_overwritten(
    pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "change.html"
    run(["compare", *map(str, pair), "-o", str(file), "--no-history"])
    page = file.read_text()
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert "script-src" not in page
    assert run(["compare", *map(str, pair), "-o", str(file)]) == 2
    assert "file-exists" in capsys.readouterr().err
