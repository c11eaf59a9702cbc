"""`warpline dive` and `warpline metric`: from a report, from a timeline, and through a stand-in for ncu."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from kineto_files import Event, annotation, call, kernel, op, write
from ncu_files import GEMM, block, raw_page, raw_row, report

import warpline
from warpline.cli.main import run
from warpline.sources.ncu import report_file
from warpline.sources.ncu.child import MISSING_MODULE
from warpline.sources.stdin import as_typed

FUNCTION = "slow_norm_kernel"
NCU = """#!{python}
import pathlib, sys
words = sys.argv[1:]
folder = pathlib.Path(__file__).parent
if "--import" in words:
    print((folder / "page.csv").read_text())
elif "--version" in words:
    print("Version 2025.3.1.0")
else:
    (folder / "words").write_text("\\n".join(words))
    log = pathlib.Path(words[words.index("--log-file") + 1])
    log.write_text({log!r})
    if {works}:
        export = words[words.index("--export") + 1]
        pathlib.Path(export + ".ncu-rep").write_bytes({report!r})
"""
FORBIDDEN = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n"
PROFILED = '==PROF== Profiling "slow_norm_kernel" - 0: 0%....50%....100% - 26 passes\n'


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    events: list[Event] = []
    for step in range(3):
        at = 10_000.0 * step
        events.append(annotation(f"ProfilerStep#{step}", at, 9_000))
        for number in (2 * step + 1, 2 * step + 2):
            begin = at + 4000.0 * (number % 2)
            events += [
                op("mine::norm", begin, 50, external=number),
                call("cudaLaunchKernel", begin + 5, 10, number, external=number),
                kernel(FUNCTION, begin + 20, 900, number, grid=[7 + number % 2, 1, 1], block=[128, 1, 1]),
            ]
    return write(tmp_path, events)


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, log: str, works: bool) -> None:
    (folder / "page.csv").write_text(raw_page(raw_row(0, FUNCTION, "900.5", "100.5")))
    ncu = folder / "ncu"
    ncu.write_text(NCU.format(python=sys.executable, log=log, works=works, report=report(block(1, b"x"))))
    ncu.chmod(0o755)
    monkeypatch.setenv("WARPLINE_NCU", str(ncu))
    monkeypatch.setattr(report_file, "_ask_child", lambda file: report_file._Answer([], MISSING_MODULE, ""))
    monkeypatch.chdir(folder)


def test_a_timeline_alone_gives_the_commands(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["dive", str(trace)]) == 0
    shown = capsys.readouterr().out
    assert "--kernel-name slow_norm_kernel --launch-skip 7 --launch-count 1" in " ".join(shown.split())
    assert run(["dive", str(trace), "--json", "--top", "1"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["schema"] == "warpline.dive-plan/1"
    (chosen,) = plan["kernels"]
    assert (chosen["function"], chosen["launches"], chosen["same_function_per_step"]) == (FUNCTION, 3, 2)
    (one,) = plan["runs"]
    assert (one["launch_count"], one["passes"]) == (1, {"low": 20, "high": 38})


def test_a_program_is_run_under_ncu_and_explained(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in(tmp_path, monkeypatch, PROFILED, works=True)
    assert run(["dive", str(trace), "--json", "--", sys.executable, "-c", "pass"]) == 0
    shown = capfd.readouterr()
    answer = json.loads(shown.out)
    assert answer["schema"] == "warpline.dive/1"
    assert [found["name"] for found in answer["kernels"]] == [FUNCTION]
    assert "profiled slow_norm_kernel in 26 passes" in shown.err
    assert "other-launches" in {entry["code"] for entry in answer["health"]}, "the stand-in's grid is another"
    words = (tmp_path / "words").read_text().split("\n")
    for flag, value in (("--kernel-name", FUNCTION), ("--launch-skip", "0"), ("--launch-count", "2")):
        assert words[words.index(flag) + 1] == value
    assert {"--clock-control=none", "--target-processes=all", "--profile-from-start=off", "--kill=yes"} <= set(words)
    assert words[-3:] == [sys.executable, "-c", "pass"]


def test_forbidden_counters_give_advice_and_what_is_known(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in(tmp_path, monkeypatch, FORBIDDEN, works=False)
    assert run(["dive", str(trace), "--", sys.executable, "-c", "pass"]) == 1
    shown = capfd.readouterr()
    assert "warpline: counters-forbidden: " in shown.err
    assert "SYS_ADMIN" in shown.err
    assert "Without counters, the timeline says:\n  slow_norm_kernel (mine::norm): FLOPs and bytes unknown" in shown.out


def test_run_with_ncu_ends_in_the_same_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in(tmp_path, monkeypatch, PROFILED, works=True)
    assert run(["run", "--with", "ncu", "--json", "--", sys.executable, "-c", "pass"]) == 0
    assert [found["name"] for found in json.loads(capfd.readouterr().out)["dive"]["kernels"]] == [FUNCTION]


def test_a_report_is_a_dive_wherever_it_is_given(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.csv"
    page.write_text(raw_page(raw_row(0, FUNCTION, "900.5", "100.5")))
    for words in (["dive", str(page)], ["diagnose", str(page)], [str(page)], ["dive", str(page), str(trace)]):
        assert run([*words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["schema"] == "warpline.dive/1"
    assert run(["dive", "--compare", str(page), str(page)]) == 0
    assert "same" in capsys.readouterr().out
    assert run(["stats", str(page), "-r", "cuda_gpu_kern_sum"]) == 1
    assert f"warpline dive {as_typed(page)}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["dive", "--compare", "{page}"], "two-reports"),
        (["dive", "{trace}", "{trace}"], "two-timelines"),
        (["dive", "{page}", "--", "python"], "report-and-program"),
        (["metric", "x", "--chip", "sm_1"], "unknown-chip"),
    ],
)
def test_wrong_words_are_refused(
    trace: Path, tmp_path: Path, words: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.csv"
    page.write_text(raw_page(raw_row(0, FUNCTION, "900.5", "100.5")))
    other = tmp_path / "other.json"
    other.write_bytes(trace.read_bytes())
    given = [word.format(page=page, trace=trace) for word in words]
    if code == "two-timelines":
        given[-1] = str(other)
    assert run(given) == 2
    assert capsys.readouterr().err.startswith(f"warpline: {code}: ")


def test_a_metric_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["metric", "sm__pipe_tensor_op_hmma_cycles_active.avg", "--chip", "sm_100"]) == 0
    shown = capsys.readouterr().out
    assert "does not exist on sm_100" in shown
    assert "sm__pipe_tensor_subpipe_hmma_cycles_active.avg" in shown
    assert run(["metric", "gld_efficiency,nonsense", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "warpline.metric/1"
    assert [metric["state"] for metric in document["metrics"]] == ["old", "unknown"]


def test_a_report_goes_to_a_file_by_its_suffix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, output = tmp_path / "a.csv", tmp_path / "a.md"
    page.write_text(raw_page(raw_row(0, GEMM, "254.3", "100.5")))
    assert run(["dive", str(page), "-o", str(output)]) == 0
    assert "is unknown" in output.read_text()  # a duration and a bandwidth are no speed of light
    assert run(["dive", str(page), "-o", str(output)]) == 2
    assert "file-exists" in capsys.readouterr().err


def test_the_package_stays_callable_after_its_modules_are_loaded(tmp_path: Path) -> None:
    page = tmp_path / "a.csv"
    page.write_text(raw_page(raw_row(0, GEMM, "254.3", "100.5")))
    assert warpline.dive(page).kernels["reason"].to_list() == ["unknown"]
    assert warpline.dive(str(page)).to_dict()["schema"] == "warpline.dive/1"
    assert warpline.dive.compared(page, page).kernels[0].verdict == "same"


def test_two_reports_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = tmp_path / "a.csv", tmp_path / "b.csv"
    before.write_text(raw_page(raw_row(0, GEMM, "200.0", "100.5", warps="20.0")))
    after.write_text(raw_page(raw_row(0, GEMM, "100.0", "100.5", warps="40.0")))
    assert run(["dive", "--compare", str(before), str(after), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (found,) = answer["kernels"]
    assert (answer["schema"], found["verdict"], found["gain"]) == ("warpline.dive_comparison/1", "faster", 2.0)
    assert "achieved occupancy went from 20 to 40 %" in found["sentence"]
    assert run(["dive", "--compare", str(before), str(after)]) == 0
    assert "2.00× faster" in capsys.readouterr().out
    assert run(["dive", "--compare", str(before)]) == 2


def test_a_trace_without_a_kernel_has_none_that_its_timeline_explains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, [annotation("ProfilerStep#1", 0, 100), op("aten::mm", 0, 90)])
    assert run(["dive", str(path)]) == 1
    assert "no-gpu-work: Nsight Compute looks into kernels" in capsys.readouterr().err
