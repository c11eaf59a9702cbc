"""Fixes on hand-made traces, with answers worked out on paper, and on real profiles."""

from __future__ import annotations

import json
from pathlib import Path

import kineto_files as files
import pytest
from click.testing import CliRunner
from kineto_files import Event
from msgspec.structs import replace
from paths import DATA

import warpline
from warpline.cli.whatif import whatif as command
from warpline.errors import CannotAnswer, UsageError
from warpline.estimate import Estimate
from warpline.findings.fix_table import every_fix, whatif
from warpline.fixes.model import Fix
from warpline.fixes.registry import all_fixes, question_about
from warpline.fixes.words import StepNoun
from warpline.replay.costs.find import find_costs
from warpline.replay.costs.host import DEFAULT_KINETO
from warpline.reports.terminal import render
from warpline.reports.whatif import report, report_all
from warpline.trace.open import open_trace

SGEMM = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(cutlass_80_simt_sgemm_128x64_8x5_nn_align1::Params)"
ELEMENTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, std::array<char*, 2ul> >"
)


def opened(folder: Path, events: list[Event]) -> warpline.Trace:
    return open_trace(files.write(folder, events), cache=False)


def loop(step_ns: float, body: list[tuple[float, float, float, str]], steps: int = 3, **extra: float) -> list[Event]:
    """Steps with launches (at, begin, length, name) in each; `sync` is (at, length) of a synchronising call."""
    events: list[Event] = []
    for step in range(steps):
        base, number = step_ns * step, 100 * step
        events.append(files.annotation(f"ProfilerStep#{step}", base, step_ns))
        for position, (at, begin, length, name) in enumerate(body, 1):
            events.append(files.call("cudaLaunchKernel", base + at, 5, number + position))
            events.append(files.kernel(name, base + begin, length, number + position))
        if "sync_at" in extra:
            call = files.call("cudaStreamSynchronize", base + extra["sync_at"], extra["sync_length"], number + 99)
            events.append(call)
    return events


def dispatch_bound() -> list[Event]:
    """Ten kernels of 4 µs in a step of 1 ms."""
    return loop(1000, [(100 * i + 20, 100 * i + 27, 4, ELEMENTWISE) for i in range(10)])


@pytest.mark.parametrize("fix", all_fixes().values(), ids=lambda fix: fix.name)
def test_every_fix_has_a_summary_and_assumptions(fix: Fix) -> None:
    assert fix.summary
    assert fix.assumptions


def test_a_cuda_graph_turns_dispatch_into_one_launch_and_small_gaps(tmp_path: Path) -> None:
    trace = opened(tmp_path, dispatch_bound())
    prediction, costs = whatif(trace, ["cuda_graph"]), find_costs(trace)
    host = costs.host
    launch = host.op.expected + host.graph_launch.expected + 10 * host.graph_node.expected
    kernels = 10 * 4_000 + 9 * costs.device.graph_gap.expected
    # The device works while the next step's graph is launched: the slower of the two sets the pace.
    assert prediction.new_step_ns.expected == pytest.approx(max(launch, kernels), rel=0.1)
    assert prediction.gain.low <= prediction.gain.expected <= prediction.gain.high


def test_removing_a_sync_gains_nothing_where_the_cpu_sets_the_pace(tmp_path: Path) -> None:
    """One kernel of 4 µs each 100 µs, and a wait of 6 µs at the end, of which 3 µs are the call's own."""
    body = [(100 * i + 20, 100 * i + 27, 4, ELEMENTWISE) for i in range(9)] + [(920, 927, 50, ELEMENTWISE)]
    trace = opened(tmp_path, loop(1000, body, sync_at=926, sync_length=54))
    assert whatif(trace, ["remove_sync"]).gain.expected < 1.08


def test_removing_a_sync_gains_what_the_wait_hid(tmp_path: Path) -> None:
    """A kernel of 400 µs that the CPU waits for, then 500 µs of CPU: overlapped, the CPU's 520 µs remain."""
    body = [(10, 17, 400, SGEMM)]
    trace = opened(tmp_path, loop(920, body, sync_at=16, sync_length=404))
    prediction = whatif(trace, ["remove_sync"])
    assert prediction.new_step_ns.expected == pytest.approx(516_000 - DEFAULT_KINETO.step.expected, rel=0.03)
    kept = prediction.old_step_ns.expected / prediction.replayed_ns.high
    assert kept == pytest.approx(1.0, abs=0.12), "the worst case keeps one wait in each step, and recording cost little"


def test_tf32_shortens_products_on_cuda_cores_only(tmp_path: Path) -> None:
    body = [(10, 17, 2669, SGEMM), (20, 2688, 100, ELEMENTWISE)]
    trace = opened(tmp_path, loop(2900, body, sync_at=30, sync_length=2761))
    prediction = whatif(trace, ["tf32"])
    # 2,669 µs in fp32 are 349 in TF32 by the table; everything else stays.
    saved = prediction.old_step_ns.expected - prediction.new_step_ns.expected
    assert saved == pytest.approx(2_669_000 - 349_184, rel=0.01)


def test_a_pinned_copy_is_faster_and_does_not_block(tmp_path: Path) -> None:
    events: list[Event] = []
    for step in range(3):
        base, size = 3000 * step, 20_000_000
        events.append(files.annotation(f"ProfilerStep#{step}", base, 3000))
        events.append(files.call("cudaMemcpyAsync", base + 10, 2000, 10 * step + 1))
        events.append(files.copy("Memcpy HtoD (Pageable -> Device)", base + 30, 1950, 10 * step + 1, size))
        events.append(files.call("cudaLaunchKernel", base + 2100, 5, 10 * step + 2))
        events.append(files.kernel(ELEMENTWISE, base + 2107, 100, 10 * step + 2))
    prediction = whatif(opened(tmp_path, events), ["pin_memory"])
    # 20 MB at 55 GB/s are 364 µs, beside the 1 ms of CPU that remains, less what the profiler's own step() takes.
    assert prediction.new_step_ns.expected == pytest.approx(1_000_000 - DEFAULT_KINETO.step.expected, rel=0.02)


def test_fixes_combine_on_one_graph(tmp_path: Path) -> None:
    body = [(10, 17, 2669, SGEMM), (1000, 2688, 100, ELEMENTWISE)]
    trace = opened(tmp_path, loop(2900, body, sync_at=1100, sync_length=1691))
    question = question_about(trace)
    both = question.ask("tf32", "remove_sync").new_step_ns.expected
    assert both <= min(question.ask(name).new_step_ns.expected for name in ("tf32", "remove_sync"))


def test_a_fix_that_finds_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(CannotAnswer, match="nothing-to-fix"):
        whatif(opened(tmp_path, dispatch_bound()), ["overlap_comm"])


def test_an_unknown_fix_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cuda_graph"):
        whatif(opened(tmp_path, dispatch_bound()), ["magic"])


def run_manifest(folder: Path, file: str, median_ns: int, steps: int = 6, settled: bool = True) -> None:
    timed = {"median_ns": median_ns, "min_ns": median_ns - 1_000, "max_ns": median_ns + 1_000, "steps": steps}
    timed["settled"] = settled
    manifest = {"schema": "warpline.run/1", "traces": [{"file": file, "bare_step_ns": timed}]}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_a_measured_bare_step_is_the_old_step_of_every_gain_and_leaves_the_graph_alone(tmp_path: Path) -> None:
    trace = opened(tmp_path, dispatch_bound())
    estimated = question_about(trace)
    assert estimated.bare.step_from == "estimated"
    between = (estimated.bare.step_ns.expected + estimated.replay.measured_step_ns) / 2
    run_manifest(tmp_path, trace.file.name, round(between))
    measured = question_about(trace)
    assert measured.bare.step_from == "measured"
    assert measured.bare.step_ns.expected == round(between)
    assert (measured.labelled.graph.duration == estimated.labelled.graph.duration).all()
    before, after = estimated.ask("cuda_graph"), measured.ask("cuda_graph")
    # The graph removes nearly all idle time, and with it what the stopwatch showed beyond the estimate.
    assert after.new_step_ns.expected == pytest.approx(before.new_step_ns.expected, rel=0.05)
    assert after.gain.expected > before.gain.expected
    assert after.gain.expected == pytest.approx(round(between) / after.new_step_ns.expected)


def test_a_fix_that_changes_nothing_gains_nothing_from_a_slow_stopwatch(tmp_path: Path) -> None:
    """The CPU sets the pace: without the wait it takes as long, and so does what the stopwatch shows beyond it."""
    body = [(100 * i + 20, 100 * i + 27, 4, ELEMENTWISE) for i in range(9)] + [(920, 927, 50, ELEMENTWISE)]
    trace = opened(tmp_path, loop(1000, body, sync_at=926, sync_length=54))
    estimated = question_about(trace)
    run_manifest(tmp_path, trace.file.name, round(1.4 * estimated.bare.step_ns.expected))
    gain = question_about(trace).ask("remove_sync").gain.expected
    assert gain == pytest.approx(estimated.ask("remove_sync").gain.expected, abs=0.06)


def test_a_fix_that_no_finding_names_carries_a_warning_and_may_gain_nothing(tmp_path: Path) -> None:
    """FP32 products: the finding is TF32, and bf16 is none as long as that gains."""
    body = [(10, 17, 2669, SGEMM), (20, 2688, 100, ELEMENTWISE)]
    trace = opened(tmp_path, loop(2900, body, sync_at=30, sync_length=2761))
    asked, named, plain = whatif(trace, ["bf16"]), whatif(trace, ["tf32"]), question_about(trace)
    assert named.warnings == ()
    assert named.gain == plain.ask("tf32").gain.rounded(4)
    assert ["no finding names bf16" in text for text in asked.warnings] == [True]
    assert asked.to_dict()["warnings"] == list(asked.warnings)
    assert asked.gain.expected == plain.ask("bf16").gain.expected
    assert asked.gain.low < 1 < named.gain.low
    assert asked.new_step_ns.high > asked.old_step_ns.expected
    assert [bool(one.warnings) for one in every_fix(trace)[:2]] == [True, False]
    assert whatif(trace, ["tf32", "overlap_comm"]).warnings == (), "a fix that changes nothing is no doubt"


def test_the_low_end_keeps_what_the_device_must_still_do(tmp_path: Path) -> None:
    """A kernel of 400 µs that the CPU waits for, then 100 µs of CPU: without the wait, the kernel's 400 µs remain."""
    trace = opened(tmp_path, loop(520, [(10, 17, 400, SGEMM)], sync_at=16, sync_length=404))
    prediction = question_about(trace).ask("remove_sync")
    assert prediction.new_step_ns.expected == pytest.approx(400_000, rel=0.05)
    # The same kernel may take a tenth less in another run.
    assert prediction.new_step_ns.low == pytest.approx(0.9 * 400_000)
    assert prediction.new_step_ns.high > 1.1 * prediction.new_step_ns.expected


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"traces": [{"file": "other.json"}]}', '{"traces": 3}'])
def test_a_manifest_that_says_nothing_of_the_trace_is_passed_over(tmp_path: Path, text: str) -> None:
    trace = opened(tmp_path, dispatch_bound())
    (tmp_path / "manifest.json").write_text(text)
    assert question_about(trace).bare.step_from == "estimated"


def test_too_few_bare_steps_say_nothing(tmp_path: Path) -> None:
    trace = opened(tmp_path, dispatch_bound())
    run_manifest(tmp_path, trace.file.name, 1_000_000, steps=2)
    assert question_about(trace).bare.step_from == "estimated"


def test_bare_steps_that_still_became_faster_are_no_worse_than_an_estimate(tmp_path: Path) -> None:
    trace = opened(tmp_path, dispatch_bound())
    run_manifest(tmp_path, trace.file.name, 1_000_000, settled=False)
    assert question_about(trace).bare.step_ns.expected == 1_000_000


PROFILES = sorted([*(DATA / "kineto").glob("*.gz"), *(DATA / "nsys").glob("*.sqlite.gz")])


@pytest.mark.parametrize("file", PROFILES, ids=lambda file: file.name)
def test_no_fix_makes_a_real_step_slower_or_passes_the_floor(file: Path) -> None:
    question = question_about(open_trace(file))
    floor = question.ask("at_roofline").replayed_ns.low if "kineto" in str(file) else 0.0
    for name in all_fixes():
        prediction = question.ask(name)
        assert prediction.new_step_ns.low <= prediction.new_step_ns.expected <= prediction.new_step_ns.high
        assert prediction.gain.expected > 0.99, name
        if name in {"tf32", "channels_last", "pad"}:
            assert prediction.replayed_ns.low >= 0.98 * floor, name


def test_the_command_answers_as_text_and_as_json() -> None:
    file = str(DATA / "kineto" / "layer_eager.json.gz")
    text = CliRunner().invoke(command, [file, "--fix", "cuda_graph"])
    assert text.exit_code == 0
    assert "The step might take" in text.stdout
    everything = CliRunner().invoke(command, [file])
    assert "torch_compile" in everything.stdout
    answer = CliRunner().invoke(command, [file, "--fix", "cuda_graph", "--json"])
    assert '"schema": "warpline.whatif/1"' in answer.stdout


def test_the_report_shows_ranges_and_assumptions(tmp_path: Path) -> None:
    text = render(report(whatif(opened(tmp_path, dispatch_bound()), ["cuda_graph"]), "trace.json"), 100).plain
    assert "without the profiler" in text
    assert "Shapes and control flow" in text


def test_a_recording_without_steps_is_not_called_one(tmp_path: Path) -> None:
    found = replace(whatif(opened(tmp_path, dispatch_bound()), ["cuda_graph"]), gain=Estimate(1.1, 1.2, 1.3))
    assert "The step would take" in render(report(found), 100).plain
    text = render(report(found, noun=StepNoun("recording")), 100).plain
    assert "The recording would take" in text
    assert "median" not in text


def test_where_the_replay_misses_the_recording_its_gains_are_worth_nothing(tmp_path: Path) -> None:
    found = whatif(opened(tmp_path, dispatch_bound()), ["cuda_graph"])
    for write in (report, lambda prediction: report_all([prediction], "trace.json", StepNoun("step"))):
        assert "no gain can be told" not in render(write(found), 100).plain
        text = render(write(replace(found, error_pct=17.0)), 100).plain
        assert "The replay misses the recorded step by 17 %, so no gain can be told" in " ".join(text.split())
