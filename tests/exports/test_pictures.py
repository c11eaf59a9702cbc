"""Pictures are valid SVG whose bars are as long as what they show, with text as text, for light and dark."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest
from kineto_files import annotation, launched, op, write
from paths import DEMO

from warpline.cli.main import run
from warpline.exports.pictures import in_light_colours, png, step_picture, time_picture
from warpline.findings.diagnosis import diagnose
from warpline.reports.svg import BUSY_COLOURS, document, label
from warpline.trace.open import open_trace

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture: str) -> str:
    return " ".join(text.text or "" for text in ElementTree.fromstring(picture).iter(f"{SVG}text"))


def test_the_time_bar_sums_to_its_width(tmp_path: Path) -> None:
    # Busy from 10 to 40 and from 80 to 110 µs: 60 of 100 µs.
    events = [*launched("a", 0, 10, 30, 1), *launched("b", 60, 80, 30, 2)]
    picture = time_picture(diagnose(open_trace(write(tmp_path, events), cache=False), why=False))
    bars = [bar for bar in ElementTree.fromstring(picture).iter(f"{SVG}rect") if bar.find(f"{SVG}title") is not None]
    widths = [float(bar.get("width", "0")) for bar in bars]
    assert sum(widths) == pytest.approx(960 - 48, abs=0.05)
    assert widths[0] / sum(widths) == pytest.approx(0.6, abs=1e-3)
    assert "busy 60.0 %" in texts(picture)


def test_the_step_picture_draws_each_kernel_to_scale(tmp_path: Path) -> None:
    events = [
        annotation("ProfilerStep#0", 0, 100),
        op("aten::mm", 2, 30),
        *launched("a", 5, 20, 30, 1),
        *launched("b", 40, 60, 20, 2),
    ]
    picture = step_picture(diagnose(open_trace(write(tmp_path, events), cache=False), why=False))
    path = next(
        path
        for path in ElementTree.fromstring(picture).iter(f"{SVG}path")
        if path.get("fill") == BUSY_COLOURS["compute"]
    )
    found = re.findall(r"M([\d.]+) [\d.]+h([\d.]+)", path.get("d", ""))
    scale = (1200 - 150 - 16) / 100
    assert [(float(left), float(width)) for left, width in found] == [
        (pytest.approx(150 + 20 * scale, abs=0.02), pytest.approx(30 * scale, abs=0.02)),
        (pytest.approx(150 + 60 * scale, abs=0.02), pytest.approx(20 * scale, abs=0.02)),
    ]
    assert "aten::mm" in texts(picture)
    assert "stream 7" in texts(picture)


@pytest.mark.parametrize("what", ["timeline", "time", "roofline"])
def test_every_picture_is_xml_for_light_and_dark(tmp_path: Path, what: str) -> None:
    file = tmp_path / "picture.svg"
    assert run(["export", str(DEMO), "-o", str(file), "--what", what]) == 0
    picture = file.read_text()
    root = ElementTree.fromstring(picture)
    assert root.find(f"{SVG}title") is not None
    assert "prefers-color-scheme: dark" in picture
    assert "H200" in texts(picture)
    assert len(picture) < 100_000
    if find_spec("resvg_py"):
        _, _, width, height = map(float, root.get("viewBox", "").split())
        content = png(picture)
        size = tuple(int.from_bytes(content[at : at + 4]) for at in (16, 20))
        assert size == (2 * width, pytest.approx(2 * height, abs=2))
        assert len(content) > 20_000  # text and bars, not an empty sheet


def test_the_command_writes_a_png(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="needs `pip install resvg-py`")
    trace, file = write(tmp_path, launched("a", 0, 10, 30, 1)), tmp_path / "picture.png"
    assert run(["export", str(trace), "-o", str(file), "--what", "time"]) == 0
    assert file.read_bytes().startswith(b"\x89PNG\r\n")


def test_no_variable_is_left_and_texts_stay_in_light_colours() -> None:
    drawn = document(10, 10, "t", "d", [label(0, 0, 'var(--ink) "var(--ops)"'), '<rect fill="var(--ops)"/>'])
    light = in_light_colours(drawn)
    assert "var(--ink) &quot;var(--ops)&quot;</text>" in light
    assert light.count("var(") == 2
    assert '<rect fill="#a9bdd9"/>' in light
    assert "@media" not in light


def test_without_resvg_a_png_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("warpline.exports.pictures.find_spec", lambda name: None)
    assert run(["export", str(DEMO), "-o", str(tmp_path / "x.png")]) == 1
    error = capsys.readouterr().err
    assert error == "warpline: needs-png: drawing a .png needs resvg-py; pip install resvg-py, or write .svg\n"


def test_names_are_sanitised(tmp_path: Path) -> None:
    events = [annotation("</text><script>alert(1)</script>\x1b[2J", 0, 100), *launched("<b>&\x00", 5, 20, 60, 1)]
    picture = step_picture(diagnose(open_trace(write(tmp_path, events), cache=False), why=False))
    ElementTree.fromstring(picture)
    assert "<script" not in picture
    assert "\x1b" not in picture


def test_a_trace_without_gpu_work_is_drawn_too(tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path, [op("aten::mm", 0, 30)]), cache=False)
    assert "no GPU activity" in texts(time_picture(diagnose(trace)))
    ElementTree.fromstring(step_picture(diagnose(trace)))
