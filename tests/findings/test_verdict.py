"""The verdict's sentence: what the step waits for, what to do first, and when nothing can be said."""

from __future__ import annotations

from pathlib import Path

import kineto_files as files
import pytest
from msgspec.structs import replace
from small_programs import Program, judged

from warpline.estimate import Estimate
from warpline.findings.judge import judge
from warpline.findings.limits import Limit, Limits
from warpline.findings.model import Finding
from warpline.findings.plan import PlanStep
from warpline.findings.state import HalfEmpty, State, percent
from warpline.findings.verdict import WORDS, verdict_of
from warpline.fixes.words import StepNoun
from warpline.replay.resources import Resource
from warpline.trace.open import open_trace

STATE = State(step_ns=3e6, idle_share=0.4, bare_idle_share=0.4)
GRAPH = PlanStep("cuda_graph", "a CUDA graph", Estimate(9e5, 1e6, 1.2e6), Estimate(2.5, 3.0, 3.3))


def limits(together: float = 2.0, sure: bool = False, pair: tuple[str, ...] = (), **gains: float) -> Limits:
    rows = [
        Limit(cause, Estimate(3e6 / gain, 3e6 / gain, 3e6 / gain), Estimate(gain, gain, gain), 0, (gain, gain, gain))
        for cause, gain in gains.items()
    ]
    return Limits(tuple(sorted(rows, key=lambda row: -row.gain.expected)), together, sure, pair, 1.2)


def test_two_halves_what_is_waited_for_and_what_to_do_first() -> None:
    verdict = verdict_of(limits(dispatch=3.75, sync=1.1), [GRAPH], STATE)
    assert (verdict.cause, verdict.also, verdict.fix) == ("dispatch", None, "cuda_graph")
    assert verdict.sentence == (
        "Dispatch-bound: the GPU waits for the CPU to launch its work; if it launched at once, the step would take "
        "800 µs instead of 3.00 ms. First, a CUDA graph would bring it to 1.00 ms (3.00×, range 2.50–3.30×)."
    )


def test_a_cpu_that_runs_the_program_s_own_code_is_said_to() -> None:
    said = verdict_of(limits(dispatch=3.75), [GRAPH], replace(STATE, own_code_ns=2e6)).sentence
    assert said.startswith(
        "Dispatch-bound: the GPU waits for the CPU, which spends 2.00 ms of each step in the program's own code; if it "
        "launched at once, the step would take 800 µs instead of 3.00 ms."
    )


def test_steps_that_allocate_nothing_wait_for_copies_alone() -> None:
    said = verdict_of(limits(memory=2.0), [], replace(STATE, allocates=False)).sentence
    assert said == (
        "Copies on the device: the GPU is busy with copies within its own memory; without them, the step would take "
        "1.50 ms instead of 3.00 ms."
    )
    said = verdict_of(limits(memory=2.0), [], STATE).sentence
    assert said.startswith("Allocator-bound: the step waits for allocations and for copies on the device; ")


def test_a_fix_that_brings_little_alone_is_named_with_the_one_that_needs_it() -> None:
    waits = PlanStep("remove_sync", "removing the waits", Estimate(2.8e6, 2.9e6, 3e6), Estimate(1.0, 1.03, 1.1))
    said = verdict_of(limits(dispatch=3.75), [waits, GRAPH], STATE).sentence
    assert "First, removing the waits, then a CUDA graph: both would bring it to 1.00 ms" in said


def test_a_fix_and_what_it_needs_are_one_change() -> None:
    waits = PlanStep(
        "remove_sync",
        "removing the waits",
        Estimate(2e6, 2.5e6, 2.8e6),
        Estimate(1.1, 1.2, 1.3),
        "first because a CUDA graph (2.00×) needs it",
        "cuda_graph",
        is_needed=True,
    )
    verdict = verdict_of(limits(dispatch=3.75), [waits, GRAPH], STATE)
    assert "First, removing the waits, then a CUDA graph: both would bring it to 1.00 ms" in verdict.sentence
    assert verdict.why == "first because a CUDA graph (2.00×) needs it", "the graph is for the cause"


def test_a_first_fix_for_something_else_says_why() -> None:
    pinned = Finding(
        "pageable_copy",
        "transfer",
        "pin_memory",
        "pinned memory",
        "",
        1,
        1,
        Estimate(1.1, 1.2, 1.3),
        Estimate(2e6, 2.5e6, 2.8e6),
        "high",
        (),
        "",
    )
    of_copies = verdict_of(limits(transfer=1.3), [GRAPH], STATE, [pinned])
    assert (
        of_copies.why == "first because it gains more; pinned memory, for copies between host and device, gains 1.20×"
    )
    of_data = verdict_of(limits(input=1.3), [GRAPH], STATE, [pinned])
    assert of_data.why == "first because it gains more; no fix for loading data gains here"
    assert verdict_of(limits(dispatch=3.75), [GRAPH], STATE, [pinned]).why is None


def test_a_cold_start_without_a_fix_has_words_too() -> None:
    said = verdict_of(limits(cold_start=1.3), [GRAPH], STATE)
    assert said.why == "first because it gains more; no fix for cold starts gains here"


def test_copies_that_cost_the_cpu_more_than_the_device_say_so() -> None:
    rows = Limits((replace(limits(transfer=2.0).rows[0], now_ns=400),), 2.0, False)
    assert "copies between host and device, mostly" not in verdict_of(rows, [], replace(STATE, copies_ns=300)).sentence
    said = verdict_of(rows, [], replace(STATE, copies_ns=70)).sentence
    assert "the step waits for copies between host and device, mostly for the CPU's part in them; " in said


def test_the_plan_does_not_change_the_cause() -> None:
    waits = replace(GRAPH, fix="remove_sync")
    assert verdict_of(limits(dispatch=3.75, sync=1.1), [waits], STATE).cause == "dispatch"
    assert verdict_of(limits(dispatch=3.75), [], STATE).fix is None


def test_two_causes_that_are_as_good_are_both_named() -> None:
    verdict = verdict_of(limits(sync=2.0, dispatch=1.9), [], STATE)
    assert (verdict.cause, verdict.also) == ("sync", "dispatch")
    assert verdict.sentence.startswith("Sync-bound and dispatch-bound: in the step of 3.00 ms, ")
    pair = verdict_of(limits(dispatch=1.05, transfer=1.04, pair=("dispatch", "transfer")), [], STATE)
    assert (pair.cause, pair.also) == ("dispatch", "transfer")
    assert pair.sentence.endswith(
        "without both, the step would take 2.50 ms instead of 3.00 ms; neither alone gives a tenth."
    )


def test_a_replay_that_misses_the_step_by_more_than_a_tenth_says_nothing() -> None:
    said = verdict_of(limits(dispatch=3.75), [GRAPH], replace(STATE, replay_error=0.17))
    assert (said.cause, said.fix) == ("unclear", None)
    assert said.sentence.startswith("Unclear: the replay misses the recorded step by 17 %")
    assert "such as another process on this GPU" in said.sentence
    early = verdict_of(limits(dispatch=3.75), [GRAPH], replace(STATE, replay_error=0.17, unlaunched_share=0.31))
    assert "31 % of the GPU's work was launched before the recording began" in early.sentence
    assert verdict_of(limits(dispatch=3.75), [GRAPH], replace(STATE, replay_error=0.09)).cause == "dispatch"


def test_kernels_that_hang_on_a_host_nobody_knows_are_neither_slow_nor_healthy() -> None:
    kernel = Limit("kernel", Estimate(1.7e6, 2.5e6, 2.95e6), Estimate(1.02, 1.2, 1.76), 0, (1.76, 1.2, 1.02))
    assert verdict_of(Limits((kernel,), 1.05, False), [], STATE).cause == "healthy", "recording cost little"
    said = verdict_of(Limits((kernel,), 1.05, False), [], replace(STATE, distortion=1.7))
    assert said.cause == "unclear"
    assert "with the fixes of kernels, the step of 3.00 ms would take 1.70 ms to 2.95 ms" in said.sentence


def test_a_wide_range_says_measure_it_and_one_that_includes_no_gain_says_might() -> None:
    wide = replace(GRAPH, gain=Estimate(0.9, 2.0, 4.0))
    assert "First, a CUDA graph: 0.90–4.00×, measure it." in verdict_of(limits(dispatch=3.0), [wide], STATE).sentence
    doubtful = replace(GRAPH, gain=Estimate(0.9, 1.5, 2.0))
    assert "a CUDA graph might bring it to" in verdict_of(limits(dispatch=3.0), [doubtful], STATE).sentence


def test_a_step_without_a_cause_is_healthy() -> None:
    verdict = verdict_of(
        limits(1.04, dispatch=1.03, kernel=1.5), [], replace(STATE, idle_share=0.02, bare_idle_share=0.02)
    )
    assert verdict.cause == "healthy"
    assert "busy 98 % of each step" in verdict.sentence
    assert verdict_of(limits(1.04, True, kernel=1.5), [], STATE).cause == "kernel"


def test_a_healthy_step_names_the_fix_that_may_gain_a_tenth() -> None:
    compiled = Finding(
        "unfused_elementwise",
        "kernel",
        "torch_compile",
        "torch.compile",
        "",
        1,
        1,
        Estimate(0.9, 1.55, 2.1),
        Estimate(1e6, 2e6, 3e6),
        "low",
        (),
        "",
    )
    said = verdict_of(limits(1.04, kernel=1.5), [], STATE, [compiled]).sentence
    assert "no fix is certain to gain 5 %; torch.compile might gain some (1.55×, range 0.90–2.10×): measure it." in said
    small = replace(compiled, gain=Estimate(0.98, 1.04, 1.1))
    assert "might gain some" not in verdict_of(limits(1.04, kernel=1.5), [], STATE, [small]).sentence


def test_a_busy_gpu_is_not_healthy_with_kernels_that_can_use_half_of_it() -> None:
    state = replace(STATE, idle_share=0.07, bare_idle_share=0.07, half_empty=HalfEmpty(2.7e6, 1, 1, 108, 32))
    verdict = verdict_of(limits(1.0, dispatch=1.0), [], state)
    assert verdict.cause == "unclear"
    assert verdict.sentence.startswith("Unclear: the GPU is busy 93 % of each step, but 2.70 ms of it with kernels")
    assert "(the longest: 1 block of 1 thread, for 108 multiprocessors)" in verdict.sentence
    assert verdict_of(limits(2.0, dispatch=2.0), [GRAPH], state).cause == "dispatch", "a cause is a cause"


@pytest.mark.parametrize(
    ("blocks", "threads", "advice"),
    [
        (1, 1, "Launch more blocks, of whole warps;"),
        (40, 256, "Launch more blocks;"),
        (1_048_576, 16, "Use blocks of whole warps (32 threads);"),
    ],
)
def test_a_grid_is_advised_to_have_what_it_lacks(blocks: int, threads: int, advice: str) -> None:
    state = replace(STATE, idle_share=0, bare_idle_share=0, half_empty=HalfEmpty(2.7e6, blocks, threads, 108, 32))
    assert advice in verdict_of(limits(1.0, dispatch=1.0), [], state).sentence


def test_a_busy_gpu_is_not_healthy_with_graphs_whose_kernels_are_not_recorded() -> None:
    """1 ms of a step of 10 ms: a tenth could be gained in it; 0.9 ms could not give that much."""
    state = replace(STATE, step_ns=10e6, idle_share=0.02, bare_idle_share=0.02, graph_bars_ns=1e6)
    verdict = verdict_of(limits(1.0, dispatch=1.0), [], state)
    assert verdict.cause == "unclear"
    assert "1.00 ms of it with CUDA graphs that are recorded as one event each" in verdict.sentence
    assert verdict_of(limits(1.0, dispatch=1.0), [], replace(state, graph_bars_ns=0.9e6)).cause == "healthy"


INDEX_ADD = "void at::native::indexFuncLargeIndex<float, long, unsigned int, 2, 2, -2, true, at::native::ReduceAdd>"
GATHER = "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)"


@pytest.mark.parametrize("adding_us", [2000, 0])
def test_a_gpu_that_gathers_rows_and_adds_them_may_have_a_sparse_matmul(tmp_path: Path, adding_us: int) -> None:
    """Gathers take 3 of 6 ms, or of 4; with what adds the rows again they are a sparse matmul, and alone a table."""

    def body(program: Program) -> None:
        program.op("aten::index", (GATHER, 3000))
        if adding_us:
            program.op("aten::index_add_", (INDEX_ADD, adding_us))
        program.large_product(1000)

    verdict = judged(tmp_path, body).verdict
    assert verdict.cause == "healthy"
    assert ("For 5.00 ms, kernels gather rows and add them at indices" in verdict.sentence) == bool(adding_us)


def test_a_gpu_that_is_idle_without_a_reason_is_not_healthy() -> None:
    state = replace(STATE, unexplained_ns=1.2e6)
    verdict = verdict_of(limits(1.0, dispatch=1.0), [], state)
    assert verdict.cause == "unclear"
    assert "busy 60 % of each step, but for 1.20 ms it is idle without a recorded reason. Record" in verdict.sentence
    moved = verdict_of(limits(1.0, dispatch=1.0), [], replace(state, migrations=227)).sentence
    assert "unified memory moves page by page (227 migrations)" in moved
    assert verdict_of(limits(1.0, dispatch=1.0), [], replace(state, unexplained_ns=2e5)).cause == "healthy"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (replace(STATE, errors=("truncated",)), "the profile has an error (truncated)"),
        (replace(STATE, covered=0.3), "only 30 % of the recording's GPU time"),
        (replace(STATE, fits_devices=False), "shorter than the GPU work"),
        (replace(STATE, operations=1), "a single GPU operation"),
    ],
    ids=["error", "covered", "device", "one operation"],
)
def test_where_nothing_can_be_said_it_says_what_to_record(state: State, words: str) -> None:
    verdict = verdict_of(limits(dispatch=3.0), [GRAPH], state)
    assert (verdict.cause, verdict.fix) == ("unclear", None)
    assert words in verdict.sentence


def test_delays_without_a_reason_that_come_first_are_unclear() -> None:
    verdict = verdict_of(limits(unknown=3.0, dispatch=1.5), [GRAPH], STATE)
    assert (verdict.cause, verdict.fix) == ("unclear", None)
    assert "Record the CPU side too (ops, Python stacks or OS calls) to see what" in verdict.sentence
    with_ops = verdict_of(limits(unknown=3.0, dispatch=1.5), [GRAPH], replace(STATE, lacks=("Python stacks",)))
    assert "Record the CPU side too (Python stacks) to see what" in with_ops.sentence
    whole = verdict_of(limits(unknown=3.0, dispatch=1.5), [GRAPH], replace(STATE, lacks=()))
    assert "Record" not in whole.sentence


def test_every_resource_has_its_words() -> None:
    assert set(WORDS) == {resource.name.lower() for resource in Resource} - {"unknown"}


def test_without_steps_the_recording_is_meant() -> None:
    verdict = verdict_of(limits(transfer=3.0), [], replace(STATE, noun=StepNoun("recording")))
    assert "the recording would take 1.00 ms instead of 3.00 ms" in verdict.sentence


def test_a_verdict_on_a_small_part_of_the_recording_says_so() -> None:
    said = verdict_of(limits(dispatch=3.75), [GRAPH], replace(STATE, share_of_recording=0.022)).sentence
    assert "instead of 3.00 ms. The steps are 2 % of the recording. First, a CUDA graph" in said
    assert "of the recording" not in verdict_of(limits(dispatch=3.75), [GRAPH], STATE).sentence


def test_a_recording_of_a_capture_is_no_program_to_judge() -> None:
    verdict = verdict_of(limits(cold_start=6.4), [GRAPH], replace(STATE, captured=0.95))
    assert (verdict.cause, verdict.fix) == ("unclear", None)
    assert "a graph capture (95 % of it)" in verdict.sentence


def test_work_that_waits_for_what_is_not_in_the_recording_asks_for_another_recording() -> None:
    said = verdict_of(limits(unknown=2.0), [GRAPH], replace(STATE, unrecorded_ns=1.5e6)).sentence
    assert said.startswith("Unclear: for 1.50 ms of the step, work is launched and does not start")
    assert "Start to record earlier" in said


def test_kernels_are_to_blame_from_the_5_percent_that_a_fix_is_sure_of() -> None:
    assert verdict_of(limits(together=1.0, sure=True, kernel=1.07), [], STATE).cause == "kernel"
    assert verdict_of(limits(together=1.0, sure=False, kernel=1.07), [], STATE).cause == "healthy"


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.0, "0 %"),
        (0.0004, "under 0.1 %"),
        (0.0011, "0.1 %"),
        (0.0049, "0.5 %"),
        (0.006, "1 %"),
        (0.996, "99.6 %"),
        (1.0, "100 %"),
    ],
)
def test_a_small_share_is_not_nothing(share: float, said: str) -> None:
    assert percent(share) == said


def test_a_short_use_of_the_gpu_is_said_to_be_a_part_of_the_recording(tmp_path: Path) -> None:
    """A loader takes 8 s, then five kernels of 1 ms are launched, one every 10 ms, and 1 s of Python follows up to a last
    op: the GPU is used for 41 ms of 9.05 s, and of the other 9.009 s 8 are the loader's."""
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    events = [files.op(loader, 0, 8_000_000)]
    for number in range(5):
        start = 8_000_000 + 10_000 * number
        events.append(files.op(f"aten::op{number}", start, 50))
        events += files.launched(f"kernel{number}", start + 5, start + 20, 1_000, number + 1)
    events.append(files.op("aten::item", 9_049_900, 100))
    judgement = judge(open_trace(files.write(tmp_path, events), cache=False))
    assert judgement.state.rest is not None
    assert judgement.state.rest.time_ns == pytest.approx(9_009_000_000, rel=1e-4)
    sentence = judgement.verdict.sentence
    assert "That is 0.5 % of what is recorded, from the first GPU operation to the last" in sentence
    assert "of the other 9.01 s, 8.00 s wait for data or load it." in sentence
