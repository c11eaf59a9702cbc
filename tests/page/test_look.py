"""What a reader sees of the page at first: the answer, then the timeline on its steps, nothing clipped. In a browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from answers import diagnosed
from kineto_files import annotation, launched, op, write
from paths import DEMO
from small_pages import EDGES

from warpline.findings.diagnosis import diagnose
from warpline.reports.page.document import page as make_page
from warpline.trace.open import open_trace

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: make browser"),
    pytest.mark.long,
]
LAPTOP = {"width": 1280, "height": 720}
PHONE = {"width": 390, "height": 844}
READY = "() => Boolean(window.warpline?.marks.complete && window.warpline.marks.painted)"
WEIGHTS = """() => {
  const weight = (one) => { const { fontSize, fontWeight } = getComputedStyle(one); return parseFloat(fontSize) * Number(fontWeight); };
  const headline = document.querySelector('.answer > .strong'), shown = [...document.querySelectorAll('body *')].filter((one) =>
    one !== headline && [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim()) && one.checkVisibility());
  return [weight(headline), Math.max(...shown.map(weight))];
}"""
CLIPPED = """() => {
  const texts = [], { fillText } = CanvasRenderingContext2D.prototype, t = warpline.timeline;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    if (this.canvas === t.parts.view && y < 22) texts.push([text, x + this.measureText(text).width]);
    return fillText.call(this, text, x, y);
  };
  for (let zoom = 0; zoom < 40; zoom++) { t.time.zoom(0.9); t.draw(); }
  CanvasRenderingContext2D.prototype.fillText = fillText;
  return [texts.length, texts.filter(([, right]) => right > t.picture.width)];
}"""
OUTSIDE = """() => [...document.querySelectorAll('svg.chart')].flatMap((chart) => {
  const { left, right, top, bottom } = chart.getBoundingClientRect();
  return [...chart.querySelectorAll('text')].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.left < left - 1 || box.right > right + 1 || box.top < top - 1 || box.bottom > bottom + 1;
  }).map((text) => text.textContent);
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as driver:
        launched_browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield launched_browser
        launched_browser.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    contexts = []

    def tab_of(trace: Path, size: dict[str, int] = LAPTOP, **options: Any) -> Any:
        file = tmp_path / "page.html"
        found = diagnosed(trace) if trace == DEMO else diagnose(open_trace(trace, cache=False), True)
        file.write_text(make_page(found).html)
        contexts.append(browser.new_context(viewport=size, reduced_motion="reduce", **options))
        tab = contexts[-1].new_page()
        tab.goto(file.as_uri())
        while not tab.evaluate(READY):
            tab.wait_for_timeout(20)
        tab.evaluate(
            "() => document.querySelectorAll('#panels > section').forEach((one) => { one.style.contentVisibility = 'visible'; })"
        )
        return tab

    yield tab_of
    for context in contexts:
        context.close()


def test_the_headline_is_the_heaviest_text(opened: Callable[..., Any]) -> None:
    headline, heaviest_other = opened(DEMO).evaluate(WEIGHTS)
    assert headline > 1.4 * heaviest_other


def test_the_timeline_starts_on_the_first_screen_of_a_laptop(opened: Callable[..., Any]) -> None:
    tab = opened(DEMO)
    top = tab.evaluate("() => document.querySelector('.stage').getBoundingClientRect().top")
    assert top < LAPTOP["height"] - 120


def test_the_timeline_opens_on_the_steps(opened: Callable[..., Any], tmp_path: Path) -> None:
    steps = [
        event
        for number in range(3)
        for event in (
            annotation(f"ProfilerStep#{number}", 50_000 + 1000 * number, 990),
            *launched("k", 50_010 + 1000 * number, 50_030 + 1000 * number, 900, number + 1),
        )
    ]
    tab = opened(write(tmp_path, [op("load", 0, 40_000), *steps]))
    start, end = tab.evaluate("() => [warpline.timeline.time.start, warpline.timeline.time.end]")
    assert 49_900_000 < start <= 50_000_000
    assert 52_990_000 <= end < 53_100_000
    tab.wait_for_timeout(600)
    assert tab.evaluate("() => location.hash") == "", "the first picture needs no address"


def test_a_legend_names_the_colours_of_kernels_calls_and_idle_time(opened: Callable[..., Any]) -> None:
    words = opened(DEMO).evaluate(
        "() => Object.fromEntries([...document.querySelectorAll('.legends ul')].map((one) => [one.ariaLabel, one.innerText.split('\\n')]))"
    )
    assert set(words) == {"GPU", "Calls", "Idle"}
    assert "matmul, conv" in words["GPU"] and "launch" in words["Calls"] and "dispatch" in words["Idle"]


def test_findings_are_one_column_and_advice_does_not_look_like_code(opened: Callable[..., Any]) -> None:
    tab = opened(DEMO)
    boxes = tab.evaluate(
        "() => [...document.querySelectorAll('.finding')].map((one) => { const { left, width } = one.getBoundingClientRect(); return [left, width]; })"
    )
    assert len(boxes) > 1 and len({tuple(box) for box in boxes}) == 1
    fonts = tab.evaluate("() => [...document.querySelectorAll('.how')].map((one) => getComputedStyle(one).fontFamily)")
    assert fonts and not any("mono" in font for font in fonts)


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_no_label_of_an_axis_is_clipped(opened: Callable[..., Any], size: dict[str, int]) -> None:
    tab = opened(DEMO, size)
    drawn, clipped = tab.evaluate(CLIPPED)
    assert drawn > 40 and clipped == []
    assert tab.evaluate(OUTSIDE) == []
    assert tab.evaluate("() => document.documentElement.scrollWidth") == size["width"]


def test_the_flame_graph_is_dark_in_dark_colours(opened: Callable[..., Any]) -> None:
    fills = opened(DEMO, color_scheme="dark").evaluate(
        "() => [...new Set([...document.querySelectorAll('.frame rect')].map((one) => getComputedStyle(one).fill))]"
    )
    for fill in fills:
        assert max(map(int, fill.removeprefix("rgb(").removesuffix(")").split(","))) < 170


def test_a_trace_without_a_gpu_has_its_answer_as_headline(opened: Callable[..., Any], tmp_path: Path) -> None:
    said = opened(EDGES["no GPU activity"](tmp_path)).inner_text(".answer > .strong")
    assert "of 198 µs" in said  # 20 ops of 8 µs every 10 µs
