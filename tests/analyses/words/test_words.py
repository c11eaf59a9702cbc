"""Sentences for calls, classes, causes and codes, and API time that is spent once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from kineto_files import annotation, call, kernel, write
from paths import DATA, ROOT, SHARED

from warpline.analyses.api_split import api_split
from warpline.analyses.idle.gaps import CAUSES as IDLE_CAUSES
from warpline.analyses.words import KINDS, names_of, words_of
from warpline.cli.main import run
from warpline.findings.state import COPIES
from warpline.fixes.claim import CAUSES
from warpline.fixes.registry import all_fixes
from warpline.kernels import CLASSES
from warpline.trace.open import open_trace


def test_every_class_and_cause_has_a_sentence() -> None:
    assert set(names_of("class")) == set(CLASSES)
    assert set(CAUSES) <= set(names_of("cause"))
    assert set(IDLE_CAUSES) - {"unknown"} <= set(names_of("cause"))


def test_health_codes_have_the_sentences_of_their_page() -> None:
    page = (ROOT / "docs" / "health.md").read_text()
    documented = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.*?) \|", page, flags=re.MULTILINE))
    words = {name: words_of(name, "health") for name in names_of("health")}
    assert {name: found.text for name, found in words.items() if found} == documented


@pytest.mark.parametrize("name", ["graph_node", "graph_bar", "odd_ranges"])
def test_every_call_of_a_recording_has_a_sentence(name: str) -> None:
    trace = open_trace(DATA / "nsys" / f"{name}.sqlite.gz")
    assert [call for call in trace.api.stored["name"].unique() if words_of(call, "api") is None] == []
    assert [
        call for call in trace.osrt.stored["name"].unique() if words_of(call, "os") is None and call != "[Unknown]"
    ] == []


@pytest.mark.parametrize(
    ("name", "when"),
    [
        ("cuLibraryLoadData", "once"),
        ("cudaLaunchKernel", "step"),
        ("cuLaunchKernelEx", "step"),
        ("hipModuleLaunchKernel", "step"),
        ("cudaMemcpyAsync", "step"),
        ("cuMemcpyDtoHAsync_v2", "step"),
        ("cudaMemcpy", "wait"),
        ("cudaMemcpy2D", "wait"),
        ("cudaStreamSynchronize", "wait"),
        ("cudaStreamIsCapturing_v10000", "ask"),
        ("cudaMallocAsync", "step"),
        ("cudaMalloc", "once"),
        ("cudaFreeAsync", "step"),
        ("cudaGetDevice", "ask"),
    ],
)
def test_when_a_call_is_made(name: str, when: str) -> None:
    found = words_of(name, "api")
    assert found is not None
    assert found.when == when


def test_the_file_is_small_and_has_no_line_twice() -> None:
    text = (ROOT / "src/warpline/analyses/words/words.txt").read_text()
    assert len(text) < 30_000
    for kind in KINDS:
        names = names_of(kind)
        assert len(names) == len(set(names))


def test_first_launches_and_loading_are_spent_once(tmp_path: Path) -> None:
    """Loading 700 µs; five launches of 10 µs, the first of each of two kernels 110 and 60 µs; a wait of 40 µs."""
    events = [call("cuLibraryLoadData", 0, 700, 1, category="cuda_driver")]
    at = 1000
    for number, (name, length) in enumerate(
        [("a", 110), ("b", 60), ("a", 10), ("b", 10), ("a", 10), ("a", 10), ("b", 10)]
    ):
        events += [call("cudaLaunchKernel", at, length, 10 + number), kernel(name, at + length, 5, 10 + number)]
        at += 200
    events += [call("cudaDeviceSynchronize", at, 40, 99), annotation("ProfilerStep#0", 1400, 1000)]
    split = api_split(open_trace(write(tmp_path, events)))
    assert {part.kind: part.time_ns for part in split.parts} == {
        "once": 700_000,
        "first": 150_000,
        "step": 70_000,
        "wait": 40_000,
    }
    assert (split.total_ns, split.one_time_ns) == (960_000, 850_000)
    assert {part.kind: part.in_steps_ns for part in split.parts}["step"] == 50_000


@pytest.mark.shared
def test_most_api_time_of_a_short_recording_is_spent_once() -> None:
    trace = open_trace(SHARED / "h200/nsys/layer_eager.sqlite.gz")
    split = api_split(trace)
    once = next(part for part in split.parts if part.kind == "once")
    assert round(100 * once.time_ns / split.total_ns, 1) == 80.3
    assert round(100 * split.one_time_ns / split.total_ns, 1) == 92.3


def test_stats_says_what_its_rows_are(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(DATA / "nsys" / "graph_node.sqlite.gz")
    assert run(["stats", path, "-r", "cuda_api_sum,cuda_gpu_kern_sum", "-v", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["words"]["cuda_api_sum"]["cudaGraphLaunch_v10000"].startswith("replays")
    assert sum(part["time_ns"] for part in answer["api_time"]["parts"]) == answer["api_time"]["total_ns"]
    assert run(["stats", path, "-r", "cuda_api_sum", "-v"]) == 0
    assert "is spent once" in capsys.readouterr().out
    run(["stats", path, "-r", "cuda_api_sum"])
    assert "is spent once" not in capsys.readouterr().out


def test_explain_knows_all_that_warpline_names(capsys: pytest.CaptureFixture[str]) -> None:
    rules = [rule.name for fix in all_fixes().values() for rule in fix.findings]
    names = ["cuLibraryLoadData", "poll", "gemm", *CAUSES, *names_of("health"), *all_fixes(), *rules, "osrt_sum"]
    names += [
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "ampere_sgemm_128x64_nn",
        "aten::linear",
        "aten::add_",
    ]
    assert run(["explain", *names, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {entry["name"] for entry in answer["names"]} == set(names)
    assert answer["unknown"] == []


def test_an_unknown_name_gets_close_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "cuLibraryLoadDat", "poll"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("poll: ")
    assert "cuLibraryLoadData" in err
    assert run(["explain", "\x1b[31mxyzzy"]) == 1
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "shown", ["Dispatch-bound", "Allocator-bound", COPIES, "launch latency", "cold start", "Healthy"]
)
def test_causes_are_known_as_a_screen_writes_them(shown: str) -> None:
    assert words_of(shown, "cause") is not None
