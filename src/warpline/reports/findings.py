"""Findings as sections: the gain of each fix, the evidence and its place, and the advice."""

from __future__ import annotations

from collections.abc import Sequence

from warpline.estimate import NOTICEABLE_GAIN, SHOWN_GAIN, Estimate
from warpline.findings.limits import MIN_GAIN, Limit, Limits
from warpline.findings.model import Finding, Verdict
from warpline.fixes import registry
from warpline.fixes.claim import Place
from warpline.fixes.words import StepNoun
from warpline.reports.sections import Column, Explained, Findings, Table, Value
from warpline.units import duration, several

FREE = {
    "dispatch": "a CPU that launches at once",
    "sync": "no waits for the GPU",
    "transfer": "copies that take no time",
    "input": "data always ready",
    "memory": "no allocations and device copies",
    "comm": "collectives that take no time",
    "kernel": "kernels as fast as fixes make them",
    "cold_start": "everything warm",
    "unknown": "no delays without a recorded reason",
}
"""What each limit makes free."""
BRIEF_LIMITS = 3
BEST_FIXES = 3
"""Fixes on the first screen, where no plan says what comes next."""
LISTED_OPS = 5
BRIEF_ADVICE = 138
"""Characters of advice on the first screen; -v shows the rest."""
_FIX = Column("fix", "fix", key=True)
_CONFIDENCE = Column("confidence", "confidence", priority=3)
_WHERE = Column("where", "where")
_RULE = Column("rule", "finding", priority=4)


def in_order(findings: Sequence[Finding], verdict: Verdict) -> list[Finding]:
    """The fix that the verdict names first, then the largest gain."""
    return sorted(findings, key=lambda finding: (finding.fix != verdict.fix, -finding.gain.expected))


def best_fixes(shown: Sequence[Finding], found: Sequence[Finding], noun: StepNoun) -> Table:
    """The fixes to consider first, with how many of all are hidden."""
    worth = worth_showing(found)
    columns = (_FIX, *_gain_columns(noun), _WHERE)
    rows = tuple((finding.fix, *gains(finding), first_place(finding.where, brief=True)) for finding in shown)
    note = _hidden_note(len(worth) - len(shown), len(found) - len(worth))
    return Table(columns, rows, len(found) - len(shown), note)


def worth_showing(findings: Sequence[Finding]) -> list[Finding]:
    """Those that gain enough for the first screen."""
    return [finding for finding in findings if finding.gain.expected >= SHOWN_GAIN]


def all_fixes(findings: Sequence[Finding], noun: StepNoun) -> Table:
    """Every replayed fix with a finding."""
    columns = (_FIX, *_gain_columns(noun), _CONFIDENCE, _WHERE, _RULE)
    rows = (
        (finding.fix, *gains(finding), finding.confidence, first_place(finding.where), finding.rule)
        for finding in findings
    )
    return Table(columns, tuple(rows))


def fixes_without(found: Sequence[Finding]) -> str:
    """The fixes that nothing in the recording asks for."""
    names = ", ".join(name for name in registry.all_fixes() if name not in {finding.fix for finding in found})
    return f"Without a finding here (warpline whatif --fix NAME has the number, or the reason): {names}."


def _gain_columns(noun: StepNoun) -> tuple[Column, ...]:
    return (
        Column("gain", "gain", "gain"),
        Column("gain_range", "range", "gain", priority=2),
        Column("new_step_ns", noun.new, "ns", priority=2),
    )


def limits(found: Limits, step_ns: float, noun: StepNoun) -> Table:
    """The step with each resource free, the largest gain first."""
    columns = (
        Column("free", "if this were free", key=True),
        Column("step_ns", noun.word, "ns"),
        Column("gain", "gain", "gain"),
        Column("gain_range", "range", "gain", priority=3),
        Column("now_ns", "on the critical path now", "ns", priority=2),
    )
    rows = tuple(
        (FREE[row.cause], row.step_ns.expected, row.gain.expected, row.gain, row.now_ns)
        for row in found.rows
        if _matters(row, step_ns)
    )
    return Table(columns, rows)


def small_limits(found: Limits, step_ns: float, noun: StepNoun, *, has_collectives: bool) -> str:
    """What was replayed too and gives nothing."""
    small = [FREE[row.cause] for row in found.rows if not _matters(row, step_ns)]
    if not has_collectives:
        small = [words for words in small if words != FREE["comm"]]
    listed = f"Replayed too, less than 1 % each: {'; '.join(small)}." if small else ""
    none = "" if has_collectives else f"{noun.one('the').capitalize()} has no collective (NCCL)."
    return " ".join(filter(None, (listed, none)))


def more_than_its_time(found: Limits, step_ns: float) -> str:
    """Why a wait gives back more than its own time on the path, where it does; empty elsewhere."""
    row = found.row("sync")
    if not _matters(row, step_ns) or step_ns - row.step_ns.expected <= 2 * row.now_ns:
        return ""
    return "Waits give back more than their own time: after one, the GPU is idle until the CPU has launched again."


def _matters(row: Limit, step_ns: float) -> bool:
    return row.gain.expected >= NOTICEABLE_GAIN or row.now_ns >= (NOTICEABLE_GAIN - 1) * step_ns


def brief_limits(found: Limits) -> str:
    """The limits that matter, on one line, without those that the verdict says; empty where none does."""
    large = [row for row in found.rows if row.gain.expected >= MIN_GAIN and row.cause not in found.named]
    return "; ".join(f"{FREE[row.cause]}: {duration(row.step_ns.expected)}" for row in large[:BRIEF_LIMITS])


def explained(findings: Sequence[Finding]) -> Findings:
    """Each finding as text: the claim, the places, and the advice."""
    return Findings(
        tuple(
            Explained(f"{finding.rule} → {finding.fix}", finding.claim, where=places(finding.where), how=finding.how)
            for finding in findings
        )
    )


def places(where: Sequence[Place]) -> str:
    """Where to look: source lines with their ops, or only ops if no line is known."""
    if not where:
        return ""
    lines: dict[str, list[str]] = {}
    for place in where:
        lines.setdefault(place.spot, []).append(place.op or "?")
    parts = [
        _before_ops(line) + ", ".join(ops[:LISTED_OPS]) + (" …" if len(ops) > LISTED_OPS else "")
        for line, ops in lines.items()
    ]
    return "in " + "; ".join(parts)


def _before_ops(spot: str) -> str:
    """A place before the ops there: a line, or words that a colon ends."""
    return f"{spot}{':' * (' ' in spot)} " if spot else ""


def first_place(where: Sequence[Place], brief: bool = False) -> str | None:
    """The first source line, or the op if no line is known, and the number of further places.

    A brief place shows the file's name without its folders.
    """
    spots = list(dict.fromkeys(place.spot or place.op or "?" for place in where))
    if not spots:
        return None
    site = where[0].site
    first = site.brief if brief and site else spots[0]
    return first + (f" and {len(spots) - 1} more" if len(spots) > 1 else "")


def brief_advice(how: str) -> str:
    """The first sentences of the advice, as many as fit on the first screen."""
    if len(how) <= BRIEF_ADVICE:
        return how
    end = how.rfind(". ", 0, BRIEF_ADVICE)
    kept = how[: end + 1] if end > BRIEF_ADVICE // 3 else how[:BRIEF_ADVICE].rsplit(" ", 1)[0]
    return f"{kept} … (-v)"


def gains(finding: Finding) -> tuple[Value, Estimate | None, Value]:
    """Gain, its range and the new step; where the range is wide, that it must be measured. What is saved once is no
    gain of a step."""
    gain, after = finding.gain, finding.new_step_ns
    if finding.once_ns:
        return finding.gain_words, None, None
    if gain.is_wide:
        return finding.gain_words, gain, None
    return gain.expected, gain, after.expected


def _hidden_note(more: int, small: int) -> str:
    parts = [several(more, "more fix", "more fixes")] if more else []
    parts += [f"{several(small, 'fix', 'fixes')} under {100 * (SHOWN_GAIN - 1):.0f} %"] if small else []
    return f"hidden: {' and '.join(parts)}; use -v to see all" if parts else ""
