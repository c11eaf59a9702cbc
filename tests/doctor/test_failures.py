"""Each known failure is recognised, from a small file, a log or a command line; the harmless ones do not alarm."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from doctor_machines import FakeMachine
from kineto_files import call, write
from nsys_files import GLOBAL_PID, Export, small

from warpline.doctor import failures, recording
from warpline.doctor.advice import health_table
from warpline.doctor.commands import examine_command
from warpline.doctor.failures import known_failures
from warpline.doctor.files import examine_file
from warpline.doctor.messages import known_messages
from warpline.doctor.model import Examination, State

TRACEBACK = 'Traceback (most recent call last):\n  File "demo.py", line 7\nImportError: no module named basic\n'
DRIVER = (
    "Installed CUDA driver version (13.3) is not supported by this build of Nsight Systems. "
    "CUDA trace will be collected using libraries for driver version 12.9"
)
BUFFERS = "Number of CUPTI events produced: 31, CUPTI buffers: 49 of 50. Some CUPTI events might be missing."
NO_CUDA = "No CUDA events collected. Does the process use CUDA?"
PARANOID = "Unable to collect CPU kernel IP/backtrace samples. perf event paranoid level is 2."
INJECTION = (
    "/usr/bin/python3: symbol lookup error: /opt/nsys/libToolsInjectionProxy64.so: undefined symbol: __libc_dlclose, "
    "version GLIBC_PRIVATE\n"
)
KINETO = (
    "WARNING: init.cpp:116] function cbapi->getCuptiStatus() failed with error "
    "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)\n"
    "INFO: init.cpp:119] If you see CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, refer to https://developer.nvidia.com/x\n"
)
"""What torch.profiler prints under nsys."""
Make = Callable[[Path], Examination]


def nsys(export: Export) -> Make:
    return lambda folder: examine_file(export.write(folder / "report.sqlite"))


def log(text: str, name: str = "run.log") -> Make:
    def make(folder: Path) -> Examination:
        (folder / name).write_text(text)
        return examine_file(folder / name)

    return make


def data(content: bytes, name: str) -> Make:
    def make(folder: Path) -> Examination:
        (folder / name).write_bytes(content)
        return examine_file(folder / name)

    return make


def command(text: str) -> Make:
    return lambda folder: examine_command(text, FakeMachine(folders={".": (), "/tmp": ()}))


def torch_trace_without_kernels(folder: Path) -> Examination:
    return examine_file(write(folder, [call("cudaLaunchKernel", 1, 5, 1), call("cudaLaunchKernel", 9, 5, 2)]))


def large(folder: Path) -> Examination:
    path = small().add("OSRT_API", start=1, end=2, globalTid=GLOBAL_PID).write(folder / "report.sqlite")
    os.truncate(path, 1_200_000_000)
    return examine_file(path)


def launched() -> Export:
    return Export().call(1, 2, "cudaLaunchKernel_v7000").call(3, 4, "cudaLaunchKernel_v7000", 2)


def idle() -> Export:
    return Export().add("ANALYSIS_DETAILS", duration=370_000_000)


NCU_LOG = "==PROF== Connected to process 12\n==PROF== Disconnected from process 12\n"
CASES: list[tuple[int, State, Make]] = [
    (1, "problem", nsys(idle().error_output(TRACEBACK))),
    (1, "warning", log("==PROF== Disconnected\n==ERROR== The application returned an error code (1).\n")),
    (1, "warning", log("ModuleNotFoundError: No module named 'x'\nCollecting data...\nGenerating '/tmp/a.qdstrm'\n")),
    (2, "problem", nsys(idle().remark(NO_CUDA))),
    (2, "note", nsys(small().remark(NO_CUDA, pid=(1 << 48) | (99 << 24)))),
    (2, "warning", log("SKIPPED: report.sqlite does not contain CUDA kernel data.\n")),
    (2, "warning", log("SKIPPED: report.sqlite does not contain CUDA trace data.\n")),
    (3, "problem", nsys(launched().system("SoftwareReleaseVersion", "5.15.90.1-microsoft-standard-WSL2"))),
    (3, "problem", nsys(launched())),
    (4, "problem", nsys(idle().remark(DRIVER))),
    (4, "note", nsys(small().remark(DRIVER))),
    (5, "problem", nsys(idle().remark(BUFFERS, severity=1).option("RUN_DURATION_MS", "100").call(1, 2, "cuInit"))),
    (5, "warning", nsys(small().remark(BUFFERS, severity=1))),
    (5, "warning", command("nsys profile -t cuda,nvtx -s none --duration=30 -o /tmp/r python train.py")),
    (6, "problem", nsys(idle().option("PROCESS_0:COMMAND", "/usr/bin/docker").option("PROCESS_0:ARGUMENT_0", "run"))),
    (6, "problem", command("nsys profile -t cuda,nvtx docker run --gpus all pytorch python train.py")),
    (7, "warning", nsys(small().error_output("RuntimeError: Cannot re-initialize CUDA in forked subprocess\n"))),
    (7, "problem", log("RuntimeError: Cannot re-initialize CUDA in forked subprocess.\n")),
    (
        7,
        "warning",
        nsys(small().option("PROCESS_0:COMMAND", "vllm").option("PROCESS_0:ARGUMENT_0", "--tensor-parallel-size=4")),
    ),
    (7, "warning", command("nsys profile -t cuda,nvtx -s none python -m vllm.entrypoints.api_server")),
    (
        8,
        "problem",
        command("nsys profile -t cuda,nvtx -s none -c nvtx -p step --capture-range-end=stop python train.py"),
    ),
    (26, "problem", log("Processing events...\nGenerated:\n\tNo reports were generated\n")),
    (
        9,
        "warning",
        nsys(
            Export()
            .call(1, 2, "cudaGraphLaunch_v10000")
            .add(
                "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                start=5,
                end=90,
                deviceId=0,
                contextId=1,
                streamId=7,
                correlationId=1,
                globalPid=GLOBAL_PID,
                graphId=1,
            )
        ),
    ),
    (9, "warning", command("nsys profile -t cuda,nvtx -s none python decode.py --cuda-graph")),
    (
        10,
        "problem",
        log(
            NCU_LOG
            + "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n==WARNING== No kernels were profiled.\n"
        ),
    ),
    (10, "warning", command("docker run --rm --gpus all -v $PWD:/w pytorch ncu -c 1 python train.py")),
    (11, "problem", log(NCU_LOG + "==ERROR== Cuda driver is not compatible with Nsight Compute.\n")),
    (12, "problem", log(NCU_LOG + "==WARNING== No kernels were profiled.\n")),
    (12, "problem", data(b'"ID","Process ID","Process Name","Host Name","Kernel Name"\n', "out.csv")),
    (12, "problem", data(b"NVR\x00\x02\x00\x00\x00\x08\x07\x06\x00\x00\x00\x08\x00\x10\x00\x28\x00", "out.ncu-rep")),
    (12, "problem", command("ncu -k '.*gemm.*' -c 1 --target-processes all python train.py")),
    (13, "problem", log("WARNING: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)\n")),
    (13, "problem", log(KINETO)),
    (13, "warning", nsys(small().error_output(KINETO))),
    (13, "problem", nsys(idle().remark("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: cannot enable", severity=3))),
    (13, "problem", torch_trace_without_kernels),
    (14, "problem", log(NCU_LOG + "==ERROR== Profiling failed because a driver resource was unavailable.\n")),
    (15, "problem", log("Report was created in Nsight Systems version (2026.1.1), newer than 2025.3.1\n")),
    (15, "problem", data(b"1NVIDIA Tegra Profiler Report 2025@5@2@266-255236693005v0.", "out.nsys-rep")),
    (16, "problem", data(b"\x00\x01raw stream", "report.qdstrm")),
    (
        16,
        "problem",
        log(
            "Importer error status: An unknown error occurred.\nUnable to retrieve the importer version: skipping importation of the QDSTRM file.\n"
        ),
    ),
    (
        16,
        "problem",
        log(
            "Generating '/tmp/nsys-report-1.qdstrm'\nImporter error status: The importer binary and its dependencies were not found.\n"
        ),
    ),
    (17, "warning", large),
    (17, "warning", log("Import Failed: ErrorText = Wrong event order has been detected when adding events\n")),
    (17, "warning", command("nsys profile -o /tmp/r python train.py")),
    (18, "problem", data(bytes(8192), "report.sqlite")),
    (18, "problem", data(b"SQLite for", "report.sqlite")),
    (18, "problem", log("sqlite3.DatabaseError: file is not a database\n")),
    (19, "note", nsys(small().remark(PARANOID))),
    (20, "problem", nsys(idle().error_output(INJECTION))),
    (20, "problem", log(INJECTION)),
    (21, "note", log("==WARNING== Unable to access the following 6 metrics: ctc__rx_bytes_data_user.sum, ctc__x\n")),
    (21, "warning", log("==ERROR== Failed to find metric sm__inst_executed_pipe_fp16.sum\n")),
    (21, "warning", log(NCU_LOG + "    sm__inst_executed_pipe_fp16.sum                  (!) n/a\n")),
    (
        22,
        "note",
        data(b'"ID","Process ID","Process Name","Host Name","Kernel Name"\n"0","1","py","h","k"\n', "out.csv"),
    ),
    (22, "note", command("ncu -c 1 --target-processes all python train.py")),
    (23, "problem", log("RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.\n")),
    (23, "problem", log("ERROR: Unexpected bus error. This might be caused by insufficient shared memory (shm).\n")),
    (24, "problem", log("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")),
    (24, "problem", log("RuntimeError: CUDA error: out of memory\n")),
    (24, "warning", log("main.cu:12: out of memory\n")),
    (27, "problem", log("RuntimeError: CUDA driver version is insufficient for CUDA runtime version\n")),
    (27, "problem", log("cudaGetDeviceCount failed with error code 35\n")),
    (28, "problem", log("[77.1] Out of memory: Killed process 4242 (python) total-vm:9kB\n")),
    (28, "problem", log("RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: 8 bytes\n")),
    (25, "problem", log("[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)\n")),
    (1, "problem", log('Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: 1\n')),
]


@pytest.mark.parametrize(
    ("number", "state", "make"), CASES, ids=[f"failure {number}, {state}" for number, state, _ in CASES]
)
def test_the_failure_alone_is_named_with_its_state_and_what_to_type(
    number: int, state: State, make: Make, tmp_path: Path
) -> None:
    checks = make(tmp_path).checks
    found = [check for check in checks if check.failure == number and check.state == state]
    assert found, checks
    assert found[0].seen
    assert found[0].means
    assert found[0].do
    others = {check.failure for check in checks if check.state == "problem"} - {number}
    assert others <= {None}, others


def test_every_failure_that_is_named_is_known() -> None:
    folder = Path(failures.__file__).parent
    texts = "\n".join(file.read_text() for file in folder.glob("*.py"))
    named = set(re.findall(r'known_failure\("([a-z-]+)"\)', texts))
    named |= {message.failure for message in known_messages()} | set(health_table().failures.values())
    named |= recording._REPORTED_BY_THE_READER
    assert named <= set(known_failures())


def test_every_failure_is_tested() -> None:
    assert {number for number, _, _ in CASES} == {failure.number for failure in known_failures().values()}


def test_harmless_ones_leave_the_verdict_alone(tmp_path: Path) -> None:
    export = small().remark(PARANOID).remark(NO_CUDA, pid=(1 << 48) | (99 << 24)).remark(DRIVER)
    examination = examine_file(export.write(tmp_path / "report.sqlite"))
    assert examination.verdict == "ok"
    assert {check.failure for check in examination.checks if check.state != "ok"} == {2, 4, 19}


def test_several_failures_can_hold_at_once(tmp_path: Path) -> None:
    export = idle().remark(DRIVER).remark(BUFFERS, severity=1).option("RUN_DURATION_MS", "100").call(1, 2, "cuInit")
    checks = examine_file(export.write(tmp_path / "report.sqlite")).checks
    assert [check.failure for check in checks if check.state == "problem"] == [4, 5]
    assert any("49 of 50" in check.seen for check in checks)


def test_a_program_killed_by_the_injection_did_not_fail_by_itself(tmp_path: Path) -> None:
    found = {check.failure for check in nsys(idle().error_output(INJECTION))(tmp_path).checks}
    assert 20 in found
    assert 1 not in found
