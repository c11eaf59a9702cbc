"""A job as one HTML file: the sections of its answer, a timeline, and a heat map of ranks and steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from warpline.ranks.account import RankStepTime
from warpline.ranks.job import Job
from warpline.ranks.words import shown_ranks
from warpline.reports import html
from warpline.reports.job import report
from warpline.reports.page.contract import Panels
from warpline.reports.page.document import DATA, NO_SCRIPT
from warpline.reports.page.job_timeline import drawn_ranks, job_timeline
from warpline.reports.page.planes import block
from warpline.reports.page.shell import asset, document
from warpline.reports.svg import BUSY_COLOURS, IDLE_COLOURS, image, label
from warpline.reports.svg import document as picture
from warpline.units import share

MOST_RANKS, MOST_STEPS = 64, 60
"""Rows and columns of the heat map."""
WIDTH, LEFT, RIGHT, GAP = 960, 64, 16, 14
TOP, ROW, BOTTOM = 30, 16, 26
MIN_LABEL = 34
"""A cell of this width, in pixels, has its number written in it."""
_PARTS = (
    ("wait_ns", "waits for others", IDLE_COLOURS["sync"]),
    ("compute_ns", "compute", BUSY_COLOURS["compute"]),
    ("transfer_ns", "transfer", BUSY_COLOURS["comm"]),
    ("idle_ns", "idle", IDLE_COLOURS["launch_latency"]),
)


def job_page(job: Job, folder: Path) -> str:
    """The page of the job in a folder."""
    full = report(job, True, folder)
    parts = {section.name: section for section in full.sections}
    health = html.folded_notes(parts["health"]) if "health" in parts else ""
    tables = [html.section(section) for name, section in parts.items() if name not in {"health", "verdict", "next"}]
    drawn = image(heat_map(job), "Share of each step that each rank waits, computes, transfers and is idle")
    timeline, steps = job_timeline(job)
    first_rows, other_rows = timeline.blocks()
    program = asset("bundle.js")
    body = f"""<nav id="contents" aria-label="Parts of this page"></nav>
<main>
<div id="summary">{html.section(parts["verdict"])}{health}</div>
<section id="timeline" aria-label="Timeline">{NO_SCRIPT}</section>
<p class="quiet">{html.text(_drawn(job, steps))}</p>
<section id="steps" class="section"><h2>Ranks and steps</h2>
<figure>{drawn}<figcaption>{html.text(_caption(job))}</figcaption></figure></section>
{"".join(tables)}
<div id="panels"></div>
{html.section(parts["next"])}
</main>
<script type="{DATA}" id="data-timeline">{first_rows}</script>
<script>{program}</script>
<script type="{DATA}" id="data-rest">{other_rows}</script>
<script type="{DATA}" id="data-panels">{block(msgspec.json.encode(Panels()))}</script>"""
    return document(full.title, full.title, body, program)


def _drawn(job: Job, steps: Sequence[int]) -> str:
    """What the timeline shows."""
    ranks = drawn_ranks(job)
    which = "all ranks" if len(ranks) == len(job.ranks) else f"{shown_ranks(ranks)} of {len(job.ranks)}"
    shown = "all steps" if len(steps) == len(job.step_numbers) else f"steps {steps[0]} to {steps[-1]}"
    return (
        f"On the common clock: {which}, {shown}. Each collective is split: waiting for other ranks, then transfer. "
        "A page of one rank: warpline report FOLDER --rank N."
    )


def heat_map(job: Job) -> str:
    """Ranks as rows and steps as columns, once for each part of the time; a darker cell is a larger share."""
    ranks, steps = _drawn_ranks(job), job.step_numbers[:MOST_STEPS]
    rows = [row[: len(steps)] for row in job.per_step if row[0].rank in ranks]
    panel = (WIDTH - LEFT - RIGHT - GAP * (len(_PARTS) - 1)) / len(_PARTS)
    height = TOP + ROW * len(rows) + BOTTOM
    parts = [label(LEFT - 8, TOP + ROW * at + 12, f"rank {rank}", "small", "end") for at, rank in enumerate(ranks)]
    for place, (name, title, colour) in enumerate(_PARTS):
        left, cell = LEFT + place * (panel + GAP), panel / len(steps)
        parts.append(label(left, TOP - 10, title, "bold"))
        for at, row in enumerate(rows):
            for step in row:
                parts += _cell(step, name, colour, left + step.step * cell, TOP + ROW * at, cell)
        parts.append(label(left, height - 10, f"step {steps[0]}", "small dim"))
        if len(steps) > 1:
            parts.append(label(left + panel, height - 10, str(steps[-1]), "small dim", "end"))
    return picture(WIDTH, height, f"{job.name}: ranks and steps", _caption(job), parts)


def _cell(step: RankStepTime, name: str, colour: str, x: float, y: float, width: float) -> Iterator[str]:
    part_ns = getattr(step, name)
    dark = part_ns / max(step.length_ns, 1)
    yield (
        f'<rect x="{x:.1f}" y="{y}" width="{width - 1:.1f}" height="{ROW - 1}" fill="{colour}" '
        f'fill-opacity="{0.05 + 0.95 * dark:.2f}"/>'
    )
    if width >= MIN_LABEL:
        yield label(x + width / 2, y + 12, share(part_ns, max(step.length_ns, 1)), "small", "middle")


def _drawn_ranks(job: Job) -> list[int]:
    """In order; of too many, those that hold others up most."""
    return sorted(one.rank for one in job.by_blame[:MOST_RANKS])


def _caption(job: Job) -> str:
    sentences = ["Share of each step of each rank; the four parts sum to 100 %."]
    if len(job.ranks) > MOST_RANKS:
        sentences.append(f"Of {len(job.ranks)} ranks, the {MOST_RANKS} that hold others up most are drawn.")
    if len(job.step_numbers) > MOST_STEPS:
        sentences.append(f"Of {len(job.step_numbers)} steps, the first {MOST_STEPS} are drawn.")
    return " ".join(sentences)
