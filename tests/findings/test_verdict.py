"""The verdict: which finding is acted on first, what the sentence says, and how the step is described."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest
from kineto_files import copy, op
from small_programs import LATENCY, MAIN_STREAM, MUL, Program, judged

from warpline.analyses.gaps import CAUSES
from warpline.estimate import Estimate
from warpline.findings.model import Finding
from warpline.findings.verdict import verdict_of
from warpline.fixes.claim import Cause, Confidence
from warpline.fixes.evidence import Evidence
from warpline.fixes.model import Fix
from warpline.fixes.registry import all_fixes, fix_of, rules
from warpline.trace.trace import Window

STEP_NS = 3_000_000


@dataclass(frozen=True)
class Recorded:
    """What the verdict reads of the trace."""

    window: Window


@dataclass(frozen=True)
class Judged:
    """What the verdict reads of the evidence."""

    step_ns: float = STEP_NS
    steps: int = 4
    idle_share: float = 0.25
    bare_idle_share: float = 1.0
    roofline_share: float | None = None
    idle: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CAUSES, 0))
    trace: Recorded = field(default_factory=lambda: Recorded(Window(0, 4 * STEP_NS)))


EVIDENCE = cast(Evidence, Judged())


def finding(
    rule: str, gain: float, claim: str = "Something takes 2 ms a step.", confidence: Confidence = "high"
) -> Finding:
    """A finding of that rule with that gain on a step of 3 ms, and a range of a tenth about it."""
    (made_by,) = [one for one in rules() if one.name == rule]
    after = round(STEP_NS / gain)
    return Finding(
        rule=rule,
        cause=made_by.cause,
        fix=fix_of(made_by.name).name,
        claim=claim,
        lost_ns=STEP_NS - after,
        gain=Estimate(0.9 * gain, gain, 1.1 * gain),
        new_step_ns=Estimate(round(0.9 * after), after, round(1.1 * after)),
        confidence=confidence,
        where=(),
        how="do it",
        verify="look",
    )


def said(*findings: Finding) -> tuple[Cause, str | None]:
    """Cause and fix of the verdict over findings in the order in which they are ranked."""
    verdict = verdict_of(sorted(findings, key=lambda one: -one.gain.expected), EVIDENCE)
    return verdict.cause, verdict.fix


def test_the_rules_used_here_are_general_and_specific() -> None:
    specific = {rule.name: rule.specific for rule in rules()}
    assert not specific["launch_bound"]
    assert specific["hidden_sync"]
    assert specific["fp32_gemm"]


def test_the_largest_gain_wins() -> None:
    assert said(finding("hidden_sync", 1.4), finding("fp32_gemm", 3.0), finding("slow_input", 2.0)) == (
        "kernel",
        "tf32",
    )


def test_a_general_fix_gives_way_to_a_specific_one_that_saves_a_third_as_much() -> None:
    # A graph would save 2.4 of 3 ms; 1.4x saves 0.86, and 1.3x 0.69.
    assert said(finding("launch_bound", 5.0), finding("hidden_sync", 1.4)) == ("sync", "remove_sync")
    assert said(finding("launch_bound", 5.0), finding("hidden_sync", 1.3)) == ("dispatch", "cuda_graph")


def test_a_doubtful_general_fix_gives_way_to_a_sure_one() -> None:
    # Compiling would save 2.57 of 3 ms, and nobody knows; a graph saves 2.28.
    compiled = finding("uncompiled", 7.0, confidence="medium")
    assert said(compiled, finding("launch_bound", 4.2)) == ("dispatch", "cuda_graph")
    assert said(compiled, finding("launch_bound", 2.0)) == ("dispatch", "torch_compile")
    assert said(compiled, finding("launch_bound", 4.2, confidence="medium")) == ("dispatch", "torch_compile")


def test_that_a_fifth_of_a_step_could_be_fused_is_no_fault() -> None:
    ordinary = finding("unfused_elementwise", 1.25, confidence="medium")
    assert said(ordinary) == ("healthy", None)
    assert "gains enough to be a fault (best 1.25×)" in verdict_of([ordinary], EVIDENCE).sentence
    assert said(finding("unfused_elementwise", 1.35, confidence="medium")) == ("kernel", "torch_compile")
    assert said(ordinary, finding("fp32_gemm", 1.2)) == ("kernel", "tf32")


def test_a_small_gain_that_is_not_sure_is_no_fault() -> None:
    doubtful = finding("unfused_elementwise", 1.13, confidence="medium")
    assert said(doubtful) == ("healthy", None)
    assert "no replayed fix gains 5 % with high confidence (best 1.13×)" in verdict_of([doubtful], EVIDENCE).sentence
    assert said(finding("full_precision", 1.16, confidence="medium")) == ("kernel", "bf16")
    assert said(finding("unfused_attention", 1.13)) == ("kernel", "sdpa")


@pytest.mark.parametrize(
    ("loading_ms", "input_gain", "cause"), [(1.2, 1.6, "input"), (0.4, 1.6, "sync"), (1.2, 1.2, "sync")]
)
def test_a_wait_gives_way_to_loading_where_that_is_when_the_device_is_idle(
    loading_ms: float, input_gain: float, cause: Cause
) -> None:
    # Not to wait for the loss at the end of a step would save 1.5 of 3 ms.
    idle = dict.fromkeys(CAUSES, 0) | {"input": round(4 * loading_ms * 1e6)}
    findings = [finding("hidden_sync", 2.0), finding("slow_input", input_gain)]
    assert verdict_of(findings, cast(Evidence, Judged(idle=idle))).cause == cause


def test_a_specific_fix_does_not_give_way() -> None:
    assert said(finding("hidden_sync", 2.0), finding("fp32_gemm", 1.9)) == ("sync", "remove_sync")


def test_the_roof_is_not_named_where_something_else_saves_half_as_much() -> None:
    # Kernels at the roof would save 2.85 of 3 ms; 2x saves 1.5, and 1.8x 1.33.
    assert said(finding("below_roofline", 20.0), finding("misaligned_gemm", 2.0)) == ("kernel", "pad")
    assert said(finding("below_roofline", 20.0), finding("misaligned_gemm", 1.8)) == ("kernel", "at_roofline")
    assert said(finding("below_roofline", 1.5), finding("misaligned_gemm", 1.1)) == ("kernel", "pad")


def test_the_roof_is_named_where_nothing_else_is_and_it_is_far() -> None:
    assert said(finding("below_roofline", 20.0), finding("hidden_sync", 1.03)) == ("kernel", "at_roofline")


def test_kernels_a_little_below_the_roof_are_healthy() -> None:
    assert said(finding("below_roofline", 1.5)) == ("healthy", None)


@pytest.mark.parametrize("gain", [1.01, 1.049])
def test_gains_under_five_percent_are_healthy(gain: float) -> None:
    verdict = verdict_of([finding("hidden_sync", gain)], EVIDENCE)
    assert (verdict.cause, verdict.fix) == ("healthy", None)
    assert verdict.gain == Estimate(1.0, 1.0, 1.0)
    assert verdict.new_step_ns == Estimate(STEP_NS, STEP_NS, STEP_NS)
    assert f"{gain:.2f}" in verdict.sentence


def test_nothing_found_is_healthy_and_says_how_busy_the_gpu_is() -> None:
    verdict = verdict_of([], EVIDENCE)
    assert verdict.cause == "healthy"
    assert "75 %" in verdict.sentence
    assert "3.00 ms" in verdict.sentence


def test_healthy_kernels_are_held_against_the_roofline() -> None:
    verdict = verdict_of([], cast(Evidence, Judged(roofline_share=0.714)))
    assert "busy 75 % of the time, its kernels reach 71 % of the roofline, and no replayed fix" in verdict.sentence


def test_the_roofline_share_is_that_of_the_kernels(tmp_path: Path) -> None:
    # 256 MiB read and as many written take 126 µs at the 4,259.5 GB/s measured on an H200: 90 % of 140 µs.
    judgement = judged(
        tmp_path, lambda program: program.op("aten::mul", (MUL, 140), shapes=[[16384, 4096]], dtype="float")
    )
    assert judgement.evidence.roofline_share == pytest.approx(2 * 2**28 / 4_259.5 / 140_000, rel=0.01)


def test_a_number_copied_from_the_host_is_a_wait_and_no_transfer(tmp_path: Path) -> None:
    """`torch.tensor(number, device="cuda")`: the call takes its eight bytes at once, and then waits for the stream."""

    def body(program: Program) -> None:
        for _ in range(4):
            program.large_product(200)
            start = program.now
            program.call("cudaMemcpyAsync", 3)
            begin = max(program.now + LATENCY, program.free[MAIN_STREAM])
            program.free[MAIN_STREAM] = begin + 1
            program.events.append(copy("Memcpy HtoD (Pageable -> Device)", begin, 1, program.number, 8))
            program.wait()
            program.events.append(op("aten::to", start, program.now - start))
            program.op("aten::mul", (MUL, 5), cpu=150, shapes=[[64, 64]])

    judgement = judged(tmp_path, body)
    assert (judgement.verdict.cause, judgement.verdict.fix) == ("sync", "remove_sync")
    assert "pageable_copy" not in [finding.rule for finding in judgement.findings]


def test_an_idle_device_is_not_healthy_though_no_fix_helps() -> None:
    waiting = dict.fromkeys(CAUSES, 0) | {"sync": 2 * STEP_NS, "dispatch": STEP_NS}
    verdict = verdict_of([finding("hidden_sync", 1.03)], cast(Evidence, Judged(idle_share=0.75, idle=waiting)))
    assert (verdict.cause, verdict.fix) == ("sync", None)
    assert verdict.gain == Estimate(1.0, 1.0, 1.0)
    for part in ("Synchronisation-bound", "75 %", "50 %", "1.03×", "3.00 ms"):
        assert part in verdict.sentence


def test_the_sentence_holds_cause_claim_fix_and_both_times() -> None:
    chosen = finding("hidden_sync", 2.0, "8 synchronising calls a step hold the CPU.")
    verdict = verdict_of([chosen], EVIDENCE)
    for part in (
        "Synchronisation-bound",
        "8 synchronising calls a step",
        "removing the waits would bring the step",
        "from 3.00 ms to 1.50 ms",
        "(2.00×, range 1.80–2.20×)",
    ):
        assert part in verdict.sentence
    assert verdict.gain == chosen.gain
    assert verdict.new_step_ns == chosen.new_step_ns


@pytest.mark.parametrize("fix", all_fixes().values(), ids=lambda fix: fix.name)
def test_every_fix_has_words_for_the_sentence(fix: Fix) -> None:
    assert fix.words
    assert not fix.words.endswith(".")


def test_a_step_that_the_claim_names_is_not_named_again() -> None:
    chosen = finding("launch_bound", 12.0, "The GPU waits 87 % of each 3.00 ms step for the CPU.")
    assert verdict_of([chosen], EVIDENCE).sentence == (
        "Dispatch-bound: the GPU waits 87 % of each 3.00 ms step for the CPU; a CUDA graph would bring the step to 250 µs "
        "(12.0×, range 10.8–13.2×)."
    )


def test_a_kernel_as_long_as_the_step_is_not_taken_for_it() -> None:
    chosen = finding("misaligned_gemm", 2.0, "Products run on slower kernels: 1 a step, 3.00 ms.")
    assert "the step from 3.00 ms to 1.50 ms" in verdict_of([chosen], EVIDENCE).sentence


def test_a_range_that_is_none_is_not_said() -> None:
    chosen = replace(finding("hidden_sync", 2.0), gain=Estimate(2.0, 2.0, 2.0))
    assert verdict_of([chosen], EVIDENCE).sentence.endswith("to 1.50 ms (2.00×).")


@pytest.mark.parametrize(("gain", "said"), [(1.361, "1.36×"), (4.0, "4.00×"), (177.1, "177×"), (1251.8, "1,252×")])
def test_speed_ups_have_the_digits_that_matter(gain: float, said: str) -> None:
    assert f"({said}, range" in verdict_of([finding("cold_start", gain)], EVIDENCE).sentence


def test_the_verdict_as_json_has_the_contract_s_keys() -> None:
    answer = verdict_of([finding("hidden_sync", 2.0)], EVIDENCE).to_dict()
    assert set(answer) == {"cause", "fix", "sentence", "gain", "new_step_ns"}
    assert set(answer["gain"]) == set(answer["new_step_ns"]) == {"low", "expected", "high"}
