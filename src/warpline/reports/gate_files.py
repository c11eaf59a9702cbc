"""What a CI system takes from a gate: a JUnit file, and a comment for a pull request."""

from __future__ import annotations

from xml.etree import ElementTree

from warpline.compare.gate import Gate
from warpline.reports.compare import OUTCOMES, gate_report
from warpline.reports.markdown import escaped, render
from warpline.reports.sections import Figure, Report, Section, Table
from warpline.reports.waterfall import waterfall
from warpline.sanitise import sanitise, sanitise_lines


def junit(gate: Gate, name: str) -> str:
    """The gate as a test suite: a case for each budget, and one for the baseline. Inconclusive is skipped."""
    suite = ElementTree.Element("testsuite", name=sanitise(f"warpline gate {name}"))
    failed = skipped = 0
    for check in gate.checks:
        budget = check.budget
        case = _case(suite, name, f"{budget.number}{budget.sign}{budget.limit:g}")
        if not check.passed:
            failed += 1
            _add(case, "failure", f"{budget.number} is {check.value:g}, the limit is {budget.sign} {budget.limit:g}")
    if gate.comparison is not None:
        case = _case(suite, name, f"not slower than {name}")
        detail = "\n".join([*gate.comparison.reasons, "", waterfall(gate.comparison)])
        if gate.baseline_outcome == "regression":
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
    return ElementTree.SubElement(suite, "testcase", classname=sanitise(f"warpline.{name}"), name=sanitise(title))


def _add(case: ElementTree.Element, kind: str, message: str, detail: str = "") -> None:
    element = ElementTree.SubElement(case, kind, message=sanitise(message))
    element.text = sanitise_lines(detail) or None


def comment(gate: Gate, name: str) -> str:
    """Markdown for a pull request: the outcome, the budgets and the waterfall; tables are folded away.

    The first line is a mark by which a job finds its own comment again.
    """
    mark = "".join(letter for letter in name if letter.isalnum() or letter in "-_")
    lines = [f"<!-- warpline gate {mark} -->", f"### warpline gate: {escaped(name)}", f"**{OUTCOMES[gate.outcome]}**"]
    if gate.comparison is not None:
        lines += [escaped(gate.comparison.sentence), *(f"- {escaped(reason)}" for reason in gate.comparison.reasons)]
    report = gate_report(gate)
    tables = [content for content in report.sections[0].content if isinstance(content, Table)]
    drawn = [Figure(waterfall(gate.comparison))] if gate.comparison is not None else []
    shown = Report("", (Section("gate", "", (*tables, *drawn)),))
    lines.append(_without_titles(render(shown)))
    if gate.comparison is not None:
        rest = render(Report("", report.sections[1:]))
        lines.append(f"<details><summary>What changed, per step</summary>\n\n{_without_titles(rest)}\n</details>")
    return "\n\n".join(line for line in lines if line) + "\n"


def _without_titles(text: str) -> str:
    """Markdown without its empty headings."""
    return "\n".join(line for line in text.splitlines() if line.strip() not in {"#", "##"}).strip()
