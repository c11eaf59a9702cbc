"""What an answer says that its own numbers contradict: a second opinion on the audit, from the JSON alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from warpline.estimate import SHOWN_GAIN
from warpline.findings.diagnosis import Diagnosis
from warpline.findings.fix_table import fix_table
from warpline.fixes.registry import all_fixes
from warpline.reports.diagnosis import report
from warpline.reports.sections import Commands, Report, Table

TOLERANCE = 0.02
OUTSIDE = 0.15
"""The low end of a range may lie this far below what a device must still do: kernels differ between runs."""


def contradictions(answer: dict[str, Any]) -> list[str]:
    """Sentences about what does not fit together in a `warpline.diagnosis/1`."""
    found = list(_accounting(answer))
    if answer["replay"] is None:
        return found
    found += [*_verdict(answer), *_plan(answer)]
    for finding in answer["findings"]:
        found += [f"{finding['rule']}: {text}" for text in _finding(finding, answer["replay"]["bare_step_ns"])]
    return found


def _accounting(answer: dict[str, Any]) -> Iterator[str]:
    for device in answer["devices"]:
        if device["busy_ns"] + device["idle_ns"] != device["window_ns"]:
            yield "busy and idle time are not the window"
        if sum(device["busy"].values()) != device["busy_ns"] or sum(device["idle"].values()) != device["idle_ns"]:
            yield "the parts are not the whole"


def _finding(finding: dict[str, Any], bare: int) -> Iterator[str]:
    gain, new = finding["gain"], finding["new_step_ns"]
    for name, one in (("gain", gain), ("step", new)):
        if not 0 < one["low"] <= one["expected"] <= one["high"]:
            yield f"{name} {one} is not in order"
    if abs(bare / new["expected"] / gain["expected"] - 1) > TOLERANCE:
        yield f"{bare} over {new['expected']} is not {gain['expected']}"
    if finding["lost_ns"] > bare or abs(max(bare - new["expected"], 0) - finding["lost_ns"]) > TOLERANCE * bare + 1:
        yield f"{finding['lost_ns']} is not what {bare} and {new['expected']} differ by"
    if finding["evidence_ns"] <= 0 and finding["lost_ns"] > TOLERANCE * bare:
        yield "it saves time, and touches nothing"


def _verdict(answer: dict[str, Any]) -> Iterator[str]:
    verdict, plan, bare = answer["verdict"], answer["plan"], answer["replay"]["bare_step_ns"]
    causes = [row["cause"] for row in answer["limits"] if row["gain"]["expected"] >= 1.1]
    if verdict["cause"] not in {*causes[:2], "healthy", "unclear", "cold_start"} and len(causes) > 1:
        yield f"the verdict is {verdict['cause']}, and the limits are {causes}"
    if verdict["fix"]:
        if verdict["cause"] == "cold_start" and verdict["why"]:
            return  # it is lost once; the plan is about the steps after it
        if not plan or plan[0]["fix"] != verdict["fix"] or plan[0]["new_step_ns"] != verdict["new_step_ns"]:
            yield "the verdict is not the plan's first step"
        best = max((one["gain"]["expected"] for one in answer["findings"] if one["fix"] != "at_roofline"), default=1.0)
        if best > (1 + TOLERANCE) * verdict["gain"]["expected"] and not verdict["why"]:
            yield f"a finding gains {best}, and nothing says why the verdict is another"
        named = [one for one in answer["findings"] if one["fix"] == verdict["fix"]]
        if not any(one["gain"] == verdict["gain"] for one in named):
            yield "no finding says what the verdict says"
        return
    if verdict["new_step_ns"]["expected"] != bare:
        yield "without a fix the step is another one"
    if verdict["cause"] == "healthy":
        yield from _healthy(answer)


def _healthy(answer: dict[str, Any]) -> Iterator[str]:
    if any(entry["severity"] == "error" for entry in answer["trace"]["health"]):
        yield "healthy after an error"
    if any(one["cause"] == "kernel" and one["gain"]["low"] >= 1.05 for one in answer["findings"]):
        yield "healthy beside a fix of kernels that is certain to gain 5 %"


def _plan(answer: dict[str, Any]) -> Iterator[str]:
    before = answer["replay"]["bare_step_ns"]
    for step in answer["plan"]:
        if step["new_step_ns"]["expected"] >= before:
            yield f"{step['fix']} does not shorten the step"
        before = step["new_step_ns"]["expected"]
        for estimate in (step["gain"], step["new_step_ns"]):
            if not 0 < estimate["low"] <= estimate["expected"] <= estimate["high"]:
                yield f"{step['fix']}: {estimate} is not in order"
    names = [step["fix"] for step in answer["plan"]]
    if len(set(names)) < len(names):
        yield "a fix is made twice"


def below_device_work(diagnosis: Diagnosis) -> Iterator[str]:
    """Findings whose step is shorter than a device's busy time less all that they touch on the device."""
    if diagnosis.judgement is None or len(diagnosis.devices) > 1:
        return  # of several devices, each may wait for the others
    evidence = diagnosis.judgement.evidence
    busy = (1 - evidence.bare.idle_share) * evidence.step_ns
    for finding in diagnosis.findings:
        if finding.cause == "cold_start":
            continue  # a warm step does less than a typical one
        left = busy - evidence.time_per_step(evidence.changed(finding.fix).work)
        if finding.new_step_ns.expected < (1 - TOLERANCE) * left:
            yield f"{finding.rule}: a step of {finding.new_step_ns.expected} ns, with {left:.0f} ns of work left"
        if finding.new_step_ns.low < (1 - OUTSIDE) * left:
            yield f"{finding.rule}: a range from {finding.new_step_ns.low} ns, with {left:.0f} ns of work left"


def on_the_screen(diagnosis: Diagnosis) -> Iterator[str]:
    """What a reader of `warpline diagnose` finds contradictory, with -v and without."""
    if diagnosis.judgement is None:
        return
    alone = {row.fixes[0].name for row in fix_table(diagnosis.trace).alone}
    for verbose in (False, True):
        shown = report(diagnosis, verbose)
        rows = _fixes_shown(shown)
        for fix in _fixes_to_try(shown):
            if fix not in rows or fix not in alone:
                yield f"{fix} is to be tried, and the tables are {sorted(rows)} and {sorted(alone)}"
        changes = [one for one in diagnosis.findings if not all_fixes()[one.fix].is_limit]
        best = max(changes, key=lambda one: one.gain.expected, default=None)
        if rows and best is not None and best.gain.expected >= SHOWN_GAIN and best.fix not in rows:
            yield f"{best.fix} gains most, and the table is {sorted(rows)}"


def _fixes_shown(shown: Report) -> set[str]:
    tables = [one for section in shown.sections if section.name == "fixes" for one in section.content]
    return {str(row[0]) for table in tables if isinstance(table, Table) for row in table.rows}


def _fixes_to_try(shown: Report) -> list[str]:
    commands = [one for section in shown.sections for one in section.content if isinstance(one, Commands)]
    lines = [one.command for several in commands for one in several.commands if one.command.startswith("warpline try")]
    return [fix for line in lines for fix in re.findall(r"--fix (\S+)", line)]
