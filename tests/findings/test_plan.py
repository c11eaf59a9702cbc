"""The plan: which fix comes next, why, and what is replayed on top of what."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from small_programs import GEMM_FP32, MUL, Program, judged

from warpline.estimate import SHOWN_GAIN, Estimate
from warpline.findings.plan import MAX_REPLAYS, MOST_STEPS, LaterFixes, Option, PlanStep, next_fix
from warpline.fixes.registry import all_fixes
from warpline.reports.plan import arrows, without_article


def option(fix: str, gain: float) -> Option:
    made = all_fixes()[fix]
    return Option(made, made.words, Estimate.exactly(gain), made.effort)


def chosen(**gains: float) -> tuple[str, str | None]:
    choice = next_fix([option(fix, gain) for fix, gain in gains.items()])
    return choice.fix.name, choice.why


def test_the_largest_saving_comes_first() -> None:
    assert chosen(prefetch=2.0, sdpa=1.4, tf32=1.1) == ("prefetch", None)


def test_a_setting_comes_first_where_it_saves_half_as_much_and_says_so() -> None:
    # A graph at 1.68× saves 0.405 of the step; a fused optimizer at 1.41× saves 0.291, at 1.24× 0.194.
    assert chosen(cuda_graph=1.68, fused_optimizer=1.41) == (
        "fused_optimizer",
        "first because it is one line; a CUDA graph would gain 1.68×",
    )
    assert chosen(cuda_graph=1.68, fused_optimizer=1.24) == ("cuda_graph", None)


def test_of_savings_within_a_tenth_the_more_certain_one_comes_first() -> None:
    # 8.3× saves 0.880 of the step and 7.0× 0.857; 3.0× saves 0.667.
    compiled = replace(option("torch_compile", 8.3), gain=Estimate(1.9, 8.3, 33.0))
    graph = replace(option("cuda_graph", 7.0), gain=Estimate(4.3, 7.0, 12.0))
    choice = next_fix([compiled, graph])
    assert (choice.fix, choice.larger) == (graph.fix, "torch_compile")
    assert choice.why == ("first because its gain is more certain; torch.compile may gain 1.90–33.0×, measure it")
    less = replace(graph, gain=Estimate(2.5, 3.0, 3.6))
    assert next_fix([compiled, less]) is compiled


def test_a_few_lines_come_before_a_rewrite() -> None:
    assert chosen(fill_gpu=3.0, streams=1.6) == (
        "streams",
        f"first because it takes a few lines; {all_fixes()['fill_gpu'].words} would gain 3.00×",
    )


def test_what_changes_the_result_comes_last() -> None:
    assert chosen(larger_batch=4.0, tf32=1.1) == (
        "tf32",
        "first because it leaves the batch as it is; a larger batch would gain 4.00×",
    )
    assert chosen(larger_batch=4.0) == ("larger_batch", None)


def test_waits_go_before_what_cannot_cross_them() -> None:
    assert chosen(cuda_graph=1.9, remove_sync=1.26) == (
        "remove_sync",
        "first because a CUDA graph (1.90×) needs it",
    )
    assert chosen(torch_compile=1.4, remove_sync=1.3)[0] == "remove_sync"
    # What is captured must be planned and loaded before.
    assert chosen(cuda_graph=27.0, warm_up=12.0)[0] == "warm_up"
    # Prefetching needs nothing.
    assert chosen(prefetch=1.9, remove_sync=1.26) == ("prefetch", None)


def test_frees_and_copies_from_pageable_memory_wait_too() -> None:
    # The one that saves most comes first: a free waits for the device, and so does each copy from pageable memory.
    assert chosen(cuda_graph=1.9, coalesce_copies=1.4, pin_memory=1.17, remove_sync=1.17)[0] == "coalesce_copies"
    assert chosen(cuda_graph=4.0, pin_memory=1.1)[0] == "pin_memory"
    for fix in ("cuda_graph", "torch_compile"):
        found, why = chosen(**{fix: 3.5}, no_empty_cache=1.3)
        assert found == "no_empty_cache"
        assert why is not None
        assert "needs it" in why
    # A compiled region begins after the copies.
    assert chosen(torch_compile=4.0, pin_memory=1.1)[0] == "torch_compile"


def test_the_effort_in_this_program_counts() -> None:
    # Pinning saves 0.70 of the step and reducing 0.78. As a setting it comes first; with a buffer to write it does not.
    pinned, reduced = option("pin_memory", 3.3), option("reduce_before_copy", 4.5)
    assert next_fix([pinned, reduced]).fix.name == "pin_memory"
    assert next_fix([replace(pinned, effort="few_lines"), reduced]).fix.name == "reduce_before_copy"


def test_a_small_gain_comes_first_only_where_the_next_fix_needs_it() -> None:
    waits = [option("remove_sync", 1.26)]
    assert next_fix([option("cuda_graph", 1.9)], waits).fix.name == "remove_sync"
    assert next_fix([option("prefetch", 1.9)], waits).fix.name == "prefetch"


def test_a_fix_that_needs_another_to_be_worth_anything_is_a_later_step(tmp_path: Path) -> None:
    """120 launches at 30 µs each keep the CPU busy for longer than the one product on the device: TF32 has no effect
    until a graph launches all of them at once."""

    def body(program: Program) -> None:
        for _ in range(120):
            program.op("aten::mul", (MUL, 2), cpu=30, shapes=[[64, 64]], dtype="float")
        program.op("aten::mm", (GEMM_FP32, 1500), shapes=[[2048, 2048], [2048, 2048]], dtype="float")

    judgement = judged(tmp_path, body)
    fixes = [step.fix for step in judgement.plan]
    assert fixes[0] == judgement.verdict.fix
    alone = judgement.evidence.trial("tf32").step_ns
    assert judgement.evidence.step_ns / alone < SHOWN_GAIN
    assert "tf32" in fixes[1:]


def test_what_needs_the_last_fix_follows_it_at_once(tmp_path: Path) -> None:
    """Launches of 30 µs each, of which torch.compile gains more than a graph does."""

    def body(program: Program) -> None:
        for _ in range(60):
            program.op("aten::mul", (MUL, 8), cpu=30, shapes=[[64, 64]], dtype="float")
        program.copy("HtoD (Pageable -> Device)", 400, 4_000_000)

    fixes = judged(tmp_path, body).fixes
    waits = fixes.row("remove_sync")
    made = PlanStep("remove_sync", "removing the waits", waits.new_step_ns, waits.gain, larger="cuda_graph")
    largest = LaterFixes(fixes).best_after([made])
    needing = LaterFixes(fixes).best_after([replace(made, is_needed=True)])
    assert largest is not None
    assert needing is not None
    assert largest.fix == "torch_compile"
    assert "cuda_graph" in (needing.fix, needing.larger)


def test_every_step_of_a_plan_is_replayed_on_top_of_the_ones_before(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(40):
            program.op("aten::mul", (MUL, 2), cpu=30, shapes=[[64, 64]], dtype="float")
        program.op("aten::mm", (GEMM_FP32, 1500), shapes=[[2048, 2048], [2048, 2048]], dtype="float")
        program.copy("HtoD (Pageable -> Device)", 400, 4_000_000)

    judgement = judged(tmp_path, body)
    plan, evidence = judgement.plan, judgement.evidence
    assert 2 <= len(plan) <= MOST_STEPS
    names: list[str] = []
    before = evidence.step_ns
    for step in plan:
        names.append(step.fix)
        assert step.new_step_ns.expected == pytest.approx(evidence.trial(*names).step_ns, rel=0.01)
        assert step.gain.expected == pytest.approx(evidence.step_ns / step.new_step_ns.expected, rel=0.001)
        assert before / step.new_step_ns.expected >= SHOWN_GAIN
        assert step.new_step_ns.low <= step.new_step_ns.expected <= step.new_step_ns.high
        before = step.new_step_ns.expected
    assert len(set(names)) == len(names)
    assert judgement.verdict.new_step_ns == plan[0].new_step_ns


def test_a_step_of_the_plan_is_the_row_of_its_fixes_together(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(40):
            program.op("aten::mul", (MUL, 2), cpu=15, shapes=[[64, 64]], dtype="float")
        program.op("aten::mm", (GEMM_FP32, 1500), shapes=[[2048, 2048], [2048, 2048]], dtype="float")

    judgement = judged(tmp_path, body)
    assert len(judgement.plan) > 1
    for count, step in enumerate(judgement.plan, 1):
        row = judgement.fixes.row(*(one.fix for one in judgement.plan[:count]))
        assert (step.new_step_ns, step.gain) == (row.new_step_ns.rounded(), row.gain.rounded(4))


def test_a_plan_replays_few_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replayed: list[tuple[str, ...]] = []
    original = LaterFixes._step_with
    monkeypatch.setattr(LaterFixes, "_step_with", lambda self, *names: replayed.append(names) or original(self, *names))

    def body(program: Program) -> None:
        for _ in range(40):
            program.op("aten::mul", (MUL, 2), cpu=15, shapes=[[64, 64]], dtype="float")
        program.op("aten::mm", (GEMM_FP32, 1500), shapes=[[2048, 2048], [2048, 2048]], dtype="float")

    judged(tmp_path, body)
    assert 1 <= len(replayed) <= MAX_REPLAYS


def test_every_time_of_the_plan_on_one_line_has_its_unit() -> None:
    def step(fix: str, time_ns: float) -> PlanStep:
        return PlanStep(fix, all_fixes()[fix].words, Estimate(time_ns, time_ns, time_ns), Estimate(1.0, 1.0, 1.0))

    plan = [step("cuda_graph", 4.71e6), step("fused_optimizer", 4.17e6), step("tf32", 1.91e6)]
    assert arrows(plan) == "CUDA graph (4.71 ms) → fused optimizer (4.17 ms) → TF32 (1.91 ms)"
    assert arrows([step("tf32", 910e3)]) == "TF32 (910 µs)"
    wide = PlanStep("tf32", "TF32", Estimate(1e3, 17e3, 508e3), Estimate(6.36, 190.0, 3698.0))
    assert arrows([wide]) == "TF32 (17.0 µs, measure it)"


@pytest.mark.parametrize("fix", all_fixes())
def test_every_fix_has_a_short_name(fix: str) -> None:
    assert not without_article(all_fixes()[fix].words).startswith(("a ", "an ", "the "))
