"""One suite over all renderers: each shows every section, every key, every value, and obeys no text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from rich.console import Console

from warpline.estimate import Estimate
from warpline.reports import html, markdown, terminal
from warpline.reports import json as json_renderer
from warpline.reports.sections import (
    Bar,
    Column,
    Command,
    Commands,
    Explained,
    Fact,
    Facts,
    Figure,
    Findings,
    Note,
    Notes,
    Part,
    Report,
    Section,
    Severity,
    Table,
    Text,
)

EVIL = "[bold]evil[/red] \x1b[31m `code` | <script> **x**"
COLUMNS = (
    Column("gain", "gain", "gain"),
    Column("gain_range", "range", "gain", priority=2),
    Column("new_step_ns", "new step", "ns", priority=3),
    Column("count", "count", "count", priority=4),
    Column("share", "time", "share", priority=5),
    Column("name", "kernel", key=True),
)
SYNC = Explained(
    "sync",
    "The CPU waits.",
    (Fact("confidence", "high"),),
    "in train.py:12",
    "Don't.",
    "compare it with `warpline compare`",
)
ROWS = (
    (1.409, Estimate(1.36, 1.409, 1.43), 5_620_000, 1312, 0.456, "gemm"),
    (15.62, Estimate(2, 2, 2), 1_000, 1, None, EVIL),
)
REPORT = Report(
    "trace.json.gz · NVIDIA H200",
    (
        Section(
            "health",
            "Profile health",
            (Notes((Note("warning", "zero-durations", "rounded", "Times are coarse.", ("record again",)),)),),
            is_lead=True,
        ),
        Section("verdict", "Verdict", (Text("Dispatch-bound.", "strong"),), is_lead=True),
        Section("time", "Time", (Bar(100, (Part("compute", 25), Part("idle", 75)), "busy 25.0 %"),)),
        Section("kernels", "Kernels", (Table(COLUMNS, ROWS, 7, "7 more kernels: -v"),)),
        Section("findings", "Findings", (Findings((SYNC,)),)),
        Section("facts", "Facts", (Facts((Fact("clock", "CUDA events"),)),)),
        Section("plot", "Plot", (Figure("  · ·\n ·", "a roof"),)),
        Section("next", "Next", (Commands((Command("warpline sql trace.json.gz", "query it"),)),)),
    ),
)


def as_terminal(report: Report, width: int = 80) -> str:
    return terminal.render(report, width).plain


def as_json(report: Report) -> str:
    return json.dumps(json_renderer.render(report), ensure_ascii=False)


RENDERERS: dict[str, Callable[[Report], str]] = {
    "terminal": as_terminal,
    "narrow terminal": lambda report: as_terminal(report, 40),
    "markdown": markdown.render,
    "html": html.render,
    "json": as_json,
}
PEOPLE = [name for name in RENDERERS if name != "json"]


@pytest.fixture(params=RENDERERS)
def text(request: pytest.FixtureRequest) -> str:
    return RENDERERS[request.param](REPORT)


def test_every_section_is_there_in_order(text: str) -> None:
    marks = ["trace.json.gz", "zero-durations", "Dispatch-bound.", "25", "kernel", "The CPU waits.", "CUDA", "· ·"]
    positions = [text.find(mark) for mark in marks]
    assert -1 not in positions
    assert positions == sorted(positions)


def test_every_row_keeps_its_key_and_what_is_hidden_is_said(text: str) -> None:
    assert "gemm" in text
    assert "evil" in text
    assert "7 more kernels: -v" in text


def test_what_to_do_and_what_to_type_are_in_full(text: str) -> None:
    for part in (
        "in train.py:12",
        "Don't.",
        "warpline sql trace.json.gz",
        "Times are coarse.",
        "record again",
        "high",
        "compare it",
    ):
        assert part in text


def test_no_escape_code_of_a_text_gets_through(text: str) -> None:
    assert "\x1b" not in text


def test_a_report_without_a_title_begins_with_its_first_section() -> None:
    report = Report("", (Section("a", "a.json: fine"), Section("b", "b.json: fine")))
    assert as_terminal(report) == "a.json: fine\nb.json: fine\n"
    assert markdown.render(report) == "## a.json: fine\n\n## b.json: fine\n"
    assert "<h1" not in html.render(report)


def test_no_line_ends_with_a_space(text: str) -> None:
    assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("name", ["terminal", "markdown", "html"])
def test_numbers_have_one_notation(name: str) -> None:
    shown = RENDERERS[name](REPORT)
    for number in ("1.41×", "15.6×", "1.36–1.43×", "2.00×", "5.62 ms", "1.00 µs", "1,312", "45.6 %", "–"):
        assert number in shown


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_terminal_shows_markup_as_it_is_and_fits(width: int) -> None:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(terminal.render(REPORT, width), soft_wrap=True, end="")
    printed = capture.get()
    assert "[bold]evil[/red] \\x1b[31m" in " ".join(printed.split())
    assert max(map(len, printed.splitlines())) <= width


def test_a_narrow_terminal_says_which_columns_it_leaves_out() -> None:
    assert "no room for range, new step, count, time in 40 columns" in " ".join(as_terminal(REPORT, 40).split())


def test_a_bar_adds_up_to_its_width() -> None:
    (bar,) = [line for line in as_terminal(REPORT).splitlines() if "█" in line]
    assert (bar.count("█"), bar.count("░")) == (15, 45)


def test_markdown_escapes_what_it_would_act_on() -> None:
    row = next(line for line in markdown.render(REPORT).splitlines() if "evil" in line)
    assert r"\[bold\]evil\[/red\]" in row
    assert r"\|" in row
    assert r"\<script\>" in row
    # Six columns: the bar in the name starts no seventh.
    assert len(row.replace(r"\|", "").strip("|").split("|")) == 6


def test_html_has_no_markup_of_a_text() -> None:
    shown = html.render(REPORT)
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert " style=" not in shown  # which the page's policy would refuse


def test_a_bar_in_html_adds_up_to_its_width() -> None:
    widths = [float(width) for width in re.findall(r'class="part[^"]*" x="[^"]*" width="([^"]*)"', html.render(REPORT))]
    assert widths == [2500, 7500]


def test_json_has_the_values_and_their_units() -> None:
    document = json_renderer.render(REPORT)
    assert document["schema"] == "warpline.report/1"
    (table,) = next(section for section in document["sections"] if section["name"] == "kernels")["content"]
    assert table["rows"][0] == {
        "gain": 1.409,
        "gain_range": {"low": 1.36, "expected": 1.409, "high": 1.43},
        "new_step_ns": 5_620_000,
        "count": 1312,
        "share": 0.456,
        "name": "gemm",
    }
    assert table["columns"][2] == {"name": "new_step_ns", "title": "new step", "unit": "ns", "key": False}
    assert table["rows"][1]["name"] == EVIL


def test_markdown_mentions_nobody() -> None:
    assert markdown.escaped("ask @ada or @ada/team, not a@b.c") == "ask @&#8203;ada or @&#8203;ada/team, not a@b.c"


@pytest.mark.parametrize(
    ("severities", "title"),
    [
        (("warning", "info"), '<details id="health"><summary>Health: 1 warning (a)</summary>'),
        (("error", "warning"), '<details id="health" open><summary>Health: 1 error and 1 warning (a, b)</summary>'),
        (("info", "info"), '<details id="health"><summary>Health: 2 notes</summary>'),
    ],
)
def test_folded_notes_say_how_many_there_are_and_an_error_is_open(severities: tuple[Severity, ...], title: str) -> None:
    notes = tuple(Note(severity, code, "text") for severity, code in zip(severities, "ab", strict=True))
    assert html.folded_notes(Section("health", "Health", (Notes(notes),))).startswith(title)


def test_the_first_sentence_of_an_answer_is_its_headline() -> None:
    shown = html.section(
        Section("verdict", "Verdict", (Text("It takes 1.5 ms. First, wait less.", "strong"),), is_lead=True)
    )
    assert '<p class="strong">It takes 1.5 ms.</p>\n<p class="lead">First, wait less.</p>' in shown
    assert 'class="section answer"' in shown


def test_small_parts_of_a_bar_are_other_in_its_legend() -> None:
    shown = html.section(Section("t", "T", (Bar(1000, (Part("compute", 990), Part("copy", 6), Part("memset", 4))),)))
    assert re.findall(r"</svg>(\w+) <b>([^<]+)</b>", shown) == [("compute", "99.0 %"), ("other", "1.0 %")]
