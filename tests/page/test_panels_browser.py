"""The panels of the page in a real browser: tick a fix, sort, filter and group a table, and all of it by keyboard."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from answers import diagnosed
from kineto_files import launched, memory, op, write
from paths import DEMO

from warpline.cli.main import run
from warpline.findings.diagnosis import Diagnosis
from warpline.reports.plan import without_article
from warpline.units import duration, speedup

sync_api = pytest.importorskip("playwright.sync_api", reason="needs `pip install playwright`")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "demo.html"
    assert run(["report", str(DEMO), "-o", str(file), "--no-cache"]) == 0
    return file


@pytest.fixture
def page(browser: sync_api.Browser, report: Path) -> Iterator[sync_api.Page]:
    yield from opened(browser, report)


def opened(browser: sync_api.Browser, file: Path) -> Iterator[sync_api.Page]:
    """The page, which must neither complain nor ask for anything."""
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector("#numbers")
    # A panel that is off the screen has no visible text to read.
    page.evaluate(
        "() => { for (const one of document.querySelectorAll('#panels > section')) one.style.contentVisibility = 'visible'; }"
    )
    yield page
    page.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    return diagnosed(DEMO)


def test_a_ticked_fix_shows_the_replayed_step(page: sync_api.Page, diagnosis: Diagnosis) -> None:
    answer, boxes = page.locator(".whatif-answer"), page.locator("#whatif input[type=checkbox]")
    assert page.locator("#whatif label b").all_inner_texts()[0] == without_article(diagnosis.plan[0].words)
    assert boxes.first.is_checked()
    first = answer.inner_text()
    now, after = diagnosis.judgement.evidence.step_ns, diagnosis.plan[0].new_step_ns
    gain = next(found.gain for found in diagnosis.judgement.findings if found.fix == diagnosis.plan[0].fix)
    assert f"{duration(now)} → {duration(after.expected)}, {speedup(gain.expected)}" in first
    assert "80 % range" in first
    boxes.nth(1).click()
    assert answer.inner_text() != first
    assert re.search("×|measure it", answer.locator(".strong").inner_text())
    boxes.last.click()
    assert "was not replayed" in answer.inner_text()
    assert "warpline whatif demo.json.xz --fix" in answer.locator("pre").inner_text()
    page.locator("#whatif").get_by_role("button", name="None", exact=True).click()
    assert "Tick a fix" in answer.inner_text()
    assert not any(box.is_checked() for box in boxes.all())


def names(page: sync_api.Page) -> list[str]:
    return page.locator("#table-kernels tbody th").all_inner_texts()


def test_a_table_is_sorted_by_a_click_and_says_so(page: sync_api.Page) -> None:
    calls = page.locator("#table-kernels thead th", has_text="calls")
    assert calls.get_attribute("aria-sort") == "none"
    calls.locator("button").click()
    assert calls.get_attribute("aria-sort") == "descending"
    counts = [
        int(text.replace(",", "")) for text in page.locator("#table-kernels tbody td:nth-child(4)").all_inner_texts()
    ]
    assert counts == sorted(counts, reverse=True)
    calls.locator("button").click()
    assert calls.get_attribute("aria-sort") == "ascending"
    page.locator("#table-kernels thead th button").first.click()
    assert names(page) == sorted(names(page), key=str.lower)


def test_a_table_is_filtered_and_grouped(page: sync_api.Page) -> None:
    table = page.locator("#table-kernels")
    table.get_by_role("searchbox").fill("gemm simt")
    shown = names(page)
    assert 0 < len(shown) < 15
    assert all("gemm" in name and "simt" in name for name in shown)
    assert table.get_by_role("status").inner_text().startswith(f"{len(shown)} rows of 39")
    table.get_by_role("searchbox").fill("")
    table.get_by_role("combobox").select_option(label="class")
    assert "gemm" in names(page)
    assert table.locator("thead th").all_inner_texts()[1].strip() == "rows"
    table.locator("tbody button", has_text="softmax").click()
    assert table.get_by_role("searchbox").input_value() == "softmax"
    assert table.get_by_role("combobox").input_value() == ""


def test_panels_work_with_the_keyboard_alone(page: sync_api.Page) -> None:
    page.locator("#whatif input").first.focus()
    page.keyboard.press("Space")
    assert "Tick a fix" in page.locator(".whatif-answer").inner_text()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.locator("#whatif input").nth(1).is_checked()
    page.locator("#table-kernels thead button").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    heading = page.locator("#table-kernels thead th").nth(1)
    assert heading.get_attribute("aria-sort") == "ascending"
    assert page.evaluate(
        "document.activeElement.closest('th') === document.querySelectorAll('#table-kernels thead th')[1]"
    )
    page.locator("#roofline .dot[tabindex='0']").focus()
    before = page.locator("#roofline [role=status]").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.locator("#roofline [role=status]").inner_text() != before
    page.locator("#flame .frame[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.get_by_role("button", name="Whole graph").is_enabled()
    page.keyboard.press("Escape")
    assert page.get_by_role("button", name="Whole graph").is_disabled()


def test_a_dot_of_the_roofline_leads_to_its_row(page: sync_api.Page) -> None:
    page.locator("#roofline .dot").first.dispatch_event("click")
    name = page.locator("#roofline [role=status]").inner_text().split(" ")[0]
    assert name.startswith("aten::")
    assert page.locator("#table-ops").get_by_role("searchbox").input_value() == name


def test_a_flame_graph_zooms_and_highlights(page: sync_api.Page) -> None:
    bars = page.locator("#flame .frame")
    whole = bars.count()
    bars.filter(has_text="aten::linear").first.click()
    assert bars.count() < whole
    page.get_by_role("button", name="Whole graph").click()
    assert bars.count() == whole
    page.get_by_role("searchbox", name="Highlight frames").fill("optimizer")
    assert page.locator("#flame .frame.match").count() > 0
    page.get_by_role("combobox", name="Flame graph").select_option(index=1)
    assert "CPU" in page.locator("#flame [role=status]").inner_text()


def test_the_budget_is_calculated_live(page: sync_api.Page, diagnosis: Diagnosis) -> None:
    answer = page.locator("#budget [role=status]")
    step = duration(diagnosis.judgement.evidence.step_ns)
    assert f"Bound by dispatch on the CPU: a step takes {step}." in answer.inner_text()
    page.get_by_label("CPU time per launch").fill("1")
    assert "Bound by the GPU" in answer.inner_text()
    page.get_by_label("CPU time per launch").fill("-1")
    assert page.get_by_label("CPU time per launch").get_attribute("aria-invalid") == "true"
    page.locator("#budget").get_by_role("button", name="This trace").click()
    assert step in answer.inner_text()


def test_the_memory_curve_shows_its_peak(browser: sync_api.Browser, tmp_path: Path) -> None:
    events = [
        op("aten::mm", 0, 5),
        *launched("k", 1, 10, 50, 1),
        *(memory(10 * step, 1_000_000 * step, 8_000_000) for step in range(1, 6)),
    ]
    file = tmp_path / "m.html"
    assert run(["report", str(write(tmp_path, events)), "-o", str(file), "--no-cache"]) == 0
    for page in opened(browser, file):
        assert "peak 5.00 MB allocated" in page.locator("#memory h3").inner_text()
        page.locator("#memory svg").focus()
        page.keyboard.press("ArrowLeft")
        assert "4.00 MB allocated, 8.00 MB reserved" in page.locator("#memory [role=status]").inner_text()


def test_hostile_names_are_text(browser: sync_api.Browser, tmp_path: Path) -> None:
    name = "</script><img src=x onerror=alert(1)>\x1b]0;\u202e"
    events = [op(name, 0, 20, external=1), *launched(name, 1, 30, 50, 1)]
    file = tmp_path / "h.html"
    assert run(["report", str(write(tmp_path, events)), "-o", str(file), "--no-cache"]) == 0
    for page in opened(browser, file):
        assert page.locator("img").count() == 0
        assert page.locator("#table-kernels tbody th").first.inner_text().startswith("</script><img")
