"""Measures pages of `warpline report` in headless Chromium: file size, first picture, script time per frame, intervals.

    python benchmarks/page.py trace.json.gz … [--vary] [--prototype FOLDER] [--frames 240] [--repeats 7]

With `--vary`, durations are shortened at random by up to 1/16, because copies of one trace compress too well. With
`--prototype`, the page of an earlier sketch (its `make.py` writes it) is measured in the same run. With
`--repeats`, the pages are opened in turn so many times more, for the median time to the first picture. Needs
playwright.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from warpline.findings.diagnosis import diagnose
from warpline.reports.page import rows, timeline
from warpline.reports.page.document import page
from warpline.trace.open import open_trace

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--enable-precise-memory-info"]
OURS = {
    "ready": "Boolean(window.warpline?.marks.complete && window.warpline.marks.painted)",
    "length": "warpline.timeline.time.length",
    "move": "warpline.timeline.time.move(a, b)",
    "drew": "warpline.timeline.picture.took.draw",
    "python": "warpline.timeline.toggle('python')",
    "events": "warpline.timeline.head.events",
}
SKETCH = {
    "ready": "Boolean(typeof warpline !== 'undefined' && warpline.marks.complete && warpline.marks.painted)",
    "length": "warpline.state.full",
    "move": "warpline.move(a, b)",
    "drew": "warpline.marks.drew",
    "python": "warpline.toggle('python')",
    "events": "0",
}
FRAMES = """async (frames) => {
  const full = LENGTH, out = { draw: [], frame: [] }, tick = () => new Promise(requestAnimationFrame);
  let before = null;
  for (let k = 0; k < frames; k++) {
    const s = k / frames, phase = s < .5 ? s * 2 : (s - .5) * 2;
    const span = s < .5 ? full * Math.pow(20e3 / full, phase < .5 ? phase * 2 : 2 - phase * 2) : full / 40;
    const middle = s < .5 ? full * (.3 + .4 * phase) : phase * full, a = middle - span / 2, b = middle + span / 2;
    MOVE;
    const now = await tick();
    await Promise.resolve();
    if (before !== null) out.frame.push(now - before);
    before = now;
    out.draw.push(DREW);
  }
  return out;
}"""
"""Zooms from the whole trace to 20 µs and back, then pans over all of it."""


class VariedPack(rows.Pack):
    """Rows whose durations were shortened at random."""

    def pictures(self, zero_ns: int, first: int, beyond: int) -> bytes:
        """What drawing some of the parts needs, as bytes."""
        chance = np.random.default_rng(first)
        for part in self._parts[first:beyond]:
            part.ends[:] -= chance.integers(0, ((part.ends - part.starts) >> 4) + 1)
        return super().pictures(zero_ns, first, beyond)


def make(trace: Path, target: Path) -> dict[str, float]:
    """Write the page; the CPU seconds of reading, diagnosing and packing."""
    began = time.process_time()
    opened = open_trace(trace, cache=False)
    read = time.process_time()
    diagnosis = diagnose(opened)
    diagnosed = time.process_time()
    target.write_text(page(diagnosis).html)
    return {"read": read - began, "diagnose": diagnosed - read, "page": time.process_time() - diagnosed}


def middle(values: list[float]) -> str:
    ordered = sorted(values)
    return f"{statistics.median(ordered):.1f} / {ordered[int(0.95 * (len(ordered) - 1))]:.1f}"


def main_thread(session: Any) -> dict[str, float]:
    """CPU seconds of the page's main thread so far, which other programs on the machine do not change."""
    found = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return {name: found[f"{name}Duration"] for name in ("Task", "Script", "Layout", "RecalcStyle")}


def opened(browser: Any, file: Path, words: dict[str, str]) -> tuple[Any, list[str]]:
    """A tab in which the page is complete, and what it said."""
    tab, said = browser.new_context(viewport={"width": 1440, "height": 900}).new_page(), []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.goto(file.resolve().as_uri(), wait_until="commit")
    while not tab.evaluate(f"() => {words['ready']}"):
        tab.wait_for_timeout(500)
    return tab, said


def first_pictures(browser: Any, pages: dict[Path, dict[str, str]], repeats: int) -> dict[str, str]:
    """Milliseconds until the timeline is painted: median, least and most; the pages take turns."""
    painted: dict[Path, list[float]] = {file: [] for file in pages}
    for _ in range(repeats):
        for file, words in pages.items():
            tab, _ = opened(browser, file, words)
            painted[file].append(tab.evaluate("() => warpline.marks.painted"))
            tab.context.close()
    return {
        file.name: f"{statistics.median(all_):.0f} ({min(all_):.0f} to {max(all_):.0f})"
        for file, all_ in painted.items()
    }


def measure(browser: Any, file: Path, words: dict[str, str], frames: int) -> dict[str, Any]:
    """The figures of one page."""
    tab, said = opened(browser, file, words)
    context = tab.context
    marks = tab.evaluate("() => warpline.marks")
    paint = tab.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
    tab.evaluate(f"() => {words['python']}")
    if words is OURS:
        tab.evaluate("() => warpline.timeline.parts.stage.scrollIntoView({block: 'center'})")
    script = FRAMES.replace("LENGTH", words["length"]).replace("MOVE", words["move"]).replace("DREW", words["drew"])
    session = context.new_cdp_session(tab)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = main_thread(session)
    drawn = tab.evaluate(script, frames)
    spent = {name: round(1000 * (after - before[name]) / frames, 2) for name, after in main_thread(session).items()}
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")
    found = {
        "MB": round(file.stat().st_size / 1e6, 2),
        "events": tab.evaluate(f"() => {words['events']}"),
        "first contentful paint, ms": round(paint),
        "timeline painted, ms": round(marks["painted"]),
        "Python frames in, ms": round(marks["complete"]),
        "draw, ms, median / p95": middle(drawn["draw"]),
        "frame, ms, median / p95": middle(drawn["frame"]),
        "CPU ms per frame": spent,
        "heap + arrays, MB": [round(heap["usedSize"] / 1e6, 1), round(heap.get("backingStorageSize", 0) / 1e6, 1)],
        "said": said,
    }
    context.close()
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("traces", nargs="+", type=Path)
    asked.add_argument("--vary", action="store_true")
    asked.add_argument("--prototype", type=Path)
    asked.add_argument("--frames", type=int, default=240)
    asked.add_argument("--repeats", type=int, default=0)
    options = asked.parse_args()
    if options.vary:
        timeline.Pack = VariedPack  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for trace in options.traces:
            target = Path(folder) / "page.html"
            pages = {target: OURS}
            cost = {name: round(seconds, 2) for name, seconds in make(trace, target).items()}
            found = measure(browser, target, OURS, options.frames)
            print(
                json.dumps({"trace": trace.name, "CPU seconds": cost, **found}, ensure_ascii=False, indent=1),
                flush=True,
            )
            if options.prototype:
                sketch = Path(folder) / "sketch.html"
                pages[sketch] = SKETCH
                command = [sys.executable, str(options.prototype / "make.py"), str(trace), str(sketch)]
                subprocess.run([*command, *(["--vary"] if options.vary else [])], check=True, capture_output=True)
                found = measure(browser, sketch, SKETCH, options.frames)
                print(
                    json.dumps({"trace": trace.name, "sketch": True, **found}, ensure_ascii=False, indent=1), flush=True
                )
            if options.repeats:
                print(
                    json.dumps({"painted, ms": first_pictures(browser, pages, options.repeats)}, indent=1), flush=True
                )
        browser.close()


if __name__ == "__main__":
    main()
