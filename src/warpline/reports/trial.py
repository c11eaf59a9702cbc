"""What `warpline try` found, as sections: the best combination, a row for each fix, and what each changed."""

from __future__ import annotations

from collections.abc import Iterator

from warpline.estimate import Estimate
from warpline.reports.sections import (
    Column,
    Content,
    Explained,
    Fact,
    Figure,
    Findings,
    Note,
    Notes,
    Report,
    Section,
    Table,
    Text,
)
from warpline.reports.values import MISSING
from warpline.reports.waterfall import draw_waterfall
from warpline.trial.answer import NS_PER_S, TrialAnswer, TriedFix
from warpline.trial.live import LiveRow
from warpline.units import duration, several, size, speedup

BOUND = "upper bound"


def trial_report(answer: TrialAnswer) -> Report:
    """The whole report."""
    sections = [
        Section("answer", "Answer", tuple(_answer(answer)), is_lead=True),
        Section("tries", "Measured", (_table(answer),)),
    ]
    explained = tuple(_explained(row) for row in answer.tries if row.gain is not None)
    if explained:
        sections.append(Section("changes", "What was changed", (Findings(explained),)))
    notes = tuple(_notes(answer))
    if notes:
        sections.append(Section("notes", "Notes", (Notes(notes),)))
    return Report(f"try · {answer.step}", tuple(sections))


def live_report(rows: tuple[LiveRow, ...]) -> Report:
    """The processes that are measured now."""
    columns = (
        Column("process", "process", key=True),
        Column("state", "state"),
        Column("windows", "windows", "count"),
        Column("step_ns", "step", "ns"),
        Column("gain", "gain so far", "gain"),
    )
    shown = tuple(
        (row.name, row.state, row.windows, row.step_s * NS_PER_S if row.step_s else None, row.gain) for row in rows
    )
    return Report("measuring", (Section("processes", "", (Table(columns, shown),)),))


def _answer(answer: TrialAnswer) -> Iterator[Content]:
    base = answer.baseline_s
    if base is None:
        yield Text("The program as it is was not measured.", "strong")
        return
    step = f"A step ({answer.step}) takes {duration(base.expected * 1e9)}"
    best = answer.row("+".join(answer.best))
    if best is None or best.gain is None:
        yield Text(f"{step}. No fix that was tried is known to make it faster.", "strong")
    else:
        new = base.expected / best.gain.expected * 1e9
        yield Text(
            f"{step}; with {' and '.join(answer.best)} it takes {duration(new)}: {speedup(best.gain.expected)} "
            f"({speedup(best.gain.low)} to {speedup(best.gain.high)}).",
            "strong",
        )
        if best.sameness is not None:
            yield Text(f"The results: {best.sameness.sentence}.")
        if len(answer.best) > 1:
            yield Text("Each bar is what its fix changes on top of those above it:", "quiet")
        yield Figure(_waterfall(answer, base.expected * 1e9))
    yield Text(
        f"{several(answer.baseline_processes, 'process', 'processes')} of the program as it is, "
        f"up to {several(answer.windows, 'window')} of {several(answer.steps_per_window, 'step')} in each; the "
        "ranges hold with 90 %.",
        "quiet",
    )


def _waterfall(answer: TrialAnswer, base_ns: float) -> str:
    """From the program as it is to the best combination, which grew fix by fix; what was not measured on the way is
    one change with the next."""
    changes, before, names = [], base_ns, []
    for number, name in enumerate(answer.best, 1):
        names.append(name)
        row = answer.row("+".join(answer.best[:number]))
        if row is not None and row.gain is not None:
            after = base_ns / row.gain.expected
            changes.append((" + ".join(names), after - before))
            before, names = after, []
    return draw_waterfall(("as it is", base_ns), changes, "best")


def _table(answer: TrialAnswer) -> Table:
    columns = (
        Column("fix", "fix", key=True),
        Column("predicted", "predicted", "gain", priority=2),
        Column("gain", "measured", "gain"),
        Column("range", "range", "gain"),
        Column("verdict", "verdict"),
        Column("result", "result"),
        Column("memory", "memory", priority=3),
    )
    rows = [_row(row) for row in answer.tries]
    if all(row.predicted is None for row in answer.tries):
        return Table((columns[0], *columns[2:]), tuple((row[0], *row[2:]) for row in rows))
    return Table(columns, tuple(rows))


def _row(row: TriedFix) -> tuple[str | float | Estimate | None, ...]:
    if row.gain is None:
        return row.name, row.predicted, None, None, row.why_not, "", ""
    same = {True: "same", False: "different", None: "cannot tell"}[row.sameness.same if row.sameness else None]
    said = str(row.verdict).replace("_", " ")
    verdict = f"{said} ({BOUND})" if row.is_bound else said
    memory = f"{size(row.memory.before)} → {size(row.memory.after)}" if row.memory else MISSING
    return row.name, row.predicted, row.gain.expected, row.gain, verdict, same, memory


def _explained(row: TriedFix) -> Explained:
    facts = [Fact("changed", "; ".join(row.proof))]
    if row.sameness is not None:
        facts.append(Fact("result", row.sameness.sentence))
    if row.loss is not None:
        facts.append(Fact("loss", f"after {row.loss.steps} steps {row.loss.before:#.6g} → {row.loss.after:#.6g}"))
    if row.later_start_s is not None:
        pays = f", pays after {row.pays_after_steps:,} steps" if row.pays_after_steps else ""
        facts.append(Fact("start", f"{row.later_start_s:.0f} s later{pays}"))
    if row.note:
        facts.append(Fact("note", row.note))
    return Explained(row.name, row.does, tuple(facts), how=" and ".join(row.lines.splitlines()))


def _notes(answer: TrialAnswer) -> Iterator[Note]:
    if answer.stopped:
        yield Note("warning", "stopped", f"Ended early: {answer.stopped}; the rows show what is known.")
    open_rows = [row.name for row in answer.tries if row.is_open]
    if open_rows:
        more = "a larger --budget, or --fix for fewer of them, may decide it"
        yield Note("info", "open", f"Not known yet: {', '.join(open_rows)}; {more}.")
    if any(row.is_bound and row.gain for row in answer.tries):
        yield Note(
            "info",
            "bound",
            "A bound is measured with a program that is not the same: it shows what at most can be gained.",
        )
    writes = answer.use.writes
    if writes:
        files = ", ".join(writes[:4]) + (" …" if len(writes) > 4 else "")
        yield Note(
            "info", "writes", f"The program writes files outside the copy of its folder, and each run did so: {files}"
        )
