"""The plan as text: the step after each fix, and why the first comes first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpline.findings.audit import Objection
from warpline.findings.model import MEASURE_IT
from warpline.findings.plan import MOST_STEPS, PlanStep
from warpline.fixes.words import StepNoun
from warpline.reports.sections import Column, Content, Note, Notes, Table, Text
from warpline.units import capitalised, duration

ARTICLES = ("a ", "an ", "the ")


def arrows(plan: Sequence[PlanStep]) -> str:
    """The plan on one line, with the step after each fix: `CUDA graph (4.71 ms) → TF32 (1.91 ms)`."""
    first_wide = next((step for step in plan if step.gain.is_wide), None)  # those after it are no better known
    doubts = (f", {MEASURE_IT}" if step is first_wide else "" for step in plan)
    return " → ".join(
        f"{without_article(step.words)} ({duration(step.new_step_ns.expected)}{doubt})"
        for step, doubt in zip(plan, doubts, strict=True)
    )


def without_article(words: str) -> str:
    """What a fix is called, as a name."""
    return next((words.removeprefix(article) for article in ARTICLES if words.startswith(article)), words)


def why(reason: str | None) -> Iterator[Text]:
    """Why the verdict names what it names, where another fix gains more."""
    if reason:
        yield Text(f"{capitalised(reason)}.")


def brief(plan: Sequence[PlanStep], most: int = MOST_STEPS) -> Iterator[Text]:
    """The plan on one line, the first `most` steps of it; nothing for a plan of one step, which the verdict says."""
    if len(plan) > 1:
        more = " …" if len(plan) > most else ""
        yield Text(f"Plan: {arrows(plan[:most])}{more}")


def table(plan: Sequence[PlanStep], noun: StepNoun) -> Table:
    """The plan in full."""
    columns = (
        Column("fix", "fix", key=True),
        Column("new_step_ns", noun.new, "ns", has_bars=True),
        Column("new_step_range_ns", "range", "ns", priority=2),
        Column("gain", "gain in all", "gain"),
        Column("gain_range", "range of the gain", "gain", priority=3),
        Column("effort", "effort", priority=2),
    )
    rows = tuple(
        (
            step.fix,
            step.new_step_ns.expected,
            step.new_step_ns,
            step.gain.expected,
            step.gain,
            step.effort.replace("_", " "),
        )
        for step in plan
    )
    return Table(columns, rows)


def objections(found: Sequence[Objection]) -> Content:
    """What the audit withdrew or downgraded."""
    return Notes(
        tuple(Note("info", one.code, f"{one.finding}: {one.message}" if one.finding else one.message) for one in found)
    )
