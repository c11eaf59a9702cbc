"""What a CI system takes from a gate: a JUnit file, and a comment for a pull request with a waterfall."""

from __future__ import annotations

from xml.etree import ElementTree

from warpline.compare.comparison import Comparison
from warpline.compare.gate import Gate
from warpline.compare.parts import StepPart
from warpline.reports.compare import OUTCOMES, gate_report
from warpline.reports.markdown import render
from warpline.reports.sections import Content, Figure, Report, Section, Table, Text
from warpline.reports.waterfall import draw_waterfall
from warpline.sanitise import sanitise, sanitise_lines

SHOWN = 8
SHORTEST = 0.005
"""Parts that change by a smaller share of the longer step are summed up in one bar."""


def junit(gate: Gate, name: str) -> str:
    """The gate as a test suite: a case for each budget, and one for the baseline.

    What cannot be compared fails, and what is inconclusive is skipped.
    """
    # XML allows no control characters, not even escaped ones.
    name = sanitise(name)
    suite = ElementTree.Element("testsuite", name=f"warpline gate {name}")
    failed = skipped = 0
    for check in gate.checks:
        budget = check.budget
        case = _case(suite, name, f"{budget.number}{budget.sign}{budget.limit:g}")
        if not check.passed:
            is_open = check.passed is None
            failed, skipped = failed + (not is_open), skipped + is_open
            value = f"{check.value.low:g} to {check.value.high:g}" if is_open else f"{check.value.expected:g}"
            message = f"{budget.number} is {value}, the limit is {budget.sign} {budget.limit:g}"
            _add(case, "skipped" if is_open else "failure", message)
    if gate.comparison is not None:
        case = _case(suite, name, f"not slower than {name}")
        detail = "\n".join([*gate.comparison.reasons, "", waterfall(gate.comparison)])
        if gate.baseline_outcome in {"regression", "not_comparable"}:
            failed += 1
            _add(case, "failure", gate.comparison.sentence, detail)
        elif gate.baseline_outcome == "inconclusive":
            skipped += 1
            _add(case, "skipped", gate.comparison.sentence, detail)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(failed))
    suite.set("skipped", str(skipped))
    suite.set("errors", "0")
    ElementTree.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suite, encoding="unicode")}\n'


def _case(suite: ElementTree.Element, name: str, title: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=f"warpline.{name}", name=title)


def _add(case: ElementTree.Element, kind: str, message: str, detail: str = "") -> None:
    element = ElementTree.SubElement(case, kind, message=sanitise(message))
    element.text = sanitise_lines(detail) or None


def comment(gate: Gate, name: str) -> str:
    """Markdown for a pull request: the outcome, the budgets and the waterfall; tables are folded away.

    The first line is a mark by which a job finds its own comment again.
    """
    mark = "".join(letter for letter in name if letter.isalnum() or letter in "-_")
    report = gate_report(gate)
    content: list[Content] = [Text(OUTCOMES[gate.outcome], "strong")]
    tables = [one for one in report.sections[0].content if isinstance(one, Table)]
    if gate.comparison is None:
        content += tables
    else:
        content += map(Text, (gate.comparison.sentence, *gate.comparison.reasons))
        content += [*tables, Figure(waterfall(gate.comparison))]
    answer = render(Report("", (Section("gate", f"warpline gate: {name}", tuple(content)),)))
    lines = [f"<!-- warpline gate {mark} -->", answer.strip()]
    if gate.comparison is not None:
        rest = render(Report("", report.sections[1:]))
        lines.append(f"<details><summary>What changed, per step</summary>\n\n{rest}\n</details>")
    return "\n\n".join(lines) + "\n"


def waterfall(comparison: Comparison) -> str:
    """The drawing, in monospaced characters."""
    a_ns, b_ns = comparison.a.step_ns, comparison.b.step_ns
    least = SHORTEST * max(a_ns, b_ns)
    large = [part for part in comparison.parts if abs(part.change_ns) >= least][:SHOWN]
    changes = [(_label(part), part.change_ns) for part in large]
    rest = comparison.change_ns - sum(change for _, change in changes)
    if rest:
        changes.append(("everything else", rest))
    return draw_waterfall(("A", a_ns), changes, "B")


def _label(part: StepPart) -> str:
    if part.kind == "idle":
        return f"idle: {part.name.replace('_', ' ')}"
    counts = f"{part.a_count} → {part.b_count}: " if part.a_count != part.b_count else ""
    return f"{counts}{part.name}"
