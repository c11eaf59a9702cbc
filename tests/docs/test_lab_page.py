"""docs/lab.md shows the results that are stored beside it; `WARPLINE_UPDATE=1 pytest tests/docs` rewrites them."""

from __future__ import annotations

import os

from paths import ROOT

from warpline.lab.run import EXPERIMENTS
from warpline.lab.stored import read_results
from warpline.reports import markdown
from warpline.reports.lab import lab_report

PAGE, RESULTS = ROOT / "docs" / "lab.md", ROOT / "docs" / "lab-h200.json"
START, END = "<!-- results: WARPLINE_UPDATE=1 pytest tests/docs writes them -->\n", "<!-- end -->\n"


def test_the_page_has_the_stored_results() -> None:
    text = markdown.render(lab_report(read_results(RESULTS))).partition("\n\n")[2]  # the page has its own title
    head, rest = PAGE.read_text().split(START)
    written, tail = rest.split(END)
    if os.environ.get("WARPLINE_UPDATE"):
        PAGE.write_text(head + START + text + END + tail)
        written = text
    assert written == text, "docs/lab.md is behind docs/lab-h200.json: WARPLINE_UPDATE=1 pytest tests/docs"


def test_every_experiment_was_run_on_a_gpu() -> None:
    stored = read_results(RESULTS)
    assert (stored.sizes, [one.name for one in stored.experiments]) == ("full", list(EXPERIMENTS))
    assert [one.name for one in stored.experiments if one.not_run] == []
