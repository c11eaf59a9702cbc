"""The page in Firefox, where it is installed: load, zoom, pan, click, keyboard, panels and print, without a word."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from answers import diagnosed
from paths import DEMO

pytest.importorskip("tornado", reason="tornado is not installed")
from firefox import Firefox

from warpline.reports.page.document import page as make_page

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
pytestmark = [
    pytest.mark.skipif(FIREFOX is None, reason="Firefox is not installed"),
    pytest.mark.long,
]
ENTER, ESCAPE = "\ue007", "\ue00c"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    assert FIREFOX is not None
    opened = Firefox(FIREFOX, tmp_path_factory.mktemp("profile"), dark=True)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("page") / "demo.html"
    made.write_text(make_page(diagnosed(DEMO)).html)
    return made.as_uri()


@pytest.fixture(scope="module")
def opened(browser: Firefox, file: str) -> Firefox:
    browser.open(file)
    return browser


@pytest.fixture
def page(opened: Firefox) -> Iterator[Firefox]:
    opened.ask("(t.choose(-1), t.time.move(0, t.time.length))")
    yield opened
    assert opened.said == []
    assert [url for url in opened.asked if not url.startswith(("file:", "data:"))] == []


def middle(page: Firefox, box: str) -> tuple[float, float]:
    """A point on the screen: the middle of a box of the canvas."""
    page.ask("t.parts.stage.scrollIntoView({block: 'center'})")
    found = page.ask(f"""(({{ x, y }}, box) => [x + (box.x + box.right) / 2, y + box.y + box.height / 2])
        (t.parts.view.getBoundingClientRect(), {box})""")
    return found[0], found[1]


def test_a_kernel_is_clicked_after_zoom_and_pan(page: Firefox) -> None:
    assert "Dispatch-bound" in page.ask("document.querySelector('#verdict').innerText")
    assert page.ask("t.look.dark") is True
    whole = page.ask("t.time.span")
    lane = "t.events.lanes.find((l) => l.group.track.kind === 'gpu')"
    kernel = page.ask(f"t.events.after({lane}, t.time.length * 0.42)")
    at = middle(page, f"t.picture.box({kernel})")
    page.ask("t.parts.view.focus({preventScroll: true})")
    page.wheel(*at, -240)
    assert page.ask("t.time.span") < 0.7 * whole
    start = page.ask("t.time.start")
    page.drag((at[0], at[1] + 200), (at[0] - 150, at[1] + 200))
    assert page.ask("t.time.start") > start
    page.ask(f"t.time.move(t.events.start[{kernel}] - 2e5, t.events.start[{kernel}] + 2e5)")
    page.click(*middle(page, f"t.picture.box({kernel})"))
    assert page.ask("t.chosen") == kernel
    assert "launched by" in page.ask("document.querySelector('.event').innerText")
    page.press("l")
    assert page.ask("t.events.kind(t.chosen)") == "api"


def test_keys_move_the_timeline(page: Firefox) -> None:
    page.ask("t.parts.view.focus()")
    whole = page.ask("t.time.span")
    page.press("w")
    page.ask("new Promise((done) => setTimeout(done, 300))")  # it glides there
    assert page.ask("t.time.span") < whole
    page.press(ENTER)
    assert page.ask("t.events.kind(t.chosen)") == "gpu"
    page.press(ESCAPE, "?")
    assert page.ask("document.querySelector('dialog').open") is True
    page.press(ESCAPE)


def test_a_fix_is_ticked_and_a_table_sorted(page: Firefox) -> None:
    # By the pointer: the keys of a driven Firefox neither tick a box nor press a button, on any page.
    def click(selector: str) -> None:
        one = f"document.querySelector('{selector}')"
        page.ask(f"{one}.scrollIntoView({{block: 'center'}})")
        page.click(*page.ask(f"(({{x, y}}) => [x + 6, y + 6])({one}.getBoundingClientRect())"))

    click("#whatif input")
    assert "Tick a fix" in page.ask("document.querySelector('.whatif-answer').textContent")
    click("#table-kernels thead button")
    assert page.ask("document.querySelector('#table-kernels thead th').getAttribute('aria-sort')") == "ascending"
    click("#roofline .dot:last-of-type")
    assert page.ask("document.querySelector('#roofline [role=status]').textContent").startswith("aten::")


def test_every_panel_is_drawn(page: Firefox) -> None:
    panels = page.ask("[...document.querySelectorAll('#panels > section')].map((one) => one.id)")
    assert panels == ["whatif", "steps", "tables", "roofline", "flame", "budget", "numbers"]


def test_a_phone_and_paper(page: Firefox, file: str) -> None:
    """The last test: it leaves the page narrow."""
    page.open(file, 360, 740)
    assert page.ask("document.documentElement.scrollWidth") <= 360
    assert page.ask("t.picture.took.draw") >= 0
    assert page.send("browsingContext.print", context=page.tab)["data"].startswith("JVBER")  # %PDF in base64
    assert page.ask("t.look.dark") is True
