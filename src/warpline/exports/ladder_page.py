"""A ladder as one HTML file: its picture, then the rungs. It has no script."""

from __future__ import annotations

from warpline.compare.ladder import Ladder
from warpline.reports import html
from warpline.reports.ladder_plot import ladder_svg
from warpline.reports.page.shell import document
from warpline.reports.sections import Report
from warpline.reports.svg import image


def ladder_page(report: Report, ladder: Ladder) -> str:
    """The page."""
    picture = image(ladder_svg(ladder), "A bar for each rung")
    body = f"<main>\n<figure>{picture}</figure>\n{''.join(map(html.section, report.sections))}\n</main>"
    return document(report.title, report.title, body)
