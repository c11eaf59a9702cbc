"""The page as one HTML document: text, data and program in a file that loads nothing and runs only its own script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from warpline.analyses.roofline.ops_from_elsewhere import foreign_ops
from warpline.analyses.roofline.pieces import GpuWork
from warpline.dive.model import Dive
from warpline.findings.cost import DailyCost
from warpline.findings.diagnosis import LISTED_KERNELS, Diagnosis
from warpline.reports import html
from warpline.reports.diagnosis import report
from warpline.reports.page.inside import inside_kernels
from warpline.reports.page.panels import panels
from warpline.reports.page.planes import block
from warpline.reports.page.shell import asset, document
from warpline.reports.page.timeline import DrawnTimeline, drawn_timeline
from warpline.reports.sections import Section, sanitised
from warpline.reports.summary import ANSWER, SUMMARISED, summary

DATA = "application/octet-stream"
"""Type of the script elements that hold data; no browser runs it."""
NO_SCRIPT = "<noscript><p>The timeline and the panels need JavaScript; the page loads nothing.</p></noscript>"
MOST_ROWS = 400_000
"""Rows of a served page; the shorter ones of what is in view are fetched."""


class Page(Struct, frozen=True):
    """A finished page."""

    html: str
    events: int
    """Rows on its timeline."""


class _Contents(Struct, frozen=True):
    """What the page is made of, besides the timeline."""

    diagnosis: Diagnosis
    work: GpuWork
    """The work of the trace's operations, which the timeline and the panels share."""
    again: str
    """The command that repeats the diagnosis."""
    cost: DailyCost | None = None
    dive: Dive | None = None

    @classmethod
    def of(cls, diagnosis: Diagnosis, again: str, cost: DailyCost | None, dive: Dive | None) -> _Contents:
        work = GpuWork(diagnosis.trace, foreign=foreign_ops(diagnosis.trace))
        return cls(diagnosis, work, again, cost, dive)

    def timeline(self) -> DrawnTimeline:
        return drawn_timeline(self.diagnosis, self.work, self.dive)


def page(diagnosis: Diagnosis, again: str = "", cost: DailyCost | None = None, dive: Dive | None = None) -> Page:
    """The page of a diagnosis; `again` is the command that repeats the diagnosis, `cost` the price of a GPU, `dive`
    what Nsight Compute says of its kernels."""
    contents = _Contents.of(diagnosis, again, cost, dive)
    timeline = contents.timeline()
    return Page(_document(contents, timeline, timeline.blocks()), timeline.head.events)


class ServedPage:
    """The page of a diagnosis for a local server: long rows at first, and all rows of a part on request."""

    def __init__(
        self, diagnosis: Diagnosis, again: str = "", most_rows: int = MOST_ROWS, dive: Dive | None = None
    ) -> None:
        self._contents = _Contents.of(diagnosis, again, None, dive)
        self.timeline: DrawnTimeline = self._contents.timeline()
        self.least_ns = self.timeline.least_for(most_rows)
        """Shorter rows are not on the page at first."""

    def document(self) -> str:
        """The page."""
        blocks = self.timeline.only(self.least_ns).blocks()
        return _document(self._contents, self.timeline, blocks, connects=True)

    def rows(self, start_ns: int, end_ns: int) -> bytes:
        """The long rows, and all between two times on the page."""
        return self.timeline.only(self.least_ns, start_ns, end_ns).packed()


def _document(contents: _Contents, timeline: DrawnTimeline, rows: tuple[str, str], connects: bool = False) -> str:
    """The page, with the rows of the timeline as text; `connects` if it may fetch more of them. Without any, an empty
    axis says nothing."""
    diagnosis, dive, (first, second) = contents.diagnosis, contents.dive, rows
    full = report(diagnosis, True, LISTED_KERNELS, contents.again, contents.cost)
    short = summary(diagnosis, full, contents.cost).sections
    rest = {section.name: section for section in full.sections if section.name not in SUMMARISED}
    following = html.section(rest.pop("next"))
    data = block(msgspec.json.encode(sanitised(panels(diagnosis, contents.work, timeline.head.zero_ns))))
    program = asset("bundle.js")
    body = f"""<nav id="contents" aria-label="Parts of this page"></nav>
<main>
<div id="summary">{"".join(_answer(short))}</div>
<section id="timeline" aria-label="Timeline"{"" if timeline.head.events else " hidden"}>{NO_SCRIPT}</section>
{"".join(html.section(section) for section in short if section.name not in ANSWER)}
{inside_kernels(dive) if dive else ""}
<div id="panels"></div>
{following}
{html.section(Section("details", "Everything else"), tuple(rest.values())) if rest else ""}
</main>
<script type="{DATA}" id="data-timeline">{first}</script>
<script>{program}</script>
<script type="{DATA}" id="data-rest">{second}</script>
<script type="{DATA}" id="data-panels">{data}</script>"""
    return document(diagnosis.trace.file.name, full.title, body, program, connects)


def _answer(sections: Sequence[Section]) -> Iterator[str]:
    """The sections above the timeline; what makes the profile doubtful is folded into one line."""
    for section in sections:
        if section.name in ANSWER:
            yield html.folded_notes(section) if section.name == "health" else html.section(section)
