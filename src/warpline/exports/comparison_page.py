"""A comparison as one HTML file: the answer, and a step of A above one of B at the same scale. It has no script."""

from __future__ import annotations

import base64

from warpline.exports.step_picture import drawn_window, step_picture
from warpline.findings.diagnosis import diagnose
from warpline.reports import html
from warpline.reports.page.document import asset, hash_source
from warpline.reports.sections import Report
from warpline.trace.trace import Trace


def comparison_page(report: Report, a: Trace, b: Trace) -> str:
    """The page; the pictures show idle causes and streams, which need no replay."""
    sides = {name: diagnose(trace, why=False) for name, trace in (("A", a), ("B", b))}
    span_ns = max(drawn_window(side)[0].length_ns for side in sides.values())
    pictures = "".join(
        f"<figure><figcaption>{name}: {html.text(side.trace.path.name)}</figcaption>"
        f'<img class="step-picture" alt="One step of {name}" src="{_data(step_picture(side, span_ns))}"></figure>'
        for name, side in sides.items()
    )
    style = asset("bundle.css")
    policy = f"default-src 'none'; style-src {hash_source(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{html.text(report.title)} · warpline</title>
<style>{style}</style>
</head>
<body>
<header><p class="mark">warpline</p><h1>{html.text(report.title)}</h1></header>
<main>
{"".join(map(html.section, report.sections))}
<section id="steps"><h2>One step of each <small>at the same scale</small></h2>{pictures}</section>
</main>
</body>
</html>
"""


def _data(picture: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()}"
