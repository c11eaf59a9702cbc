"""The verdict: which finding is acted on first, what the sentence says, and how the step is described."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import copy, op
from msgspec.structs import replace
from small_programs import LATENCY, MAIN_STREAM, MUL, Program, judged

from warpline.analyses.idle.gaps import CAUSES
from warpline.estimate import Estimate
from warpline.findings.model import Finding, Verdict
from warpline.findings.plan import first_step
from warpline.findings.state import State
from warpline.findings.verdict import verdict_of
from warpline.fixes.claim import Cause, Confidence
from warpline.fixes.model import Fix
from warpline.fixes.registry import all_fixes, fix_of, rules

STEP_NS = 3_000_000


STATE = State(
    step_ns=STEP_NS,
    idle_share=0.25,
    bare_idle_share=1.0,
    idle=dict.fromkeys(CAUSES, 0.0),
    compute=0.75,
    copy=0.0,
    comm=0.0,
    roofline_share=None,
)


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
        evidence_ns=STEP_NS,
        gain=Estimate(0.9 * gain, gain, 1.1 * gain),
        new_step_ns=Estimate(round(0.9 * after), after, round(1.1 * after)),
        confidence=confidence,
        where=(),
        how="do it",
        verify="look",
        effort=fix_of(made_by.name).effort,
    )


def judge(*findings: Finding, state: State = STATE) -> Verdict:
    """The verdict over findings in the order in which they are ranked."""
    ranked = sorted(findings, key=lambda one: -one.gain.expected)
    first = first_step(ranked, waits=state.waits_long)
    return verdict_of([first] if first else [], ranked, state)


def said(*findings: Finding, state: State = STATE) -> tuple[Cause, str | None]:
    verdict = judge(*findings, state=state)
    return verdict.cause, verdict.fix


def test_the_largest_gain_wins() -> None:
    assert said(finding("hidden_sync", 1.4), finding("fp32_gemm", 3.0), finding("slow_input", 2.0)) == (
        "kernel",
        "tf32",
    )
    assert judge(finding("hidden_sync", 1.4), finding("fp32_gemm", 3.0)).why is None


def test_of_a_fix_with_too_wide_a_range_the_likely_gain_counts() -> None:
    # torch.compile is expected to gain 3.0×, and gains 3.0 · (1.1 / 3.0)^0.657 = 1.55× with a probability of 80 %: a
    # graph at 1.8× with a narrow range comes first.
    vague = replace(
        finding("uncompiled", 3.0, confidence="medium"),
        gain=Estimate(1.1, 3.0, 8.0),
        new_step_ns=Estimate(400_000, 1_000_000, 2_700_000),
    )
    graph = finding("launch_bound", 1.8)
    assert vague.is_vague
    assert vague.known_gain == pytest.approx(1.55, abs=0.01)
    verdict = judge(vague, graph)
    assert verdict.fix == "cuda_graph"
    assert verdict.why is not None
    assert "more certain" in verdict.why
    alone = judge(vague)
    assert alone.fix == "torch_compile"
    assert alone.sentence.endswith("torch.compile would gain 1.10× or more on a step of 3.00 ms (range 1.10–8.00×).")
    unknown = judge(replace(vague, gain=Estimate(0.9, 3.0, 8.0), effort="setting"))
    assert unknown.sentence.endswith(
        "torch.compile might gain 3.00× (range 0.90–8.00×): make the change and time both (warpline bench) to tell."
    )


def test_of_two_fixes_that_gain_about_the_same_the_surer_one_is_named() -> None:
    # With a probability of 80 % compiling gains 1.82 · (0.96 / 1.82)^0.657 = 1.19×, and a graph 1.79 · (1.25 /
    # 1.79)^0.657 = 1.41×.
    compiled = replace(finding("uncompiled", 1.82, confidence="medium"), gain=Estimate(0.96, 1.82, 3.47))
    graph = replace(finding("launch_bound", 1.79), gain=Estimate(1.25, 1.79, 2.56))
    assert not compiled.is_vague
    verdict = judge(compiled, graph)
    assert verdict.fix == "cuda_graph"
    assert verdict.why == ("first, because it is more certain: torch.compile would give 1.82× (0.96–3.47×)")
    # A much larger gain is still named first: 4.0 · (1.2 / 4.0)^0.657 = 1.81×.
    assert judge(replace(compiled, gain=Estimate(1.2, 4.0, 9.0)), graph).fix == "torch_compile"


def test_a_range_that_is_wide_about_a_large_gain_is_named_before_a_small_one() -> None:
    # A warm-up that is expected to gain 21× gains 21 · (0.71 / 21)^0.657 = 2.3× with a probability of 80 %: its
    # confidence is low for the width of its range alone, which this counts already.
    cold = replace(
        finding("cold_start", 21.0, confidence="low"),
        gain=Estimate(0.71, 21.0, 165.0),
        new_step_ns=Estimate(20_000, 143_000, 4_000_000),
    )
    graph = finding("launch_bound", 1.66)
    assert cold.cannot_tell
    verdict = judge(cold, graph)
    assert verdict.fix == "warm_up"
    assert "a warm-up might gain 21.0× (range 0.71–165×)" in verdict.sentence
    known = replace(cold, new_step_ns=Estimate(120_000, 143_000, 150_000))  # low for another reason
    assert judge(known, graph).fix == "cuda_graph"


def test_the_first_step_of_the_plan_is_the_verdict_and_says_why() -> None:
    # TF32 is a setting and saves 1.0 of 3 ms; prefetching takes a few lines and saves 1.5.
    verdict = judge(finding("slow_input", 2.0), finding("fp32_gemm", 1.5))
    assert (verdict.cause, verdict.fix) == ("kernel", "tf32")
    assert verdict.why == "first, because it is one line: 1.50×; prefetching in the background would give 2.00×"


def test_a_gain_is_claimed_from_a_probability_of_80_percent() -> None:
    # The range is a tenth to both sides: half of it is 0.105 as a logarithm, and 0.657 of that is 1.07×.
    doubtful = finding("unfused_elementwise", 1.06, confidence="medium")
    assert said(doubtful) == ("healthy", None)
    assert "gains enough for its confidence (best 1.06×)" in judge(doubtful).sentence
    assert said(finding("full_precision", 1.08, confidence="medium")) == ("kernel", "bf16")
    assert said(finding("unfused_attention", 1.12)) == ("kernel", "sdpa")


def test_a_slow_host_leaves_only_gains_that_a_usual_host_has_too() -> None:
    # 1.2× of 1.08 to 1.32 has an end above 1.0; 1.2× of 0.99 has not, but a gain with a probability of 86 %.
    certain = finding("full_precision", 1.2, confidence="medium")
    likely = replace(certain, gain=Estimate(0.99, 1.2, 1.45))
    assert [one.is_likely for one in (certain, likely, replace(likely, calm_gain=1.3))] == [True, True, True]
    assert not replace(likely, calm_gain=1.1).is_likely
    wide = replace(likely, gain=Estimate(1.1, 2.0, 3.6))  # certain on this host; on a usual one 1.2× as likely as not
    assert [one.is_likely for one in (wide, replace(wide, calm_gain=1.2))] == [True, False]
    assert said(replace(likely, calm_gain=1.0)) == ("unclear", None)


def test_a_setting_that_comes_first_says_that_it_is_one_line() -> None:
    setting = replace(finding("pageable_copy", 1.14, confidence="medium"), gain=Estimate(0.99, 1.14, 1.3))
    fused = replace(finding("unfused_elementwise", 1.28, confidence="medium"), gain=Estimate(0.82, 1.28, 2.0))
    verdict = judge(setting, fused)
    assert (verdict.cause, verdict.fix) == ("transfer", "pin_memory")
    assert verdict.why == "first, because it is one line: torch.compile would give 1.28× (0.82–2.00×)"
    # 1.06× of 0.96 to 1.17 is a gain with a probability of 78 %: not enough, for a setting either.
    assert said(replace(setting, gain=Estimate(0.96, 1.06, 1.17))) == ("healthy", None)


def test_a_larger_gain_that_may_be_none_is_unclear() -> None:
    doubtful = replace(finding("unfused_elementwise", 1.2, confidence="medium"), gain=Estimate(0.8, 1.2, 1.6))
    assert said(doubtful) == ("unclear", None)
    assert (
        "torch.compile might gain 1.20× (range 0.80–1.60×): make the change and time both" in judge(doubtful).sentence
    )


BUSY = replace(STATE, idle_share=0.02, bare_idle_share=0.02, compute=0.98, roofline_share=0.8)


def in_doubt(gain: float, device_share: float = 0.4) -> Finding:
    """torch.compile with a range that does not exclude that it gains nothing."""
    found = finding("unfused_elementwise", gain, confidence="medium")
    return replace(found, gain=Estimate(0.7, gain, 2 * gain), device_share=device_share)


def test_a_busy_gpu_near_the_roofline_is_healthy_and_its_headroom_is_said() -> None:
    assert said(in_doubt(1.7), state=BUSY) == ("healthy", None)
    sentence = judge(in_doubt(1.7), state=BUSY).sentence
    assert "busy 98 % of each step, its kernels reach 80 % of the roofline, and no fix is known to help" in sentence
    assert "torch.compile might gain 1.70× (range 0.70–3.40×)" in sentence


@pytest.mark.parametrize("share", [None, 0.3])
def test_a_busy_gpu_far_from_the_roofline_is_healthy_within_what_libraries_leave(share: float | None) -> None:
    state = replace(BUSY, roofline_share=share)
    assert said(in_doubt(1.5), state=state) == ("healthy", None)
    assert said(in_doubt(1.7), state=state) == ("unclear", None)


def test_a_doubtful_fix_of_most_that_the_device_does_is_named_from_what_libraries_leave() -> None:
    assert said(in_doubt(1.7, device_share=0.6), state=BUSY) == ("kernel", "torch_compile")
    assert said(in_doubt(1.5, device_share=0.6), state=BUSY) == ("healthy", None)


def test_a_gpu_that_copies_within_its_own_memory_is_not_healthy() -> None:
    copying = replace(BUSY, compute=0.28, copy=0.7)
    assert said(state=copying) == ("transfer", None)
    assert said(state=replace(copying, device_copy=0.6)) == ("memory", None)
    sentence = judge(state=replace(copying, device_copy=0.6)).sentence
    assert "copies from one place of the GPU's memory to another take 71 % of the GPU's busy time" in sentence


def test_a_limit_is_no_fix_while_the_gpu_is_busy() -> None:
    far = finding("below_roofline", 1.5, confidence="low")
    assert said(far, state=replace(BUSY, roofline_share=None)) == ("healthy", None)


def test_idle_time_that_recording_may_have_added_does_not_make_a_busy_gpu_wait() -> None:
    # Idle 16 % of a step of 34 ms, which may be one of 31 ms: 1 - 0.84 · 34 / 31 is 8 %.
    slow = replace(BUSY, idle_share=0.4, bare_idle_share=0.16, least_idle_share=0.08)
    assert said(in_doubt(1.5), state=slow) == ("healthy", None)
    assert said(in_doubt(1.5), state=replace(slow, least_idle_share=0.12)) == ("unclear", None)


def test_the_roof_is_named_only_where_no_fix_is_worth_making() -> None:
    far = finding("below_roofline", 20.0, confidence="low")
    assert said(far, finding("misaligned_gemm", 1.2)) == ("kernel", "pad")
    assert said(far, finding("small_grid", 5.0, confidence="low")) == ("kernel", "fill_gpu")
    assert said(far, finding("hidden_sync", 1.03)) == ("kernel", "at_roofline")


def test_a_doubtful_gain_makes_the_answer_unclear() -> None:
    doubtful = finding("below_roofline", 1.5, confidence="low")
    assert said(doubtful) == ("unclear", None)
    assert "might gain 1.50× (range 1.35–1.65×): make the change and time both" in judge(doubtful).sentence
    assert "record several steps to tell" in judge(doubtful, state=replace(STATE, recorded_steps=1)).sentence


@pytest.mark.parametrize("gain", [1.01, 1.049])
def test_gains_under_five_percent_are_healthy(gain: float) -> None:
    verdict = judge(finding("hidden_sync", gain))
    assert (verdict.cause, verdict.fix) == ("healthy", None)
    assert verdict.gain == Estimate(1.0, 1.0, 1.0)
    assert verdict.new_step_ns == Estimate(STEP_NS, STEP_NS, STEP_NS)
    assert f"{gain:.2f}" in verdict.sentence


def test_nothing_found_is_healthy_and_says_how_busy_the_gpu_is_in_a_step() -> None:
    verdict = judge()
    assert verdict.cause == "healthy"
    assert "busy 75 % of each step" in verdict.sentence
    assert "3.00 ms" in verdict.sentence


def test_healthy_kernels_are_held_against_the_roofline() -> None:
    verdict = judge(state=replace(STATE, roofline_share=0.714))
    assert "busy 75 % of each step, its kernels reach 71 % of the roofline, and no replayed fix" in verdict.sentence


def test_a_profile_with_an_error_is_never_healthy() -> None:
    verdict = judge(state=replace(STATE, errors=("program-failed", "no-kernels")))
    assert verdict.cause == "unclear"
    assert "the profile has an error (program-failed, no-kernels)" in verdict.sentence


@pytest.mark.parametrize(("copy", "comm", "cause"), [(0.5, 0.0, "transfer"), (0.0, 0.4, "comm"), (0.3, 0.0, "healthy")])
def test_a_device_that_mostly_copies_or_communicates_is_not_healthy(copy: float, comm: float, cause: Cause) -> None:
    state = replace(STATE, compute=0.75 - copy - comm, copy=copy, comm=comm)
    verdict = judge(state=state)
    assert verdict.cause == cause
    if cause == "transfer":
        assert "exposed copies take 67 % of the GPU's busy time" in verdict.sentence


def test_communication_that_takes_most_of_the_time_is_the_cause_whatever_else_could_be_fixed() -> None:
    state = replace(STATE, compute=0.25, comm=0.5)
    verdict = judge(finding("unfused_optimizer", 1.2), state=state)
    assert (verdict.cause, verdict.fix) == ("comm", None)
    assert "exposed communication takes 50 % of each step" in verdict.sentence
    assert "a fused optimizer would gain 1.20×" in verdict.sentence
    assert said(finding("exposed_collective", 1.6, confidence="medium"), state=state) == ("comm", "overlap_comm")


def test_idle_time_without_a_known_reason_is_unclear() -> None:
    idle = dict.fromkeys(CAUSES, 0.0) | {"unknown": 0.4, "dispatch": 0.1}
    verdict = judge(state=replace(STATE, idle_share=0.5, compute=0.5, idle=idle))
    assert verdict.cause == "unclear"
    assert "idle 50 % of the recorded steps, 40 % for no recorded reason" in verdict.sentence
    some = dict.fromkeys(CAUSES, 0.0) | {"dependency": 0.12, "dispatch": 0.13}
    assert said(state=replace(STATE, idle=some)) == ("unclear", None)


def test_steps_that_hold_little_of_the_work_are_unclear() -> None:
    verdict = judge(finding("pageable_copy", 2.0), state=replace(STATE, covered=0.1))
    assert (verdict.cause, verdict.fix) == ("unclear", None)
    assert "hold only 10 % of the recording's GPU time" in verdict.sentence
    copying = replace(STATE, covered=0.3, compute=0.3, copy=0.7)
    assert judge(state=copying).sentence.startswith(
        "Copy-bound: exposed copies take 70 % of the GPU's busy time in the whole recording; the steps that were found"
    )
    # 56 % of the busy time of a device that is idle nine tenths of the time bounds nothing.
    idle = replace(STATE, covered=0.3, compute=0.04, copy=0.05)
    assert said(state=idle) == ("unclear", None)


def test_the_busy_share_is_told_with_and_without_the_profiler_where_they_differ() -> None:
    verdict = judge(state=replace(STATE, bare_idle_share=0.1, calm_idle_share=0.01))
    assert "busy 90 % of each step without the profiler (75 % as recorded)" in verdict.sentence


def test_all_is_said_only_of_all() -> None:
    assert "busy 99.6 % of each step" in judge(state=replace(STATE, idle_share=0.004)).sentence
    assert "busy 100 % of each step" in judge(state=replace(STATE, idle_share=0.0001)).sentence


def test_steps_shorter_than_their_gpu_work_are_unclear() -> None:
    assert said(state=replace(STATE, fits_devices=False)) == ("unclear", None)


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
    waiting = dict.fromkeys(CAUSES, 0.0) | {"sync": 0.5, "dispatch": 0.25}
    verdict = judge(finding("hidden_sync", 1.03), state=replace(STATE, idle_share=0.75, idle=waiting))
    assert (verdict.cause, verdict.fix) == ("sync", None)
    assert verdict.gain == Estimate(1.0, 1.0, 1.0)
    for part in ("Synchronisation-bound", "75 %", "50 %", "1.03×", "3.00 ms"):
        assert part in verdict.sentence


def test_the_sentence_holds_cause_claim_fix_and_both_times() -> None:
    chosen = finding("hidden_sync", 2.0, "8 synchronising calls a step hold the CPU.")
    verdict = judge(chosen)
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
    assert judge(chosen).sentence == (
        "Dispatch-bound: the GPU waits 87 % of each 3.00 ms step for the CPU; a CUDA graph would bring the step to 250 µs "
        "(12.0×, range 10.8–13.2×)."
    )


def test_a_kernel_as_long_as_the_step_is_not_taken_for_it() -> None:
    chosen = finding("misaligned_gemm", 2.0, "Products run on slower kernels: 1 a step, 3.00 ms.")
    assert "the step from 3.00 ms to 1.50 ms" in judge(chosen).sentence


def test_a_range_that_is_none_is_not_said() -> None:
    chosen = replace(finding("hidden_sync", 2.0), gain=Estimate(2.0, 2.0, 2.0))
    assert judge(chosen).sentence.endswith("to 1.50 ms (2.00×).")


@pytest.mark.parametrize(("gain", "said"), [(1.361, "1.36×"), (4.0, "4.00×"), (177.1, "177×"), (1251.8, "1,252×")])
def test_speed_ups_have_the_digits_that_matter(gain: float, said: str) -> None:
    assert f"({said}, range" in judge(finding("cold_start", gain)).sentence


def test_the_verdict_as_json_has_the_contract_s_keys() -> None:
    answer = judge(finding("hidden_sync", 2.0)).to_dict()
    assert set(answer) == {"cause", "fix", "sentence", "gain", "new_step_ns", "why"}
    assert set(answer["gain"]) == set(answer["new_step_ns"]) == {"low", "expected", "high"}


WAITING = replace(STATE, idle_share=0.5, idle={**STATE.idle, "dispatch": 0.5}, compute=0.5)


def test_a_device_that_waits_gets_a_possible_fix_rather_than_none() -> None:
    doubtful = replace(finding("hidden_sync", 1.18, confidence="medium"), gain=Estimate(0.85, 1.18, 1.6))
    assert said(doubtful, state=WAITING) == ("sync", "remove_sync")
    # Less than 1.1× is too little to name, and a busy device needs nothing that might gain nothing.
    less = replace(doubtful, gain=Estimate(0.9, 1.08, 1.3), new_step_ns=Estimate(2.5e6, 2.78e6, 3e6))
    assert said(less, state=WAITING) == ("dispatch", None)
    assert said(doubtful, state=replace(STATE, idle_share=0.05, bare_idle_share=0.05))[1] is None


def test_a_device_that_waits_for_a_slow_host_is_unclear() -> None:
    graph = replace(finding("launch_bound", 1.77, confidence="medium"), gain=Estimate(0.99, 1.77, 2.4), calm_gain=0.99)
    slow = replace(WAITING, slowness=2.0, calm_idle_share=0.0, bare_idle_share=0.44)
    verdict = judge(graph, state=slow)
    assert (verdict.cause, verdict.fix) == ("unclear", None)
    for words in (
        "2.0× more slowly",
        "waits 44 %",
        "usually waits 0 %",
        "a CUDA graph might gain 1.77×",
        "warpline run",
    ):
        assert words in verdict.sentence
    # A device that would wait for a usual host, too, has its cause and its fix.
    assert said(graph, state=replace(slow, calm_idle_share=0.35)) == ("dispatch", "cuda_graph")
