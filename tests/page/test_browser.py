"""The page in a real browser: what a reader does with pointer and keys. Chromium is installed by `make browser`."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from answers import diagnosed
from dive_kernels import kernel as reported
from dived_trace import copies
from kineto_files import launched, op, write
from paths import DEMO
from small_pages import EDGES

from warpline.dive.answer import dive_into
from warpline.exports.pages import comparison_page
from warpline.findings.diagnosis import diagnose
from warpline.reports.page.document import ServedPage
from warpline.reports.page.document import page as make_page
from warpline.reports.sections import Column, Report, Section, Table, Text
from warpline.sources.ncu.model import NcuReport
from warpline.trace.open import open_trace

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: make browser"),
    pytest.mark.long,
]
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--renderer-process-limit=1",
]
PATIENCE_S = 300
"""A loaded machine may need it; a page takes a second."""
KERNEL = """() => { const t = warpline.timeline, lane = t.events.lanes.find((l) => l.group.track.kind === 'gpu');
  const i = t.events.after(lane, t.time.length * 0.42); t.time.move(t.events.start[i] - 2e5, t.events.start[i] + 2e5); return i; }"""


class Opened:
    """A page in a tab, and everything that it said and asked for."""

    def __init__(self, tab: Any, file: Path | str, address: str = "") -> None:
        self.tab, self.said, self.asked = tab, [], []
        tab.on("console", lambda message: self.said.append(message.text))
        tab.on("pageerror", lambda error: self.said.append(str(error)))
        tab.on("request", lambda request: self.asked.append(request.url))
        tab.goto((file.as_uri() if isinstance(file, Path) else file) + address)
        self.until("() => Boolean(window.warpline?.marks.complete && window.warpline.marks.painted)")

    def until(self, question: str) -> None:
        """Wait until it holds; the page's policy forbids the eval that Playwright would use."""
        end = time.monotonic() + PATIENCE_S
        while not self.tab.evaluate(question):
            assert time.monotonic() < end, (question, self.said)
            self.tab.wait_for_timeout(20)

    def ask(self, expression: str) -> Any:
        """The value of an expression, in which `t` is the timeline; what was pending is drawn first."""
        self.tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self.tab.evaluate(f"() => {{ const t = warpline.timeline; return {expression}; }}")

    @property
    def span(self) -> float:
        return float(self.ask("t.time.span"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "demo.html"
    file.write_text(make_page(diagnosed(DEMO)).html)
    return file


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def opened(file: Path | str, address: str = "", **options: Any) -> Opened:
        options = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options}
        context = browser.new_context(**options)
        contexts.append(context)
        return Opened(context.new_page(), file, address)

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def page(open_page: Callable[..., Opened], demo: Path) -> Iterator[Opened]:
    opened = open_page(demo)
    yield opened
    assert opened.said == []
    assert [url for url in opened.asked if not url.startswith("file:")] == []


def box_of(page: Opened, event: int) -> tuple[float, float]:
    """A point on a row, on the screen."""
    page.ask("t.parts.stage.scrollIntoView({block: 'center'})")
    box = page.ask(f"t.picture.box({event})")
    frame = page.ask("(({x, y}) => ({x, y}))(t.parts.view.getBoundingClientRect())")
    return frame["x"] + (box["x"] + box["right"]) / 2, frame["y"] + box["y"] + box["height"] / 2


def test_it_opens_with_the_verdict_and_without_a_word(page: Opened) -> None:
    assert "Dispatch-bound" in page.tab.inner_text("#verdict")
    assert page.tab.inner_text("nav").split("\n")[0] == "Verdict"
    assert page.ask("t.head.events") > 10_000
    assert page.ask("t.picture.layout.rows.length") > 10
    assert page.ask("t.events.lanes.every((lane) => lane.ready)")


def test_a_kernel_is_clicked_and_its_arrow_followed(page: Opened) -> None:
    kernel = page.tab.evaluate(KERNEL)
    page.tab.mouse.click(*box_of(page, kernel))
    assert page.ask("t.chosen") == kernel
    panel = page.tab.inner_text(".event")
    for word in ("duration", "grid × block", "launched by", "op", "shapes", "roofline", "library"):
        assert word in panel
    call = page.ask("t.events.link[t.chosen]")
    assert page.ask("t.arrows") == [[call, kernel]]
    page.tab.keyboard.press("l")
    assert page.ask("t.chosen") == call
    assert page.ask("t.events.kind(t.chosen)") == "api"
    assert page.ask("t.arrows") == [[call, kernel]]
    page.tab.keyboard.press("l")
    assert page.ask("t.events.kind(t.chosen)") == "ops"


def test_backward_is_linked_with_forward(page: Opened) -> None:
    op = page.ask(
        "(() => { for (const l of t.events.lanes) if (l.group.track.kind === 'ops') for (let i = l.first; i < l.beyond; i++) if (t.events.link[i] >= 0) return i; return -1; })()"
    )
    forward = page.ask(f"(t.choose({op}, true), t.events.link[{op}])")
    assert [forward, op] in page.ask("t.arrows")
    assert "backward of" in page.tab.inner_text(".event")
    page.ask(f"t.choose({forward}, true)")
    assert "differentiated by" in page.tab.inner_text(".event")


def test_wheel_and_drag_zoom_and_pan(page: Opened) -> None:
    kernel = page.tab.evaluate(KERNEL)
    x, y = box_of(page, kernel)
    page.ask("t.time.move(0, t.time.length)")
    whole = page.span
    before = page.ask("scrollY")
    page.tab.mouse.move(x, y)
    page.tab.mouse.wheel(0, -200)
    page.until(f"() => scrollY < {before}")  # without the focus, a wheel scrolls the page
    assert page.span == whole
    x, y = box_of(page, kernel)
    page.ask("t.parts.view.focus({preventScroll: true})")
    page.tab.mouse.move(x, y)
    page.tab.mouse.wheel(0, -240)
    page.until(f"() => warpline.timeline.time.span < {whole * 0.7}")
    zoomed = page.span
    page.tab.keyboard.down("Control")
    page.tab.mouse.wheel(0, -100)
    page.tab.keyboard.up("Control")
    page.until(f"() => warpline.timeline.time.span < {zoomed * 0.7}")
    zoomed, start = page.span, page.ask("t.time.start")
    page.tab.mouse.move(x, y + 200)
    page.tab.mouse.down()
    page.tab.mouse.move(x - 150, y + 200, steps=4)
    page.tab.mouse.up()
    assert page.ask("t.time.start") > start
    assert page.span == pytest.approx(zoomed)


def test_everything_works_with_the_keyboard(page: Opened) -> None:
    for _ in range(60):
        page.tab.keyboard.press("Tab")
        if page.ask("document.activeElement === t.parts.view"):
            break
    assert page.ask("document.activeElement === t.parts.view")
    whole = page.span
    page.tab.keyboard.press("w")
    assert page.span < whole
    start = page.ask("t.time.start")
    page.tab.keyboard.press("d")
    assert page.ask("t.time.start") > start
    page.tab.keyboard.press("Enter")
    first = page.ask("t.chosen")
    assert page.ask("t.events.kind(t.chosen)") == "gpu"
    page.tab.keyboard.press("ArrowRight")
    assert page.ask("t.chosen") == first + 1
    page.tab.keyboard.press("f")
    assert page.span < whole / 10
    page.tab.keyboard.press("Escape")
    assert page.ask("t.chosen") == -1
    page.tab.keyboard.press("0")
    assert page.span == pytest.approx(whole, rel=0.03)
    page.tab.keyboard.press("?")
    assert page.tab.is_visible("dialog")
    page.tab.keyboard.press("Escape")
    assert not page.tab.is_visible("dialog")
    page.tab.keyboard.press("p")
    assert page.ask("t.events.groups.some((group) => group.track.kind === 'python' && group.open)")


def test_a_search_counts_and_walks(page: Opened) -> None:
    page.ask("t.parts.find.focus()")
    page.tab.keyboard.type("gemm")
    counted = int(re.sub(r"\D", "", page.tab.inner_text(".tools output")))
    assert counted == page.ask("t.search_.total") > 0
    page.tab.keyboard.press("Enter")
    first = page.ask("t.chosen")
    page.tab.keyboard.press("Enter")
    assert page.ask("t.events.start[t.chosen]") >= page.ask(f"t.events.start[{first}]")
    assert "gemm" in page.ask("(t.events.text(t.chosen) + t.events.label(t.chosen)).toLowerCase()")


def test_a_range_has_totals_that_sum(page: Opened) -> None:
    page.ask("(t.parts.view.focus(), t.time.move(2e7, 3e7))")
    page.tab.keyboard.press("r")
    shown = page.tab.inner_text(".event")
    for word in ("Selected 10.0 ms", "On the GPU", "GPU idle", "API calls"):
        assert word in shown
    # One stream: what it ran and why it was idle are the whole range.
    total = page.ask("""(() => { let sum = 0; for (const l of t.events.lanes) if (['gpu', 'idle'].includes(l.group.track.kind))
        for (let i = l.first; i < l.beyond; i++) sum += Math.max(0, Math.min(3e7, t.events.end[i]) - Math.max(2e7, t.events.start[i])); return sum; })()""")
    assert total == pytest.approx(1e7, abs=2)


def test_a_link_leads_to_a_moment(page: Opened, open_page: Callable[..., Opened], demo: Path) -> None:
    kernel = page.tab.evaluate(KERNEL)
    page.ask(f"t.choose({kernel})")
    page.until("() => location.hash.includes('event=')")
    there = open_page(demo, page.ask("location.hash"))
    assert there.ask("t.chosen") == kernel
    assert there.span == pytest.approx(page.span, rel=1e-3)


def test_findings_and_causes_lead_to_their_events(page: Opened) -> None:
    page.tab.click(".finding .jump")
    assert page.ask("t.chosen") >= 0
    assert page.ask("t.events.particulars.spots[0].names.includes(t.events.name[t.chosen])")
    page.tab.click("#timeline .legend button >> nth=0")
    largest = page.ask("t.events.duration(t.chosen)")
    assert page.ask("t.events.kind(t.chosen)") == "idle"
    page.tab.keyboard.press("Tab")
    page.ask("t.nextGap()")
    assert page.ask("t.events.duration(t.chosen)") <= largest


def test_a_kernel_shows_what_ncu_measured(open_page: Callable[..., Opened], tmp_path: Path) -> None:
    trace = open_trace(copies(tmp_path), cache=False)
    dive = dive_into(NcuReport(Path("r.csv"), "csv-raw", "", (reported("copy"),)), trace)
    file = tmp_path / "dived.html"
    file.write_text(make_page(diagnose(trace, True), dive=dive).html)
    page = open_page(file)
    page.tab.click("#inside-0 summary")
    page.tab.click("#inside-0 .jump")
    assert page.ask("t.events.text(t.chosen)") == "copy"
    shown = page.tab.inner_text(".event")
    assert dive.found[0].reason in shown and dive.found[0].how in shown
    page.tab.click("#inside-0 summary")  # folds it
    page.tab.click("text=all measured values")
    assert page.ask("document.getElementById('inside-0').open")
    page.ask("t.choose(t.events.lanes.find((l) => l.group.track.kind === 'gpu').first + 2)")
    assert "Nsight Compute" not in page.tab.inner_text(".event")
    assert page.said == []


def test_many_streams_are_folded_and_unfold_together(open_page: Callable[..., Opened], tmp_path: Path) -> None:
    file = tmp_path / "crowded.html"
    file.write_text(
        make_page(diagnose(open_trace(EDGES["8 devices with 64 streams each"](tmp_path), cache=False))).html
    )
    page = open_page(file)
    before = page.ask("t.picture.layout.height")
    assert page.ask("t.picture.layout.rows.filter((row) => row.label === '64 streams').length") == 8
    page.ask("t.parts.stage.scrollIntoView({block: 'center'})")
    where = page.ask("""(() => { const row = t.picture.layout.rows.find((row) => row.title === 'GPU 0'),
        { x, y } = t.parts.view.getBoundingClientRect(); return [x + 30, y + t.picture.screenY(row) + 8]; })()""")
    page.tab.mouse.click(*where)
    assert page.ask("t.picture.layout.rows.filter((row) => row.label?.startsWith('stream ')).length") == 64
    assert page.ask("t.picture.layout.height") > before + 64 * 10
    page.tab.mouse.click(*where)
    assert page.ask("t.picture.layout.height") == before
    page.tab.keyboard.press("t")
    assert page.ask("t.picture.layout.rows.filter((row) => row.label?.startsWith('stream ')).length") == 8 * 64
    assert page.said == []


def test_colours_follow_the_system_and_the_button(open_page: Callable[..., Opened], demo: Path) -> None:
    dark = open_page(demo, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert dark.ask(ground) == "rgb(21, 24, 28)"
    assert dark.ask("t.look.dark") is True
    dark.tab.click(".theme")
    assert dark.ask(ground) == "rgb(251, 251, 250)"
    assert dark.ask("t.look.dark") is False
    assert dark.said == []


def test_it_opens_where_the_gpu_works(open_page: Callable[..., Opened], tmp_path: Path) -> None:
    file = tmp_path / "late.html"
    trace = open_trace(write(tmp_path, [op("load", 0, 50), *launched("k", 90_000, 90_010, 200, 1)]), cache=False)
    file.write_text(make_page(diagnose(trace)).html)
    page = open_page(file)
    assert page.ask("[t.time.start, t.time.end]") == pytest.approx([90_006_000, 90_214_000], abs=2_000)
    page.ask("t.parts.whole.click()")
    assert page.span == pytest.approx(90_210_000, rel=0.03)


def test_a_phone_shows_it_without_scrolling_sideways(open_page: Callable[..., Opened], demo: Path) -> None:
    phone = open_page(demo, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    phone.ask(
        "document.querySelectorAll('#panels > section').forEach((one) => { one.style.contentVisibility = 'visible'; })"
    )
    assert phone.ask("document.documentElement.scrollWidth") == 360
    assert min(phone.ask("[...document.querySelectorAll('tbody th.name')].map((one) => one.clientWidth)")) >= 120
    # Charts are drawn in the width that they have, so that their text is as large as the page's.
    assert phone.ask("[...document.querySelectorAll('svg.chart')].every((one) => one.viewBox.baseVal.width <= 360)")
    phone.ask("(t.parts.stage.scrollIntoView({block: 'center'}))")
    x, y = box_of(phone, phone.tab.evaluate(KERNEL))
    phone.tab.touchscreen.tap(x, y)
    assert phone.ask("t.events.kind(t.chosen)") == "gpu"
    assert phone.said == []


def test_a_comparison_fits_a_phone(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "change.html"
    trace = open_trace(copies(tmp_path), cache=False)
    wide = Table((Column("kernel", "kernel", key=True),), (("k" * 200,),))
    file.write_text(comparison_page(Report("A B", (Section("a", "A", (Text("k" * 200), wide)),)), trace, trace))
    with browser.new_context(viewport={"width": 360, "height": 740}, is_mobile=True) as context:
        tab = context.new_page()
        tab.goto(file.as_uri())
        assert tab.evaluate("() => document.documentElement.scrollWidth") == 360


def test_it_prints_in_light_colours(open_page: Callable[..., Opened], demo: Path) -> None:
    dark = open_page(demo, color_scheme="dark")
    assert dark.tab.pdf().startswith(b"%PDF-")
    assert dark.ask("(dispatchEvent(new Event('beforeprint')), t.look.dark)") is False
    assert dark.ask("(dispatchEvent(new Event('afterprint')), t.look.dark)") is True
    assert dark.said == []


@pytest.mark.parametrize("name", EDGES)
def test_every_trace_opens(name: str, open_page: Callable[..., Opened], tmp_path: Path) -> None:
    file = tmp_path / "edge.html"
    file.write_text(make_page(diagnose(open_trace(EDGES[name](tmp_path), cache=False), True)).html)
    page = open_page(file)
    assert page.said == []
    assert page.ask("window.evil") is None
    for key in ("Enter", "l", "w", "r", "0", "Escape"):
        page.ask("t.parts.view.focus()")
        page.tab.keyboard.press(key)
    assert page.ask("t.picture.took.draw") >= 0
    assert page.said == []
    assert [url for url in page.asked if not url.startswith("file:")] == []


def test_a_served_page_fetches_the_rows_of_what_is_in_view(open_page: Callable[..., Opened]) -> None:
    pytest.importorskip("uvicorn", reason="needs pip install 'warpline[view]'")
    from local_server import listening  # noqa: PLC0415 - needs uvicorn

    served = ServedPage(diagnosed(DEMO), most_rows=500)
    whole = served.timeline.head.events
    with listening(served) as address:
        page = open_page(address)
        assert "Dispatch-bound" in page.tab.inner_text("#verdict")
        assert page.ask("t.events.head.events") <= 500
        assert page.ask("t.events.head.least_ns") == served.least_ns
        left, right = 20e6, 20.5e6
        page.ask(f"t.time.move({left}, {right})")
        page.until("() => Boolean(warpline.timeline.events.head.detailed)")
        start, end = page.ask("t.events.head.detailed")
        assert start <= left < right <= end
        between = "t.events.lanes.flatMap((l) => [...Array(l.beyond - l.first).keys()].map((k) => l.first + k))"
        between += f".filter((i) => t.events.start[i] < {end} && t.events.end[i] > {start}).length"
        rows = served.timeline.pack.only(
            1 << 62, served.timeline.head.zero_ns + start, served.timeline.head.zero_ns + end
        )
        assert page.ask(between) == rows.count < whole
        assert page.said == []
        assert {url.split("?")[0] for url in page.asked if not url.startswith("data:")} == {address, f"{address}rows"}
