"""A comparison as sections: the verdict, what changed, and how often a step does what costs time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpline.compare.budgets import BudgetCheck
from warpline.compare.comparison import ComparedRuns, Comparison, Verdict
from warpline.compare.counts import differing
from warpline.compare.cpu_ops import MIN_SHARE, CpuOp
from warpline.compare.gate import Gate
from warpline.compare.parts import COPY, StepPart
from warpline.compare.words import in_words
from warpline.estimate import LEAST_EFFECT
from warpline.reports.sections import Column, Content, Note, Notes, Report, Section, Severity, Table, Text
from warpline.units import duration, several, speedup

LISTED = 12
MIN_WHOLE = 10_000
"""A larger number is shown without decimals."""
LONGEST_NAME = 160
"""Characters of a part's name in a sentence; the table has all."""
SHORTEST = 0.005
"""Parts that change by a smaller share of the longer step are left out of the first screen."""
WORDS = {
    "same": "same",
    "variant": "other kernel",
    "fused": "fused",
    "split": "split",
    "replaced": "replaced",
    "new": "new",
    "gone": "gone",
    "idle": "GPU idle",
}
"""Each kind of part in words."""


OUTCOMES = {
    "passed": "Passed.",
    "regression": "Regression.",
    "budget_exceeded": "Budget exceeded.",
    "inconclusive": "Inconclusive: neither passed nor failed.",
    "not_comparable": "Not checked: the recordings cannot be compared with the baseline.",
}


OPEN = (
    "Open: the limit is within the range. warpline run also times the step without the profiler, which makes the range "
    "narrow; recorded_step_ms limits the step as recorded."
)


def report(comparison: Comparison, verbose: bool = False) -> Report:
    """The comparison; `verbose` lists every part."""
    lead: list[Content] = [Text(comparison.sentence, "strong")]
    if comparison.same_unit:
        lead += _in_words(comparison)
    cold = comparison.cold_start
    if cold is not None:
        lead.append(Text(cold.sentence, "strong"))
        lead += map(Text, cold.remarks)
    if comparison.outcome is not None:
        lead.append(Text(comparison.outcome.sentence))
    if comparison.reasons:
        lead.append(reason_notes(comparison.verdict, comparison.reasons))
    sections = [Section("answer", "Answer", tuple(lead), is_lead=True)]
    if comparison.same_unit:
        whole = (comparison.a.step_ns, comparison.b.step_ns)
        decides = comparison.judged_by == "structure"
        unit = "step" if comparison.a.step.has_steps else "recording"
        table = _parts(comparison.parts, comparison.unexplained_ns, whole, unit, verbose, decides)
        what = f"recorded {unit}" if comparison.stopwatch_ratio is not None else unit
        sections.append(Section("parts", f"What changed, per {what}", (table,)))
    if cold is not None:
        table = _parts(cold.parts, cold.unexplained_ns, (cold.a_ns, cold.b_ns), cold.which, verbose)
        sections.append(Section("cold_start", f"What changed in the cold start, {cold.which}", (table,)))
    if comparison.same_unit and not comparison.is_on_cpu:
        sections.append(Section("counts", "How often, per step", (_counts(comparison),)))
    return Report(f"A {_named(comparison.a)} · B {_named(comparison.b)}", tuple(sections))


def reason_notes(verdict: Verdict, reasons: Sequence[str]) -> Notes:
    """What a verdict rests on, or what forbids one."""
    severity: Severity = "warning" if verdict in {"not_comparable", "inconclusive"} else "info"
    return Notes(tuple(Note(severity, verdict, reason) for reason in reasons))


def gate_report(gate: Gate, verbose: bool = False) -> Report:
    """The outcome of a gate: its budgets, and the comparison with the baseline; `verbose` lists every part of it."""
    lead: list[Content] = [Text(OUTCOMES[gate.outcome], "strong")]
    lead += _checks(gate, verbose)
    lead += map(Text, gate.notes)
    if (hidden := gate.hidden_steps) is not None:
        mean, number = gate.numbers["mean_step_ms"].expected, hidden.budget.number
        lead.append(
            Text(
                f"The typical step keeps the limit of {number}, but some steps are far longer: the mean of all "
                f'recorded steps is {mean:.3f} ms. --budget "mean_step_ms<={hidden.budget.limit:g}" limits that.'
            )
        )
    found = gate.comparison
    if found and gate.outcome == "inconclusive" and found.judged_by != "busy" and found.work_ratio.low > 1:
        lead.append(Text("The GPU's own work has certainly become longer: --metric busy judges that alone.", "quiet"))
    sections = [Section("gate", "Gate", tuple(lead), is_lead=True)]
    title = gate.files[0] + (f" and {len(gate.files) - 1} more" if len(gate.files) > 1 else "")
    if found is None:
        return Report(title, tuple(sections))
    compared = report(found, verbose)
    return Report(f"baseline as A · {title} as B", (*sections, *compared.sections))


def _checks(gate: Gate, verbose: bool) -> Iterator[Content]:
    """Every check; of many, those that are not kept."""
    checks = gate.checks
    if len(checks) > LISTED and not verbose:
        checks = tuple(check for check in checks if not check.passed)
    if checks:
        columns = (
            Column("number", "per step" if gate.runs else "per launch", key=True),
            Column("baseline", "baseline", "number"),
            Column("value", "measured", "number"),
            Column("limit", "limit", aligned="right"),
            Column("passed", ""),
        )
        rows = tuple(
            (
                check.budget.number,
                None if check.baseline is None else _shown(check.baseline),
                _shown(check.value.expected),
                f"{check.budget.sign} {_limit(check.budget.limit)}",
                _outcome(check),
            )
            for check in checks
        )
        yield Table(columns, rows).without_empty("baseline")
    if len(checks) < len(gate.checks):
        rest = f"{len(gate.checks) - len(checks)} more are" if checks else f"All {len(gate.checks)} limits are"
        yield Text(f"{rest} kept; -v lists them.", "quiet")
    if any(check.passed is None for check in checks):
        yield Text(OPEN, "quiet")


def _shown(value: float) -> float:
    return round(value, 3) if value < MIN_WHOLE else round(value)


def _limit(value: float) -> str:
    return f"{value:g}" if value < MIN_WHOLE else f"{value:,.0f}"


def _outcome(check: BudgetCheck) -> str:
    if check.passed is None:
        return f"open: {check.value.low:.3f} to {check.value.high:.3f}"
    return "kept" if check.passed else "exceeded" if check.budget.sign == "<=" else "not reached"


def _in_words(comparison: Comparison) -> Iterator[Text]:
    """The largest parts as sentences."""
    idle_a, idle_b = (sum(side.step.idle_ns.values()) for side in (comparison.a, comparison.b))
    whole = max(comparison.a.step_ns, comparison.b.step_ns)
    work = comparison.work_ratio
    if comparison.judged_by in {"step", "stopwatch"} and (work.low > 1 or work.high < 1):
        less = "less" if work.expected < 1 else "more"
        yield Text(f"The GPU has {less} to do: {in_words(work)}.")
    if abs(idle_b - idle_a) >= SHORTEST * whole:
        counted = differing(comparison.a.counts, comparison.b.counts, LEAST_EFFECT)
        because = f" ({counted})" if counted else ""
        yield Text(f"The GPU is idle for {duration(idle_b)} a step instead of {duration(idle_a)}{because}.")
    if abs(idle_b - idle_a) >= MIN_SHARE * whole:
        yield from (Text(_cpu_sentence(op)) for op in comparison.cpu_ops)
    decides = comparison.judged_by == "structure"
    kernels = [part for part in comparison.parts if part.kind != "idle" and _is_large(part, whole, decides)]
    for part in kernels[:3]:
        yield Text(_sentence(part))


def _cpu_sentence(op: CpuOp) -> str:
    if not op.b_ns:
        return f"The CPU is no longer in {op.name}: {duration(op.a_ns)} a step."
    instead = f"instead of {duration(op.a_ns)}" if op.a_ns else "and was not before"
    return f"The CPU is in {op.name} for {duration(op.b_ns)} a step {instead}."


def _sentence(part: StepPart) -> str:
    times = f"{duration(part.a_ns)} → {duration(part.b_ns)}"
    name = part.name if len(part.name) <= LONGEST_NAME else f"{part.name[:LONGEST_NAME].rstrip()} …"
    if part.kind in {"fused", "split", "replaced"}:
        what = "operation" if any(map(COPY.match, (*part.a, *part.b))) else "kernel"
        became = f"{several(part.a_count, what)} became {part.b_count}"
        return f"{became}: {name}, {times}."
    if part.kind in {"new", "gone"}:
        number = part.a_count + part.b_count
        many = (
            f"{number} × " if number > 1 and len({*part.a, *part.b}) == 1 and number > len(part.a) + len(part.b) else ""
        )
        return f"{many}{name} {'is' if number == 1 else 'are'} {part.kind}: {duration(part.b_ns or part.a_ns)}."
    gain = f", {speedup(part.a_ns / part.b_ns)}" if part.b_ns and part.a_ns > part.b_ns else ""
    return f"{name}: {times}{gain}."


def _is_large(part: StepPart, whole_ns: int, structure_decides: bool) -> bool:
    """Whether a part is worth showing: it changed much, or its operations are what the verdict rests on."""
    differs = structure_decides and part.a_count != part.b_count
    return differs or abs(part.change_ns) >= SHORTEST * whole_ns


def _parts(
    parts: Sequence[StepPart],
    unexplained_ns: int,
    whole: tuple[int, int],
    name: str,
    verbose: bool,
    structure_decides: bool = False,
) -> Table:
    """The parts of a difference; `whole` are the times of A and of B, and `name` says of what."""
    has_places = any(part.where for part in parts)
    columns = (
        Column("kind", "kind"),
        Column("a_ns", "A", "ns"),
        Column("b_ns", "B", "ns"),
        Column("change_ns", "change", "change_ns"),
        Column("counts", "operations", aligned="right", priority=2),
        *([Column("where", "where", priority=3)] if has_places else []),
        Column("name", "part", key=True),
    )
    large = [part for part in parts if verbose or _is_large(part, max(whole), structure_decides)]
    shown = large if verbose else large[:LISTED]
    rest = [part for part in parts if part not in shown]
    rows: list[tuple[str | int | None, ...]] = [
        (_word(part), part.a_ns, part.b_ns, part.change_ns, _how_many(part), part.where or None, _name(part))
        for part in shown
    ]
    if rest:
        a_ns, b_ns = (sum(getattr(part, side) for part in rest) for side in ("a_ns", "b_ns"))
        rows.append(("", a_ns, b_ns, b_ns - a_ns, None, "", several(len(rest), "other part")))
    if unexplained_ns:
        rows.append(("GPU idle", None, None, unexplained_ns, None, "", "without a known cause"))
    rows.append(("", *whole, whole[1] - whole[0], None, "", name))
    if not has_places:
        rows = [(*row[:-2], row[-1]) for row in rows]
    note = f"{several(len(rest), 'part')} changed by less; -v lists them" if rest else ""
    return Table(columns, tuple(rows), hidden=len(rest), hidden_note=note)


def _word(part: StepPart) -> str:
    return "copy" if part.is_copy and part.kind in {"same", "variant"} else WORDS[part.kind]


def _name(part: StepPart) -> str:
    return part.name.replace("_", " ") if part.kind == "idle" else part.name


def _how_many(part: StepPart) -> str | None:
    if part.kind == "idle":
        return None
    return str(part.a_count) if part.a_count == part.b_count else f"{part.a_count} → {part.b_count}"


def _counts(comparison: Comparison) -> Table:
    columns = (Column("what", "per step", key=True), Column("a", "A", "count"), Column("b", "B", "count"))
    rows = tuple((name, comparison.a.counts[name], comparison.b.counts[name]) for name in comparison.a.counts)
    return Table(columns, rows)


def _named(side: ComparedRuns) -> str:
    files = side.measurements[0].file + (f" and {side.runs - 1} more" if side.runs > 1 else "")
    steps = several(len(side.step.lengths_ns), "step") if side.step.has_steps else "no steps"
    return f"{files} ({steps})"
