"""Phases of a serving engine: from the names of its ranges, else from the rows of matmuls, and what comes before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kineto_files import annotation, call, copy, frame, kernel, launched, op, write
from paths import DATA

from warpline.analyses.idle.gaps import idle_gaps
from warpline.analyses.parts.table import parts_table
from warpline.analyses.serving import Engine, Serving, StepTokens, engine_of, serving, tokens_of
from warpline.cli.main import run
from warpline.fixes.engine_advice import engine_advice
from warpline.reports.serving import serving_section
from warpline.trace.open import open_trace

SAMPLER = "void reduce_kernel<512, 1, ReduceOp<float, ArgMaxOps<float>>>(int)"


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("execute_context_2(512)_generation_6(6)", StepTokens("mixed", 8, 518)),
        ("execute_context_0(0)_generation_8(8)", StepTokens("decode", 8, 8)),
        ("execute_context_0(0)_generation_0(0)", StepTokens("empty", 0, 0)),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55sqsq32sqsk55)", StepTokens("decode", 32, 32)),
        ("execute_10_context_1(sq10sk20sqsq1sqsk1)_generation_0(sq0sk0sqsq0sqsk0)", StepTokens("prefill", 1, 10)),
        ("step[EXTEND bs=15 toks=15360]", StepTokens("prefill", 15, 15360)),
        ("step[DECODE bs=32]", StepTokens("decode", 32, 32)),
        ("decode[bs=4]", StepTokens("decode", 4, 4)),
        ("[Executor] _forward_step 12: 1 ctx reqs, 7 gen reqs", StepTokens("mixed", 8, None)),
        ("[Executor] _forward_step 12: 1 ctx reqs, 90 ctx tokens, 7 gen reqs", StepTokens("mixed", 8, 97)),
        ("[Executor] _forward_step: 0 ctx reqs, 7 gen reqs", StepTokens("decode", 7, 7)),
        ("executeStep: 0 ctx reqs, 3 gen reqs", StepTokens("decode", 3, 3)),
        ("execute_model", None),
        ("train_step 3", None),
    ],
)
def test_the_name_of_a_range_has_requests_and_tokens(name: str, step: StepTokens | None) -> None:
    assert tokens_of(name) == step


def found(folder: Path, events: list[Any]) -> Serving | None:
    trace = open_trace(write(folder, events))
    return serving(trace, idle_gaps(trace))


def step(name: str, start: float, busy: float, number: int, graph: bool = False) -> list[Any]:
    """A step of 100 µs."""
    launch = call("cudaGraphLaunch" if graph else "cudaLaunchKernel", start + 5, 5, number)
    return [
        annotation(name, start, 100),
        launch,
        kernel("k", start + 20, busy, number),
        call("cudaDeviceSynchronize", start + 20, 75, 9000 + number),
    ]


def test_phases_are_counted_apart(tmp_path: Path) -> None:
    decode = "execute_context_0(0)_generation_{0}({0})"
    events = [
        *step("execute_context_1(50)_generation_0(0)", 0, 80, 1),
        *step(decode.format(2), 100, 20, 2, graph=True),
        *step(decode.format(3), 200, 20, 3),
        *step("execute_context_1(50)_generation_0(0)", 300, 60, 4),
        *step(decode.format(4), 400, 40, 5, graph=True),
    ]
    answer = found(tmp_path, events)
    assert answer is not None and not answer.is_inferred
    by_name = {one.phase: one for one in answer.phases}
    assert set(by_name) == {"prefill", "decode"}
    one = by_name["decode"]
    assert (one.steps, one.requests, one.tokens, one.graph_steps) == (3, 3.0, 3.0, 2)
    assert (one.total_ns, one.busy_ns, one.token_ns) == (300_000, 80_000, 300_000 / 9)
    assert by_name["prefill"].tokens == 50
    shown = str(serving_section(answer))
    assert "'50'" in shown
    assert "50.0" not in shown
    # A decode step of 3 requests has no graph, and one prefill lies between decodes.
    assert (answer.uncaptured_batches, answer.stalls) == ((3,), 1)


def test_a_program_that_is_no_engine_has_no_phases(tmp_path: Path) -> None:
    assert found(tmp_path, [*step("train_step 1", 0, 50, 1), *step("train_step 2", 100, 50, 2)]) is None


def test_start_up_is_named_after_the_functions_of_the_engine(tmp_path: Path) -> None:
    prefix = "vllm/v1/worker/gpu_worker.py"
    events = [
        frame(f"{prefix}(10): load_model", 0, 100, 1, None),
        frame(f"{prefix}(20): determine_available_memory", 100, 200, 2, None),
        frame(f"{prefix}(30): _dummy_run", 120, 100, 3, 2),
        frame(f"{prefix}(40): compile_or_warm_up_model", 300, 300, 4, None),
        frame(f"{prefix}(50): capture_model", 400, 100, 5, 4),
        call("cudaStreamBeginCapture", 410, 1, 1),
        call("cudaStreamEndCapture", 420, 1, 2),
        *launched("k", 430, 440, 10, 3),
    ]
    answer = found(tmp_path, events)
    assert answer is not None and answer.engine == "vllm"
    assert {one.name: (one.count, one.total_ns) for one in answer.start_up} == {
        "graph capture": (1, 100_000),
        "profiling run": (1, 200_000),
        "model loading": (1, 100_000),
        "warm-up": (2, 200_000),
    }


def test_the_rest_of_a_function_that_captures_is_no_warm_up(tmp_path: Path) -> None:
    """2 of 1,000 µs of the warm-up are not in the capture that it calls."""
    prefix = "vllm/v1/worker/gpu_worker.py"
    events = [
        frame(f"{prefix}(40): compile_or_warm_up_model", 0, 1_000, 1, None),
        frame(f"{prefix}(50): capture_model", 1, 998, 2, 1),
        *launched("k", 430, 440, 10, 3),
    ]
    answer = found(tmp_path, events)
    assert answer is not None and [one.name for one in answer.start_up] == ["graph capture"]


def test_an_engine_is_known_by_its_frames_and_by_ranges_only_without_frames(tmp_path: Path) -> None:
    named = step("step[DECODE bs=3]", 0, 50, 1)
    assert engine_of(open_trace(write(tmp_path, named))) == "sglang"
    assert engine_of(open_trace(write(tmp_path, [*named, frame("engine.py(3): step", 0, 90, 1, None)]))) is None


@pytest.mark.parametrize(
    ("name", "graphs", "engine", "words"),
    [
        ("decode[bs=4]", (False, False), "sglang", "no --disable-cuda-graph"),
        ("decode[bs=4]", (True, False), "sglang", "Graphs are on: capture the batches that still run without"),
        ("prefill[bs=4]", (False, False), "sglang", "a larger --chunked-prefill-size"),
        ("execute_context_2(512)_generation_0(0)", (False, False), "vllm", "enforce_eager=False"),
    ],
)
def test_advice_is_in_the_words_of_the_engine_where_it_applies(
    name: str, graphs: tuple[bool, bool], engine: Engine, words: str, tmp_path: Path
) -> None:
    events = [one for at, graph in enumerate(graphs) for one in step(name, 200.0 * at, 50, at + 1, graph)]
    trace = open_trace(write(tmp_path, events))
    assert words in (engine_advice("cuda_graph", engine, trace) or "")
    assert engine_advice("tf32", engine, trace) is None
    assert engine_advice("cuda_graph", None, trace) is None


def matmul(start: float, number: int, rows: int, columns: int) -> list[Any]:
    shapes = {"Input Dims": [[rows, 64], [64, columns]], "Input type": ["float", "float"]}
    return [
        op("aten::mm", start, 4, external=number, **shapes),
        call("cudaLaunchKernel", start + 1, 2, number, external=number),
    ]


def test_steps_that_differ_end_with_the_read_of_their_tokens(tmp_path: Path) -> None:
    """Three steps: 40 tokens of 2 requests, then 2 and 3 decodes; the vocabulary is 1,000."""
    events: list[Any] = [
        op("aten::embedding", 1, 2, external=1, **{"Input Dims": [[1000, 64], [40]], "Input type": ["float", "long"]})
    ]
    for at, (tokens, requests) in enumerate(((40, 2), (2, 2), (3, 3))):
        start, number = 200 * at, 100 * (at + 1)
        for place in range(3):
            events += [
                *matmul(start + 10 + 5 * place, number + place, tokens, 64),
                kernel(f"gemm{tokens}_{place}", start + 20 + 10 * place, 8, number + place),
            ]
        events += [
            *matmul(start + 30, number + 3, requests, 1000),
            kernel(f"gemm_head{requests}", start + 60, 8, number + 3),
        ]
        events += [*launched(SAMPLER, start + 40, start + 70, 8, number + 4)]
        events += [
            call("cudaMemcpyAsync", start + 50, 3, number + 5),
            copy("Memcpy DtoH (Device -> Pageable)", start + 80, 2, number + 5, 8 * requests),
        ]
        events += [call("cudaStreamSynchronize", start + 54, 66, number + 6)]
    trace = open_trace(write(tmp_path, events))
    assert set(trace.all_steps.found_by.tolist()) == {"tokens"}
    assert trace.all_steps.end_ns.tolist() == [119_000, 319_000, 519_000]
    answer = serving(trace, idle_gaps(trace))
    assert answer is not None and answer.is_inferred
    assert {one.phase: (one.steps, one.requests, one.tokens) for one in answer.phases} == {
        "with prefill": (1, 2.0, 40.0),
        "decode": (2, 2.5, 2.5),
    }


def sampled(start: float, number: int, requests: int, graph: bool) -> list[Any]:
    """A step of 200 µs: 60 µs of kernels, in one graph or launched one by one, and the read of as many tokens."""
    launch = call("cudaGraphLaunch" if graph else "cudaLaunchKernel", start + 10, 5, number)
    return [
        launch,
        *([] if graph else [call("cudaLaunchKernel", start + 20, 5, number + 1)]),
        kernel(f"layer{requests}", start + 40, 30, number),
        kernel("head", start + 70, 30, number if graph else number + 1),
        *launched(SAMPLER, start + 30, start + 110, 8, number + 2),
        call("cudaMemcpyAsync", start + 40, 3, number + 3),
        copy("Memcpy DtoH (Device -> Pageable)", start + 120, 2, number + 3, 8 * requests),
        call("cudaStreamSynchronize", start + 44, 90, number + 4),
    ]


@pytest.mark.parametrize("batches", [(2, 3, 4), (2, 2, 2)])
def test_without_names_and_shapes_a_step_of_one_graph_decodes(tmp_path: Path, batches: tuple[int, ...]) -> None:
    """Three steps with a graph, and one without. A batch that never changes is no sign of continuous batching."""
    events = sampled(0, 100, 5, graph=False)
    for at, batch in enumerate(batches, 1):
        events += sampled(200 * at, 100 * (at + 1), batch, graph=True)
    answer = found(tmp_path, events)
    phases = {one.phase: (one.steps, one.requests, one.graph_steps) for one in answer.phases} if answer else {}
    expected = {"with prefill": (1, None, 0), "decode": (3, None, 3)}
    assert phases == (expected if len(set(batches)) > 1 else {})


def test_waiting_for_unrecorded_work_is_called_so(tmp_path: Path) -> None:
    """A step of 1,000 µs: its kernel starts 880 µs after its launch returns, and nothing recorded explains that."""
    events = [
        *step("step[DECODE bs=2]", 0, 80, 1),
        annotation("step[EXTEND bs=1 toks=9]", 100, 1000),
        call("cudaLaunchKernel", 105, 5, 2),
        kernel("k", 990, 100, 2),
    ]
    answer = found(tmp_path, events)
    prefill = answer.phase("prefill") if answer else None
    assert prefill is not None and prefill.idle_cause == "not_recorded"


def test_the_report_shows_phases_and_chunked_prefill(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = [
        *step("step[DECODE bs=2]", 0, 20, 1),
        annotation("step[EXTEND bs=1 toks=500]", 100, 1000),
        *launched("k", 110, 130, 900, 2),
        call("cudaDeviceSynchronize", 130, 960, 3),
        *step("step[DECODE bs=3]", 1100, 20, 4),
    ]
    assert run(["diagnose", str(write(tmp_path, events))]) == 0
    out = capsys.readouterr().out
    assert "phase" in out and "prefill" in out and "--enable-mixed-chunk" in out


def test_modules_inside_a_recorded_graph_are_those_of_the_eager_steps() -> None:
    """A small engine on an H200: three decode steps of 7 requests, eagerly and as a graph for 8 of 333 nodes. The numbers
    of kernels are those of the captured launches."""
    lent = open_trace(DATA / "kineto" / "serving_eager.json.xz")
    table = parts_table(open_trace(DATA / "kineto" / "serving_graph.json.xz"), by="module", shapes_from=lent)
    rows = {row["part"]: row for row in table.frame.to_dicts()}
    captured = {
        "Attention > RotaryEmbedding": 96,
        "Attention > PagedAttention": 78,
        "DecoderLayer > RMSNorm 1": 48,
        "DecoderLayer > RMSNorm 2": 48,
        "MLP > Linear 1": 6,
        "MLP > Linear 2": 12,
        "DecoderLayer > MLP": 12,
        "Attention > Linear 1": 6,
        "Attention > Linear 2": 6,
        "Model_0 > RMSNorm_12": 8,
    }
    assert {part: rows[part]["launches"] for part in captured} == {part: 3 * count for part, count in captured.items()}
    assert all(rows[part]["inferred_ns"] == rows[part]["gpu_ns"] for part in captured)
