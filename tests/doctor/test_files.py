"""Files beyond the known failures: reports without nsys, folders, packed files, and what is none of our business."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import re
from pathlib import Path

import pytest
from kineto_files import annotation, kernel, launched, op, write
from nsys_files import Export, small
from paths import RECORDINGS, ROOT, SHARED

from warpline.doctor.advice import health_table
from warpline.doctor.files import examine_file, examine_files, examine_ncu_report, examine_ncu_text, read_ncu_report
from warpline.doctor.messages import read_messages
from warpline.doctor.model import Examination, exit_code
from warpline.errors import UnreadableFile
from warpline.trace.open import open_trace


def test_a_program_is_not_taken_for_a_log(tmp_path: Path) -> None:
    path = tmp_path / "rl.py"
    path.write_text("import torch\nprint('nsys')\n")
    (check,) = examine_file(path).checks
    assert (check.name, check.state, check.seen) == ("not-a-profile", "unknown", "rl.py is a Python program")
    assert check.do[0] == f"to record and diagnose it: warpline run {path}"


def test_each_file_of_a_folder_is_announced_and_too_many_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b.json", "a.json"):
        (tmp_path / name).write_text('{"traceEvents": []}')
    said: list[str] = []
    examine_files([tmp_path], said.append)
    assert said == ["a.json (1 of 2)", "b.json (2 of 2)"]
    monkeypatch.setattr("warpline.trace.open.MAX_FILES", 1)
    with pytest.raises(UnreadableFile, match="too-many-files"):
        examine_files([tmp_path])
    with pytest.raises(UnreadableFile, match="too-many-files"):
        open_trace(tmp_path)


REPORT = b"NVIDIA Tegra Profiler Report 2025@5@2@266-255236693005v0.\n" + bytes(range(200))
BLOCK = b"\x06\x00\x00\x00\x08\x00\x10\x02\x28\x03abc"
"""A block of two results and three bytes of payload."""


@pytest.fixture(autouse=True)
def no_nsys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")


def names(examination: Examination) -> dict[str, str]:
    """The checks that did not pass, and their states."""
    return {check.name: check.state for check in examination.checks if check.state != "ok"}


def test_a_healthy_export_says_only_what_is_in_it(tmp_path: Path) -> None:
    examination = examine_file(small().write(tmp_path / "report.sqlite"))
    (contents,) = examination.checks
    assert contents.seen == "4 CUDA calls, 2 kernels, 2 copies and memsets"
    assert contents.means == "Not in the file: operating-system calls, PyTorch ops, NVTX or profiler ranges."
    assert exit_code([examination]) == 0


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.name)
def test_our_recordings_are_healthy(file: Path) -> None:
    examination = examine_file(file)
    assert examination.verdict == "ok", examination.checks


def test_a_folder_is_looked_through(tmp_path: Path) -> None:
    small().write(tmp_path / "a.sqlite")
    (tmp_path / "b.qdstrm").write_bytes(b"\x00\x01")
    (tmp_path / "README").write_text("nothing")
    examinations = examine_files([tmp_path])
    assert [examination.subject for examination in examinations] == ["a.sqlite", "b.qdstrm"]
    assert exit_code(examinations) == 1


def test_what_a_run_writes_beside_its_trace_is_no_profile_of_its_own(tmp_path: Path) -> None:
    """Stacks come from a pass without the GPU: by themselves they look as if the GPU's events were lost."""
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        for name in ("trace.json", "trace.stacks.json", "trace.look.json.gz", "manifest.json"):
            (tmp_path / run / name).write_text('{"traceEvents": []}')
    assert [one.subject for one in examine_files([tmp_path])] == ["one/trace.json", "two/trace.json"]


def test_a_folder_without_profiles_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="no profile"):
        examine_files([tmp_path])


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="no-such-file"):
        examine_file(tmp_path / "absent.sqlite")


def test_a_report_without_nsys_cannot_be_judged(tmp_path: Path) -> None:
    (tmp_path / "r.nsys-rep").write_bytes(REPORT)
    examination = examine_file(tmp_path / "r.nsys-rep")
    assert names(examination) == {"report-not-opened": "unknown"}
    assert "2025.5.2" in examination.checks[0].seen
    assert exit_code([examination]) == 4


def test_a_report_that_is_newer_than_the_nsys_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nsys"
    tool.write_text("#!/bin/sh\necho NVIDIA Nsight Systems version 2024.1.1.5\n")
    tool.chmod(0o755)
    monkeypatch.setenv("WARPLINE_NSYS", str(tool))
    (tmp_path / "r.nsys-rep").write_bytes(REPORT)
    check = examine_file(tmp_path / "r.nsys-rep").checks[0]
    assert (check.failure, check.state) == (15, "problem")
    assert check.seen == "written by nsys 2025.5.2.266; the installed nsys is 2024.1.1.5"


def test_a_report_that_nsys_cannot_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nsys"
    tool.write_text("#!/bin/sh\necho NVIDIA Nsight Systems version 2026.1.1.5\ncase $1 in export) exit 1;; esac\n")
    tool.chmod(0o755)
    monkeypatch.setenv("WARPLINE_NSYS", str(tool))
    (tmp_path / "r.nsys-rep").write_bytes(REPORT)
    assert examine_file(tmp_path / "r.nsys-rep").verdict == "problem"


def test_a_report_spoiled_as_text(tmp_path: Path) -> None:
    (tmp_path / "r.nsys-rep").write_bytes(REPORT + b"\xef\xbf\xbd" * 20)
    assert "binary mode" in examine_file(tmp_path / "r.nsys-rep").checks[0].do[0]


def test_a_stream_beside_its_report_is_only_left_over(tmp_path: Path) -> None:
    (tmp_path / "r.qdstrm").write_bytes(b"\x00\x01")
    (tmp_path / "r.nsys-rep").write_bytes(REPORT)
    assert names(examine_file(tmp_path / "r.qdstrm")) == {"stream-not-imported": "note"}


def test_an_export_older_than_its_report(tmp_path: Path) -> None:
    path = small().write(tmp_path / "r.sqlite")
    (tmp_path / "r.nsys-rep").write_bytes(REPORT)
    os.utime(path, (1, 1))
    assert names(examine_file(path)) == {"stale-export": "warning"}


@pytest.mark.parametrize(("opener", "suffix"), [(gzip.open, ".gz"), (lzma.open, ".xz"), (bz2.open, ".bz2")])
def test_packed_exports_are_looked_into(opener: object, suffix: str, tmp_path: Path) -> None:
    plain = small().write(tmp_path / "r.sqlite")
    with opener(tmp_path / f"p.sqlite{suffix}", "wb") as packed:  # type: ignore[operator]
        packed.write(plain.read_bytes())
    assert examine_file(tmp_path / f"p.sqlite{suffix}").verdict == "ok"


def test_an_error_names_the_packed_file_not_its_unpacked_copy(tmp_path: Path) -> None:
    events = [{"name": "a", "ph": "X", "cat": "other", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]
    (tmp_path / "t.json.xz").write_bytes(lzma.compress(json.dumps({"traceEvents": events}).encode()))
    (check,) = examine_file(tmp_path / "t.json.xz").checks
    assert check.seen.startswith("t.json.xz is a Chrome trace of another program")


def test_a_damaged_xz_file(tmp_path: Path) -> None:
    (tmp_path / "r.sqlite.xz").write_bytes(lzma.compress(b"x" * 9999)[:40])
    assert examine_file(tmp_path / "r.sqlite.xz").verdict == "problem"


@pytest.mark.parametrize(
    ("content", "name", "verdict"),
    [
        (b"", "empty.json", "problem"),
        (b"", "empty.sqlite", "problem"),
        (b"dear diary\n", "diary.txt", "unknown"),
        (b"\x00\x01\x02\x03\xff", "blob.bin", "unknown"),
        (b'{"hello": 1}', "other.json", "unknown"),
        (b"\x28\xb5\x2f\xfd1234", "trace.json.zst", "unknown"),
        (b"Generating '/tmp/nsys-report.qdstrm'\n[1/1] [100%] report1.nsys-rep\n", "ok.log", "ok"),
        (b"==PROF== Connected to process 12\n==PROF== Disconnected\n", "ok.log", "ok"),
    ],
)
def test_files_that_are_no_profiles(content: bytes, name: str, verdict: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert examine_file(tmp_path / name).verdict == verdict


def test_a_torch_trace_that_never_came_to_its_active_steps(tmp_path: Path) -> None:
    check = examine_file(write(tmp_path, [])).checks[0]
    assert (check.name, check.state) == ("empty-torch-trace", "problem")
    assert "prof.step()" in check.means


def test_a_torch_trace_of_the_cpu_alone(tmp_path: Path) -> None:
    check = examine_file(write(tmp_path, [op("aten::add", 1, 5)])).checks[0]
    assert (check.name, check.state) == ("no-gpu-in-it", "warning")
    assert "saw 1 GPU(s)" in check.means
    without = examine_file(write(tmp_path, [op("aten::add", 1, 5)], deviceProperties=[])).checks[0]
    assert "lists no device" in without.means


def test_a_healthy_torch_trace(tmp_path: Path) -> None:
    events = [annotation("ProfilerStep#1", 0, 50), op("aten::mm", 0, 50), *launched("gemm", 1, 9, 20, 1)]
    assert examine_file(write(tmp_path, events)).verdict == "ok"


def test_a_torch_trace_cut_in_the_middle(tmp_path: Path) -> None:
    path = write(tmp_path, [*launched("gemm", 1, 9, 20, 1), *launched("gemm", 40, 50, 20, 2)])
    path.write_bytes(path.read_bytes()[:-120])
    assert examine_file(path).verdict in ("warning", "problem")


def test_kernels_that_lost_their_launch_in_the_middle_are_a_warning(tmp_path: Path) -> None:
    events = [*launched("gemm", 1, 9, 20, 1), kernel("gemm", 100, 20, 7)]
    assert names(examine_file(write(tmp_path, events)))["work-without-launch"] == "warning"


def test_a_recording_without_cuda_in_its_options(tmp_path: Path) -> None:
    export = Export().option("CAPTURE_EVENT_TYPE", "OSRuntime")
    assert names(examine_file(export.write(tmp_path / "r.sqlite"))) == {"cuda-not-traced": "problem"}


def test_a_recording_in_which_nothing_was_launched(tmp_path: Path) -> None:
    export = Export().call(1, 2, "cudaMalloc_v3020")
    assert names(examine_file(export.write(tmp_path / "r.sqlite"))) == {"nothing-launched": "problem"}


def test_quotes_carry_no_paths_or_secrets(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("ERR_NVGPUCTRPERM for /home/ada/x.py with api_key=sk-123\n")
    assert examine_file(tmp_path / "run.log").checks[0].seen == "it says: ERR_NVGPUCTRPERM for …/x.py with api_key=…"


def test_ncu_names_the_kernels_that_ran() -> None:
    text = (
        "==WARNING== No kernels were profiled.\nAvailable Kernels:\n1. void at::native::add_kernel<4>(int)\n2. gemm\n"
    )
    (check,) = read_messages(text)
    assert "add_kernel" in check.seen
    assert check.do == ("ncu --kernel-name add_kernel --launch-count 1 …",)


def test_ncu_says_that_a_child_launched_them() -> None:
    (check,) = read_messages(
        "==WARNING== No kernels were profiled.\n==WARNING== Profiling kernels launched by child processes requires the "
        "--target-processes all option.\n"
    )
    assert check.do == ("ncu --target-processes all …",)


def test_an_ncu_report_is_counted_by_its_blocks() -> None:
    head = b"NVR\x00\x02\x00\x00\x00\x08\x07"
    assert read_ncu_report(head + BLOCK + BLOCK).results == 4
    assert not read_ncu_report(head + BLOCK).truncated
    cut = read_ncu_report(head + BLOCK + BLOCK[:-1])
    assert (cut.results, cut.truncated) == (2, True)
    assert [check.state for check in examine_ncu_report(head + BLOCK + BLOCK[:-1])] == ["problem", "note"]
    assert read_ncu_report(head + BLOCK + b"\x00\x00\x00\x00").truncated


def test_an_ncu_log_with_csv_behind_it() -> None:
    text = '==PROF== Connected\n"ID","Process ID","Process Name"\n"0","1","py"\n"1","1","py"\n'
    assert [check.seen for check in examine_ncu_text(text)] == ["2 kernels profiled by ncu"]


def test_a_version_wall_names_both_versions() -> None:
    (check,) = read_messages(
        "Exportation error: Report was created in Nsight Systems version\n"
        "(2025.5.1.121), newer than your current version (2025.3.2.474).\n"
    )
    assert check.seen == "the report is of nsys 2025.5.1.121, and this nsys is 2025.3.2.474"
    assert "same container" in check.do[0]


def test_every_health_code_has_a_place_in_the_doctor() -> None:
    page = (ROOT / "docs" / "health.md").read_text()
    documented = set(re.findall(r"^\| `([a-z0-9-]+)`", page, flags=re.MULTILINE))
    table = health_table()
    placed = set(table.failures) | set(table.advice) | table.harmless | table.symptoms
    assert documented <= placed, documented - placed
    assert placed <= documented, placed - documented


# Each file's ProcessStreams, DIAGNOSTIC_EVENT and tables were read by hand.
TRUTH: dict[str, dict[int | None, str]] = {
    "gemm_profile": {4: "driver 13.3", 5: "time limit of 10 s, and CUPTI had delivered 49 of 50"},
    "gtls_report1": {},
    "gtls_report2": {1: "can't open file '…/test2.py'"},
    "pipit_cloverleaf": {},
    "pipit_saxpy-mpi": {},
    "python_c_nvidia_report1": {1: "ImportError: dynamic module does not define module export function"},
    "weatherbench2_report1": {1: "STOP with status 1"},
}


@pytest.mark.shared
@pytest.mark.parametrize("name", TRUTH)
def test_public_recordings_have_the_cause_that_they_have(name: str) -> None:
    examination = examine_file(SHARED / "public" / "nsys" / f"{name}.sqlite.gz")
    alarming = {
        check.failure: check.seen for check in examination.checks if check.state in ("problem", "warning", "unknown")
    }
    assert set(alarming) == set(TRUTH[name])
    for number, words in TRUTH[name].items():
        assert words in alarming[number]
    assert examination.verdict == ("problem" if TRUTH[name] else "ok")


@pytest.mark.shared
def test_all_public_recordings_are_tested() -> None:
    assert {file.name.partition(".")[0] for file in (SHARED / "public" / "nsys").glob("*.gz")} == set(TRUTH)


@pytest.mark.shared
@pytest.mark.parametrize("folder", ["h200/kineto", "h200/ncu", "h200/nsys", "h200/programs", "public/kineto"])
def test_healthy_profiles_are_left_in_peace(folder: str) -> None:
    # The sources of programs and their execution traces lie beside the profiles, and are none.
    files = [file for file in sorted((SHARED / folder).rglob("*.*")) if not re.search(r"\.py$|\.et\.", file.name)]
    assert files
    verdicts = {file.name: examine_file(file).verdict for file in files}
    # Recorded without a GPU, which is what one must be told of it.
    assert verdicts.pop("hta_cpu_only.json.gz", "warning") == "warning"
    assert set(verdicts.values()) == {"ok"}, verdicts


INTERRUPT = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    sleep(1)\nKeyboardInterrupt\n'


def test_ctrl_c_is_no_failure() -> None:
    (check,) = read_messages(INTERRUPT)
    assert (check.name, check.state) == ("stopped-by-ctrl-c", "note")
    failed, stopped = read_messages(f"{INTERRUPT}{INTERRUPT.replace('KeyboardInterrupt', 'KeyError: 1')}")
    assert (failed.name, stopped.name) == ("program-failed", "stopped-by-ctrl-c")
