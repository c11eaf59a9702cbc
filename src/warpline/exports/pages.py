"""A comparison and a ladder as one HTML file each: the answer with pictures, and no script."""

from __future__ import annotations

from warpline.compare.ladder import Ladder
from warpline.exports.pictures import drawn_window, step_picture
from warpline.findings.diagnosis import diagnose
from warpline.reports import html
from warpline.reports.ladder import ladder_svg
from warpline.reports.page.shell import document
from warpline.reports.sections import Report
from warpline.reports.svg import image
from warpline.trace.trace import Trace


def comparison_page(report: Report, a: Trace, b: Trace) -> str:
    """The answer, and a step of A above one of B at the same scale; idle causes and streams need no replay."""
    sides = {name: diagnose(trace, why=False) for name, trace in (("A", a), ("B", b))}
    span_ns = max(drawn_window(side)[0].length_ns for side in sides.values())
    pictures = "".join(
        f"<figure><figcaption>{name}: {html.text(side.trace.file.name)}</figcaption>"
        f"{image(step_picture(side, span_ns), f'One step of {name}')}</figure>"
        for name, side in sides.items()
    )
    body = f"""<main>
{"".join(map(html.section, report.sections))}
<section id="steps"><h2>One step of each <small>at the same scale</small></h2>{pictures}</section>
</main>"""
    return document(report.title, report.title, body)


def ladder_page(report: Report, ladder: Ladder) -> str:
    """The picture, then the rungs."""
    picture = image(ladder_svg(ladder), "A bar for each rung")
    body = f"<main>\n<figure>{picture}</figure>\n{''.join(map(html.section, report.sections))}\n</main>"
    return document(report.title, report.title, body)
