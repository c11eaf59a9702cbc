"""What a notebook shows of a result: its report as a card of HTML that loads nothing, every text escaped."""

from __future__ import annotations

from functools import singledispatch

from msgspec.structs import replace

from warpline.analyses.roofline.entry import RooflineTable
from warpline.bench.result import Result
from warpline.compare.comparison import Comparison
from warpline.dive.model import Dive
from warpline.findings.diagnosis import Diagnosis
from warpline.findings.model import Finding, Verdict
from warpline.front.trace import Trace, TraceSteps
from warpline.replay.whatif import Prediction
from warpline.reports import compare, dive, html, roofline, whatif
from warpline.reports.bench import result_section
from warpline.reports.sections import Column, Fact, Facts, Findings, Note, Notes, Report, Section, Table, Text
from warpline.reports.summary import explained, summary
from warpline.reports.svg import BUSY_COLOURS, IDLE_COLOURS

LISTED_STEPS = 20
LISTED_OPS = 10
NOT_IN_CARDS = {"next", "plot"}
"""Sections that a card leaves out: commands of a shell, and drawings of characters."""
# Colours of text come from the notebook, so that a card reads well on a light and on a dark one.
STYLE = """\
.warpline { border: 1px solid rgba(128,128,128,.4); border-radius: 4px; padding: .6em .9em; max-width: 70em; }
.warpline h1 { font-size: 1em; margin: 0 0 .4em; } .warpline h2, .warpline h3 { font-size: 1em; margin: .6em 0 .2em; }
.warpline p { margin: .3em 0; } .warpline .quiet, .warpline dt, .warpline figcaption, .warpline th { opacity: .7; }
.warpline dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1em; margin: .3em 0; }
.warpline dl div { display: contents; } .warpline dd { margin: 0; } .warpline ul { list-style: none; padding: 0; }
.warpline td, .warpline th { text-align: left; vertical-align: top; padding: .1em 1em .1em 0; }
.warpline .number { text-align: right; white-space: nowrap; } .warpline figure { margin: 0; }
.warpline .bar > svg { width: 100%; height: 16px; } .warpline .legend li { display: inline-block; margin-right: 1em; }
.warpline .swatch { width: 10px; height: 10px; margin-right: 4px; }
.warpline .cell-bar { float: left; width: 8em; height: 10px; margin: 4px 8px 0 0; }
.warpline .strong { font-size: 1.25em; font-weight: 700; }
.warpline .how, .warpline .advice { border-left: 3px solid #6997d0; padding-left: .6em; }
.warpline .part, .warpline .cell-bar rect { fill: #9aa0a6; }
""" + "".join(
    f".warpline .part.{html.word(name)} {{ fill: {colour}; }}\n"
    for name, colour in {**IDLE_COLOURS, **BUSY_COLOURS, "idle-comm": IDLE_COLOURS["comm"]}.items()
)


def card(result: object) -> str:
    """The result as a card."""
    return card_of(report_of(result))


def card_of(report: Report) -> str:
    """A report as a card; the first part of an answer needs no title."""
    shown = tuple(
        replace(section, title="") if section.is_lead else section
        for section in report.sections
        if section.name not in NOT_IN_CARDS
    )
    return f'<div class="warpline"><style>{STYLE}</style>{html.render(Report(report.title, shown))}</div>'


@singledispatch
def report_of(result: object) -> Report:
    """The report of a result, in the length of a card."""
    raise TypeError(f"{type(result).__name__} has no card")


report_of.register(Diagnosis, summary)
report_of.register(Comparison, compare.report)
report_of.register(Prediction, whatif.report)
report_of.register(Dive, dive.report)


@report_of.register
def _(result: Verdict) -> Report:
    return Report("Verdict", (Section("verdict", "", (Text(result.sentence, "strong"),)),))


@report_of.register
def _(result: Finding) -> Report:
    return Report("", (Section("finding", "", (Findings((explained(result),)),)),))


@report_of.register
def _(result: RooflineTable) -> Report:
    return roofline.report(result, f"Roofline, {result.device}", "TRACE", LISTED_OPS)


@report_of.register
def _(result: Result) -> Report:
    return Report("", (result_section(result),))


@report_of.register
def _(result: Trace) -> Report:
    facts = Facts(tuple(Fact(label, text) for label, text in result.summary.items()))
    notes = tuple(Note(entry.severity, entry.code, entry.message) for entry in result.health_entries)
    return Report(result.file.name, (Section("trace", "", (facts, *([Notes(notes)] if notes else []))),))


@report_of.register
def _(result: TraceSteps) -> Report:
    columns = (Column("index", "step", "count", key=True), Column("name", "name"), Column("length_ns", "length", "ns"))
    listed = result.table.select("index", "name", "start_ns", "end_ns").head(LISTED_STEPS).iter_rows()
    rows = tuple((index, name or "", end_ns - start_ns) for index, name, start_ns, end_ns in listed)
    return Report(result.summary, (Section("steps", "", (Table(columns, rows),)),))
