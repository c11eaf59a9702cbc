"""The page as one HTML document: text, data and program in a file that loads nothing and runs only its own script."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

import msgspec

from warpline.findings.diagnosis import Diagnosis
from warpline.records import dataclass
from warpline.reports import html
from warpline.reports.diagnosis import report
from warpline.reports.page import top
from warpline.reports.page.panels import panels
from warpline.reports.page.planes import deflated
from warpline.reports.page.timeline import packed_timeline

DATA = "application/octet-stream"
"""Type of the script elements that hold data; no browser runs it."""
NO_SCRIPT = "<noscript><p>The timeline and the panels need JavaScript; the page loads nothing.</p></noscript>"


@dataclass(frozen=True, slots=True)
class Page:
    """A finished page."""

    html: str
    events: int
    """Rows on its timeline."""


def page(diagnosis: Diagnosis, top_kernels: int = 20, again: str = "") -> Page:
    """The page of a diagnosis; `again` is the command that repeats the diagnosis."""
    full, timeline = report(diagnosis, True, top_kernels, again), packed_timeline(diagnosis)
    data = deflated(msgspec.json.encode(panels(diagnosis, timeline.head.zero_ns)))
    program, style = _asset("bundle.js"), _asset("bundle.css")
    policy = "; ".join(
        [
            *("default-src 'none'", f"script-src {_hash(program)}", f"style-src {_hash(style)}"),
            *("img-src data:", "base-uri 'none'", "form-action 'none'"),
        ]
    )
    summary = "".join(
        [
            top.verdict(diagnosis, full),
            top.time_bar(diagnosis),
            top.plan(diagnosis),
            top.health(full),
            top.findings(diagnosis),
        ]
    )
    written = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{html.text(diagnosis.trace.path.name)} · warpline</title>
<style>{style}</style>
</head>
<body>
<header><p class="mark">warpline</p><h1>{html.text(full.title)}</h1></header>
<nav id="contents" aria-label="Parts of this page"></nav>
<main>
<div id="summary">{summary}</div>
<section id="timeline" aria-label="Timeline">{NO_SCRIPT}</section>
<div id="panels"></div>
<section id="details"><h2>Everything else</h2>{"".join(top.details(full))}</section>
</main>
<script type="{DATA}" id="data-timeline">{timeline.first}</script>
<script>{program}</script>
<script type="{DATA}" id="data-python">{timeline.second}</script>
<script type="{DATA}" id="data-panels">{data}</script>
</body>
</html>
"""
    return Page(written, timeline.head.events)


def _asset(name: str) -> str:
    return (resources.files("warpline.reports.page") / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
