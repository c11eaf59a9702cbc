"""Takes the pictures of docs/commands/report.md: python page/pictures.py (needs Chromium and Pillow)."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image  # type: ignore[import-not-found, unused-ignore]
from playwright.sync_api import sync_playwright

import warpline

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "src" / "warpline" / "data" / "demo.json.xz"
TARGET = ROOT / "docs" / "pictures"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
KERNEL = """() => { const t = warpline.timeline, lane = t.events.lanes.find((l) => l.group.track.kind === 'gpu');
  const i = t.events.after(lane, t.time.length * 0.42), at = t.events.start[i];
  t.parts.map.scrollIntoView({block: 'start'}); scrollBy(0, -30);
  t.time.move(at - 2e5, at + 1e5); t.choose(i, true); }"""
RANGE = """() => { const t = warpline.timeline; t.time.move(2.2e7, 3.6e7); t.selectRange([2.45e7, 3.1e7]);
  t.parts.map.scrollIntoView({block: 'start'}); scrollBy(0, -30); }"""
PICTURES: dict[str, tuple[str, str]] = {
    "report-top": ("light", "() => scrollTo(0, 0)"),
    "report-timeline": ("light", "() => { document.getElementById('timeline').scrollIntoView({block: 'start'}); }"),
    "report-kernel": ("dark", KERNEL),
    "report-range": ("light", RANGE),
}
"""Each picture: the colours, and what is done before it is taken."""
COLOURS = 256
"""Of a picture, for a third of the bytes; rare colours stay."""


def ready(tab: Any) -> None:
    while not tab.evaluate("() => Boolean(window.warpline?.marks.complete && window.warpline.marks.painted)"):
        tab.wait_for_timeout(50)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        file = warpline.open(DEMO).report(Path(folder) / "report.html")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for name, (scheme, script) in PICTURES.items():
            size = {"width": 1280, "height": 760}
            context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
            tab = context.new_page()
            tab.goto(file.as_uri())
            ready(tab)
            tab.evaluate(script)
            tab.wait_for_timeout(500)
            tab.screenshot(path=TARGET / f"{name}.png")
            context.close()
            with Image.open(TARGET / f"{name}.png") as picture:
                few = picture.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
            few.save(TARGET / f"{name}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
