"""Every answer about a recording agrees with every other, and with its own account of the time.

Nothing here knows the truth about a program: these are the faults that a reader sees without knowing it. The recordings
are the bundled trace, one of each kind in tests/data, the smallest of each cause in the recorded suites, and
programs made by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from contradictions import on_the_screen
from kineto_files import write
from paths import DEMO, RECORDINGS, SUITES
from small_programs import GEMM_FP32, H200, MUL, Body, Program, repeated

from warpline.analyses.budget import DispatchBudget
from warpline.analyses.device import trace_device
from warpline.errors import CannotAnswer
from warpline.estimate import CLEAR_GAIN, SHOWN_GAIN, Estimate
from warpline.findings.budget import bare_budget, outlook
from warpline.findings.diagnosis import Diagnosis, diagnose
from warpline.findings.fix_table import every_fix, whatif
from warpline.findings.model import MEASURE_IT
from warpline.fixes.words import StepNoun
from warpline.replay.whatif import Prediction
from warpline.reports.page.whatif_panel import whatif_panel
from warpline.reports.plan import brief
from warpline.reports.whatif import report_all
from warpline.trace.open import open_trace

ROUNDING = 0.01
ONE_BASE = 0.02
SAME_GAIN = 0.02
MIN_CAUSE_SHARE = 0.1
"""A cause has at least this share of the time, as it has in the limits."""
ENDS = ("low", "expected", "high")
MAX_OVER_ACCOUNT = 1.5
"""A claim of a cold start has at most so many times what the account has."""
DISPATCH_LEADS, GPU_LEADS = 0.9, 1.25
"""Dispatch over the GPU's work: a budget that is bound by the other contradicts the verdict from there on."""
POINTS = 1.5
"""A share is the account's within so many percentage points."""
IN_THE_ACCOUNT = ("dispatch", "sync", "transfer", "input", "comm", "cold_start", "kernel")
"""Causes with a part of their own: copies on the device are busy time of kernels."""
TIME = r"([\d.,]+ (?:ns|µs|ms|s|min|h)\b)"
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}


def dispatch_bound(program: Program) -> None:
    for _ in range(60):
        program.op("aten::mul", (MUL, 2), cpu=20, shapes=[[64, 64]], dtype="float", grid=4)
    program.wait()


def kernel_bound(program: Program) -> None:
    for _ in range(4):
        program.op("aten::mm", (GEMM_FP32, 1500), shapes=[[2048, 2048], [2048, 2048]], dtype="float")


def copy_bound(program: Program) -> None:
    program.copy("HtoD (Pageable -> Device)", 4000, 40_000_000)
    program.op("aten::mm", (GEMM_FP32, 500), shapes=[[2048, 2048], [2048, 2048]], dtype="float")


BODIES: dict[str, Body] = {"dispatch": dispatch_bound, "kernel": kernel_bound, "copy": copy_bound}


def smallest_of_each_cause() -> dict[str, Path]:
    """A recording of each cause from the suites, where they are at hand."""
    found: dict[str, Path] = {}
    for suite in sorted(SUITES.glob("*/faults.json")):
        for case in json.loads(suite.read_text())["cases"]:
            file = suite.with_name(f"{case['name']}.plain.json.gz")
            cause = case["cause"]
            if file.exists() and (cause not in found or file.stat().st_size < found[cause].stat().st_size):
                found[cause] = file
    return found


CHOICE: dict[str, Path | Body] = {
    "demo": DEMO,
    **{file.name.partition(".")[0]: file for file in RECORDINGS},
    **{f"smallest_{cause}": file for cause, file in smallest_of_each_cause().items()},
    **{f"made_{name}": body for name, body in BODIES.items()},
}


class Answers:
    """What is said of one recording; each question is asked once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trace = open_trace(path, cache=False)
        self.diagnosis: Diagnosis = diagnose(self.trace, why=True)
        self.json: dict[str, Any] = self.diagnosis.to_dict()
        self.rows: dict[str, Prediction] = {one.fixes[0].name: one for one in every_fix(self.trace)}
        self.findings: dict[str, dict[str, Any]] = {one["fix"]: one for one in self.json["findings"]}

    @property
    def bare_ns(self) -> float:
        return float(self.json["replay"]["bare_step_ns"])

    @property
    def step_count(self) -> int:
        return int(self.json["trace"]["steps"])

    @cached_property
    def all_steps(self) -> dict[str, Any]:
        chosen = open_trace(self.path, cache=False, steps=f"0:{self.step_count}")
        return diagnose(chosen, why=True).to_dict()


@pytest.fixture(params=list(CHOICE), scope="module")
def said(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    chosen = CHOICE[request.param]
    if not isinstance(chosen, Path):
        chosen = write(tmp_path_factory.mktemp("made"), repeated(chosen).events, **H200)
    known = Answers(chosen)
    if known.json["verdict"] is None:
        pytest.skip("it cannot be replayed")
    return known


def apart(one: float, other: float) -> float:
    """How far two numbers are apart, as a share of the larger."""
    return abs(one - other) / max(abs(one), abs(other), 1e-12)


def same(one: dict[str, float], other: Estimate) -> bool:
    return all(apart(one[end], getattr(other, end)) <= ROUNDING for end in ENDS)


def test_the_same_question_has_the_same_answer_with_and_without_the_cache(said: Answers) -> None:
    for _ in range(2):  # the first fills the cache, the second reads it
        again = diagnose(open_trace(said.path), why=True)
    assert again.to_dict() == said.json


def test_all_steps_selected_is_none_selected(said: Answers) -> None:
    if not said.step_count:
        pytest.skip("it has no steps")
    chosen = said.all_steps
    assert [chosen["verdict"][key] for key in ("cause", "fix")] == [
        said.json["verdict"][key] for key in ("cause", "fix")
    ]
    for one in chosen["findings"]:
        if one["fix"] in said.findings:
            assert apart(one["gain"]["expected"], said.findings[one["fix"]]["gain"]["expected"]) <= SAME_GAIN, one[
                "fix"
            ]


def test_a_fix_has_one_number_in_diagnose_whatif_plan_and_page(said: Answers) -> None:
    panel = whatif_panel(said.diagnosis)
    shown = {one.fixes[0]: one for one in panel.replayed if len(one.fixes) == 1} if panel else {}
    names = [choice.name for choice in panel.fixes] if panel else []
    for name, finding in said.findings.items():
        assert same(finding["gain"], said.rows[name].gain), name
        assert same(finding["new_step_ns"], said.rows[name].new_step_ns), name
        assert same(finding["gain"], shown[names.index(name)].gain), name
    plan = said.json["plan"]
    if plan:
        assert plan[0]["gain"] == said.findings[plan[0]["fix"]]["gain"]
        assert plan[0]["new_step_ns"] == said.findings[plan[0]["fix"]]["new_step_ns"]
        assert plan[0]["fix"] == said.json["verdict"]["fix"] or said.json["verdict"]["cause"] == "cold_start"


def test_a_fix_asked_for_by_name_has_the_same_number(said: Answers) -> None:
    for name in list(said.findings)[:1]:
        alone = whatif(said.trace, [name])
        assert alone.gain == said.rows[name].gain
        assert alone.new_step_ns == said.rows[name].new_step_ns


def test_fixes_of_the_plan_asked_for_together_have_the_plan_s_number(said: Answers) -> None:
    names: list[str] = []
    for step in said.json["plan"]:
        names.append(step["fix"])
        together = whatif(said.trace, names).to_dict()
        assert (step["gain"], step["new_step_ns"]) == (together["gain"], together["new_step_ns"]), names


def test_a_wide_range_is_to_be_measured_everywhere(said: Answers) -> None:
    wide = {name for name, row in said.rows.items() if row.gain.is_wide}
    listed = report_all(list(said.rows.values()), "", StepNoun("step")).sections[0].content[0]
    told = {str(row[0]) for row in listed.rows if row[1] == MEASURE_IT} if hasattr(listed, "rows") else set()
    assert told == wide
    for finding in said.diagnosis.findings:
        assert (finding.gain_words == MEASURE_IT) == (finding.fix in wide)
        assert finding.verify.startswith(MEASURE_IT) == (finding.fix in wide)
    sentence, fix = said.diagnosis.verdict.sentence if said.diagnosis.verdict else "", said.json["verdict"]["fix"]
    if fix in wide and said.json["verdict"]["cause"] != "cold_start":
        assert MEASURE_IT in sentence


def test_the_screen_names_what_gains_most_and_tries_what_it_shows(said: Answers) -> None:
    assert list(on_the_screen(said.diagnosis)) == []


def gains(said: Answers) -> Iterator[tuple[str, dict[str, float], dict[str, float]]]:
    """What stands beside each other: a gain, and the step with it."""
    for name, finding in said.findings.items():
        yield name, finding["gain"], finding["new_step_ns"]
    for step in said.json["plan"]:
        yield f"plan, {step['fix']}", step["gain"], step["new_step_ns"]
    for limit in said.json["limits"]:
        yield f"limit, {limit['cause']}", limit["gain"], limit["step_ns"]
    verdict = said.json["verdict"]
    if verdict["cause"] != "cold_start":  # its gain counts from the mean step, and says so
        yield "verdict", verdict["gain"], verdict["new_step_ns"]


def test_gain_times_new_step_is_the_present_step(said: Answers) -> None:
    for name, gain, step in gains(said):
        assert apart(gain["expected"] * step["expected"], said.bare_ns) <= ONE_BASE, name


def test_nothing_that_gains_makes_a_step_longer(said: Answers) -> None:
    for name, gain, step in gains(said):
        assert gain["low"] <= gain["expected"] <= gain["high"], name
        assert step["low"] <= step["expected"] <= step["high"], name
        if gain["expected"] >= 1:
            assert step["expected"] <= (1 + ROUNDING) * said.bare_ns, name


def test_a_plan_never_goes_up_and_has_no_fix_twice(said: Answers) -> None:
    plan = said.json["plan"]
    steps = [said.bare_ns, *(step["new_step_ns"]["expected"] for step in plan)]
    assert steps == sorted(steps, reverse=True)
    assert len({step["fix"] for step in plan}) == len(plan)
    if len(plan) > 1:
        assert any("→" in text.text for text in brief(said.diagnosis.plan))


def test_would_is_said_only_where_the_range_excludes_a_loss(said: Answers) -> None:
    verdict = said.json["verdict"]
    if " would bring it to " in verdict["sentence"]:
        first = said.json["plan"][0] if said.json["plan"] else verdict
        brought = (
            said.json["plan"][1] if first["gain"]["expected"] < CLEAR_GAIN and len(said.json["plan"]) > 1 else first
        )
        assert brought["gain"]["low"] >= 1.0


def shares(device: dict[str, Any]) -> dict[str, float]:
    """Shares of a device's time by cause; busy time that a cause owns belongs to it."""
    times = {name.removesuffix("_ns"): value for name, value in device["idle"].items()}
    times["dispatch"] += times["launch_latency"]
    times["transfer"] += device["busy"]["copy_ns"]
    times["comm"] += device["busy"]["comm_ns"]
    times["kernel"] = device["busy"]["compute_ns"]
    return {name: value / max(device["window_ns"], 1) for name, value in times.items()}


def test_the_cause_has_time_in_the_account(said: Answers) -> None:
    cause = said.json["verdict"]["cause"]
    if cause not in IN_THE_ACCOUNT:
        pytest.skip(f"{cause} has no part of its own in the account")
    windows = [said.json, said.all_steps] if said.step_count else [said.json]
    busiest = [max(one["devices"], key=lambda device: device["busy_ns"]) for one in windows]
    named = [one for one in (cause, said.json["verdict"]["also"]) if one in IN_THE_ACCOUNT]
    own = [sum(shares(device)[one] for one in named) for device in busiest]
    if cause == "sync":  # after a wait the queue is empty: that is idle for dispatch
        own = [share + shares(device)["dispatch"] for share, device in zip(own, busiest, strict=True)]
    assert max(own) >= MIN_CAUSE_SHARE


def nanoseconds(text: str) -> float:
    number, unit = text.replace(",", "").split()
    return float(number) * UNITS[unit]


def test_no_more_of_a_cold_start_is_claimed_than_the_account_has(said: Answers) -> None:
    windows = [said.json, said.all_steps] if said.step_count else [said.json]
    busiest = [max(one["devices"], key=lambda device: device["busy_ns"]) for one in windows]
    recorded, of_steps = (busiest[which]["idle"]["cold_start_ns"] for which in (0, -1))
    for finding in said.findings.values():
        each = re.search(rf"each spends {TIME} of CPU time on loading", finding["claim"])
        once = re.search(rf"which is {TIME} more than warm", finding["claim"])
        once = once or re.search(rf"idle for {TIME} of the .{{3,12}} recorded while code", finding["claim"])
        if each:
            assert nanoseconds(each[1]) <= MAX_OVER_ACCOUNT * of_steps / max(said.step_count, 1), finding["claim"]
        if once:
            assert nanoseconds(once[1]) <= MAX_OVER_ACCOUNT * max(recorded, of_steps), finding["claim"]


def test_shares_in_the_verdict_are_those_of_the_account(said: Answers) -> None:
    sentence, steps = said.json["verdict"]["sentence"], said.json["steps"]
    device = max(said.json["devices"], key=lambda one: one["busy_ns"])
    busy = [100 * step["busy_ns"] / max(step["length_ns"], 1) for step in steps]
    busy = busy or [100 * device["busy_ns"] / max(device["window_ns"], 1)]
    found = re.search(r"busy ([\d.]+) % of each step( without the profiler \(([\d.]+) % as recorded\))?", sentence)
    if found:  # 2 points of profiler are not told apart
        assert min(busy) - 1 - POINTS <= float(found[3] or found[1]) <= max(busy) + 1 + POINTS, sentence
    idle = re.search(rf"the GPU is idle for {TIME} of each step", sentence)
    if idle and steps:
        longest = max(step["length_ns"] - step["busy_ns"] for step in steps)
        assert nanoseconds(idle[1]) <= 1.05 * longest, sentence


def test_the_first_screen_accounts_for_the_time_that_the_verdict_is_about(said: Answers) -> None:
    for device in said.json["account"]:
        assert device["busy_ns"] + device["idle_ns"] == device["window_ns"]
        assert sum(device["idle"].values()) == device["idle_ns"]
    cause = said.json["verdict"]["cause"]
    if cause in IN_THE_ACCOUNT:
        busiest = max(said.json["account"], key=lambda device: device["busy_ns"])
        named = {cause, said.json["verdict"]["also"], *({"dispatch"} if cause == "sync" else ())} & set(IN_THE_ACCOUNT)
        assert sum(shares(busiest)[one] for one in named) >= MIN_CAUSE_SHARE, cause


def test_no_more_is_saved_than_what_a_fix_touches_and_the_idle_time(said: Answers) -> None:
    for name, finding in said.findings.items():
        if finding["gain"]["expected"] < SHOWN_GAIN:
            continue
        device = max(said.json["devices"], key=lambda one: one["busy_ns"])
        idle_ns = 0.0 if finding["cause"] == "kernel" else device["idle_ns"] / max(said.step_count, 1)
        assert finding["lost_ns"] <= 1.05 * (finding["evidence_ns"] + idle_ns), name


def test_a_budget_is_of_the_same_step_and_the_same_graph(said: Answers) -> None:
    if not said.step_count:
        with pytest.raises(CannotAnswer, match="no steps"):
            bare_budget(said.trace)
        return
    bare = bare_budget(said.trace)
    own = DispatchBudget(bare.budget.ops, bare.budget.cpu_ns, bare.budget.gpu_ns)
    shown = outlook(own, 1.0, 1_000.0, 100.0, bare)
    assert shown.step_ns == pytest.approx(said.bare_ns, rel=ROUNDING)
    cause, lead = said.json["verdict"]["cause"], own.dispatch_ns / max(own.work_ns, 1)
    assert not (cause == "dispatch" and (shown.bound == "input" or (shown.bound == "gpu" and lead < DISPATCH_LEADS)))
    assert not (cause == "input" and shown.bound == "gpu")
    assert not (cause in ("healthy", "kernel", "comm") and shown.bound == "cpu" and lead > GPU_LEADS)
    busy = [step["busy_ns"] for step in said.json["steps"]]
    assert not busy or 0.95 * min(busy) <= own.work_ns <= 1.05 * max(busy)
    if "cuda_graph" in said.findings:
        assert shown.graph_ns == pytest.approx(said.findings["cuda_graph"]["new_step_ns"]["expected"], rel=ROUNDING)


def test_the_device_has_one_name(said: Answers) -> None:
    recorded, (named, _) = said.json["trace"]["device"], trace_device(said.trace)
    if recorded is not None and named is not None:
        assert any(word in recorded for word in named.replace("-", " ").split())
