"""Every cause that an nsys profile can be sick of is named, and healthy ones are left in peace."""

from __future__ import annotations

from pathlib import Path

import pytest
from nsys_files import GLOBAL_PID, GLOBAL_WORKER, Export, small

from warpline.sources.health import HealthEntry
from warpline.sources.nsys import read_nsys
from warpline.sources.nsys.program import ending_of

TRACEBACK = """Traceback (most recent call last):
  File "/home/ada/code/demo.py", line 7, in <module>
    import basic
ImportError: dynamic module does not define module export function (PyInit_basic)
"""
BUFFERS = "Number of CUPTI events produced: \t31, CUPTI buffers: 49 of 50. Some CUPTI events might be missing."
DRIVER = (
    "Installed CUDA driver version (13.3) is not supported by this build of Nsight Systems. "
    "CUDA trace will be collected using libraries for driver version 12.9"
)
PARANOID = (
    "Unable to collect CPU kernel IP/backtrace samples. perf event paranoid level is 2. \nTry\nsudo sh -c 'echo 1'"
)


def health_of(export: Export, folder: Path) -> dict[str, HealthEntry]:
    entries = read_nsys(export.write(folder / "export.sqlite")).health
    assert all(entry.message.isprintable() for entry in entries)
    assert len({entry.code for entry in entries}) == len(entries)
    return {entry.code: entry for entry in entries}


def idle() -> Export:
    """A program that was recorded and launched nothing."""
    return Export().add("ANALYSIS_DETAILS", duration=370_000_000)


def test_a_program_that_failed_before_its_first_kernel(tmp_path: Path) -> None:
    health = health_of(idle().error_output(TRACEBACK), tmp_path)
    assert set(health) == {"program-failed", "no-kernels"}
    assert health["program-failed"].severity == "error"
    assert health["program-failed"].message.endswith(
        "ImportError: dynamic module does not define module export function (PyInit_basic)"
    )
    assert "no CUDA call in 0.37 s" in health["no-kernels"].message


def test_a_program_that_failed_after_its_kernels(tmp_path: Path) -> None:
    health = health_of(small().error_output("KeyboardInterrupt\n"), tmp_path)
    assert set(health) == {"program-failed"}
    assert health["program-failed"].severity == "warning"
    assert "interrupted" in health["program-failed"].message


def test_harmless_error_output_says_nothing(tmp_path: Path) -> None:
    text = "epoch 1 |####| 100%\nUserWarning: lr_scheduler called before optimizer\ndone\n"
    assert health_of(small().error_output(text), tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (TRACEBACK + "\n\n", "ImportError: dynamic module does not define module export function (PyInit_basic)"),
        (
            "/usr/bin/python3: can't open file '/home/ada/x/t.py': [Errno 2] No such file or directory\n",
            "…/python3: can't open file '…/t.py': [Errno 2] No such file or directory",
        ),
        (
            "terminate called after throwing an instance of 'std::exception'\n  what():  CUDA error: out of memory\n",
            "what(): CUDA error: out of memory",
        ),
        ("Segmentation fault (core dumped)\n", "Segmentation fault (core dumped)"),
        (
            "loading\n./app: error while loading shared libraries: libx.so: cannot open\n",
            "./app: error while loading shared libraries: libx.so: cannot open",
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
        ),
        (" 10%|#\r 20%|##\rRuntimeError: boom\n", "RuntimeError: boom"),
    ],
)
def test_the_last_words_are_found(text: str, last: str) -> None:
    ending = ending_of(text)
    assert ending.failed
    assert ending.quote == last


def test_a_fortran_stop_is_recognised() -> None:
    ending = ending_of("Warning: ieee_inexact is signaling\n    1\n")
    assert ending.failed
    assert "STOP with status 1" in ending.quote
    assert not ending_of("step\n    1\n").failed


def test_launches_without_kernels_under_wsl2(tmp_path: Path) -> None:
    export = Export().call(1, 2, "cudaLaunchKernel_v7000").call(3, 4, "cudaLaunchKernel_v7000", 2)
    export.system("SoftwareReleaseVersion", "5.15.90.1-microsoft-standard-WSL2")
    health = health_of(export, tmp_path)
    assert set(health) == {"launches-without-kernels", "wsl2"}
    assert health["launches-without-kernels"].severity == "error"
    assert health["launches-without-kernels"].message.startswith("2 launches were recorded, but no kernel: under WSL2")


def test_a_host_function_is_no_launch(tmp_path: Path) -> None:
    assert set(health_of(idle().call(1, 2, "cudaLaunchHostFunc_v10000"), tmp_path)) == {"no-kernels"}


def test_launches_without_kernels_and_no_other_sign(tmp_path: Path) -> None:
    health = health_of(Export().call(1, 2, "cuLaunchKernel"), tmp_path)
    assert "killed before CUPTI delivered" in health["launches-without-kernels"].message


def test_an_old_nsys_and_a_time_limit_are_both_named(tmp_path: Path) -> None:
    export = Export().add("ANALYSIS_DETAILS", duration=10_005_434_939).option("RUN_DURATION_MS", "10000")
    export.remark(DRIVER).remark(BUFFERS, severity=1).call(1, 2, "cuInit").error_output("(removed)")
    health = health_of(export, tmp_path)
    assert set(health) == {"no-kernels", "driver-newer-than-nsys", "cupti-buffers-lost"}
    message = health["no-kernels"].message
    assert "up to 12.9 and the installed one is 13.3" in message
    assert "time limit of 10 s" in message
    assert "49 of 50" in health["cupti-buffers-lost"].message


def test_a_driver_newer_than_nsys_is_only_a_remark_where_kernels_came_through(tmp_path: Path) -> None:
    assert health_of(small().remark(DRIVER), tmp_path)["driver-newer-than-nsys"].severity == "info"


def test_a_duration_rounded_up_is_no_time_limit(tmp_path: Path) -> None:
    export = small().add("ANALYSIS_DETAILS", duration=365_230_366).option("RUN_DURATION_MS", "366")
    assert health_of(export, tmp_path) == {}


def test_cuda_that_was_not_recorded(tmp_path: Path) -> None:
    export = idle().option("CAPTURE_EVENT_TYPE", "OSRuntime")
    assert "--trace=cuda" in health_of(export, tmp_path)["no-kernels"].message


def test_nothing_used_cuda(tmp_path: Path) -> None:
    export = idle().remark("No CUDA events collected. Does the process use CUDA?")
    health = health_of(export, tmp_path)
    assert set(health) == {"no-kernels"}
    assert "no recorded process used CUDA" in health["no-kernels"].message


def test_a_thread_of_the_driver_shows_that_cuda_was_used(tmp_path: Path) -> None:
    export = idle().add("PROCESSES", globalPid=GLOBAL_PID, name="python")
    export.add("ThreadNames", nameId=export.string("cuda-EvtHandlr"), priority=20, globalTid=GLOBAL_WORKER)
    message = health_of(export, tmp_path)["no-kernels"].message
    assert "the program used CUDA (threads of its driver, such as cuda-EvtHandlr" in message
    assert "no recorded process" not in message


def test_ranges_of_a_gpu_library_show_that_cuda_was_used(tmp_path: Path) -> None:
    export = idle().add("PROCESSES", globalPid=GLOBAL_PID, name="python")
    export.range(None, None, "TensorRT", kind=75, domainId=2).range(2, 8, "ExecutionContext::execute", domainId=2)
    message = health_of(export, tmp_path)["no-kernels"].message
    assert "the program used CUDA (it has NVTX ranges of TensorRT)" in message


def test_calls_without_a_launch_quote_what_the_program_said(tmp_path: Path) -> None:
    export = idle().call(1, 2, "cudaMalloc_v3020").error_output("waiting for input\n")
    message = health_of(export, tmp_path)["no-kernels"].message
    assert "launched nothing during the recording; its error output ends with: waiting for input" in message


def test_benign_remarks_make_no_noise(tmp_path: Path) -> None:
    helper = (1 << 48) | (99 << 24)
    export = small().remark(PARANOID).remark("No NVTX events collected. Does the process use NVTX?")
    export.remark("Not all NVTX events might have been collected.", pid=helper)
    export.remark("CUDA profiling might have not been started correctly.", pid=helper)
    export.remark("Scheduling information is absent. The thread activity is deduced.").remark(
        "Profiling has started.", 1
    )
    health = health_of(export, tmp_path)
    assert {code: entry.severity for code, entry in health.items()} == {"helper-processes": "info"}


def test_remarks_of_unknown_meaning_are_counted_and_quoted(tmp_path: Path) -> None:
    export = small()
    for _ in range(3):
        export.remark("The flux capacitor at /home/ada/x overheated.", severity=3)
    entry = health_of(export, tmp_path)["nsys-remark"]
    assert (entry.severity, entry.message) == (
        "warning",
        "nsys failed (3 times): The flux capacitor at …/x overheated.",
    )


def test_lost_events_of_the_cuda_process(tmp_path: Path) -> None:
    export = small().remark("Not all CUDA events might have been collected.", pid=GLOBAL_PID)
    assert health_of(export, tmp_path)["cuda-events-lost"].severity == "warning"


def test_a_recording_that_the_program_began_is_no_loss(tmp_path: Path) -> None:
    export = small().remark("Not all CUDA events might have been collected.")
    export.remark("Profiling started due to cudaProfilerStart API invoked in the application.", severity=1)
    export.remark("Number of CUPTI events produced: \t601, CUPTI buffers: 50.", severity=1)
    health = health_of(export, tmp_path)
    assert {code: entry.severity for code, entry in health.items()} == {"capture-range": "info"}
    assert "from cudaProfilerStart on" in health["capture-range"].message


def test_cupti_that_could_not_be_used(tmp_path: Path) -> None:
    export = idle().remark("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: cannot enable", severity=3)
    health = health_of(export, tmp_path)
    assert health["cupti-failed"].severity == "error"
    assert "could not trace CUDA" in health["no-kernels"].message


def test_clocks_that_nsys_doubts(tmp_path: Path) -> None:
    assert "clock-fault" in health_of(small().remark("Event has non-monotonic timestamps"), tmp_path)


def test_files_that_do_not_say_what_wrote_them(tmp_path: Path) -> None:
    export = small()
    export.meta = False
    assert health_of(export, tmp_path)["missing-meta"].severity == "warning"


@pytest.mark.parametrize(
    ("schema", "code"), [("3.29.0", "newer-schema"), ("4.0.0", "newer-schema"), ("2.7.1", "older-schema")]
)
def test_unknown_schemas_are_read_with_a_warning(schema: str, code: str, tmp_path: Path) -> None:
    rows = read_nsys(small(schema).write(tmp_path / "export.sqlite"))
    assert [(entry.code, entry.severity) for entry in rows.health] == [(code, "warning")]
    assert rows.tables["gpu"].height == 4


def test_failed_cuda_calls(tmp_path: Path) -> None:
    export = (
        small()
        .call(90, 91, "cudaMalloc_v3020", 8, returnValue=2)
        .call(92, 93, "cudaEventQuery_v3020", 9, returnValue=600)
    )
    assert health_of(export, tmp_path)["cuda-call-failed"].message == (
        "1 CUDA calls failed, 1 of them cudaMalloc with out of memory."
    )


def test_gvisor_is_mentioned(tmp_path: Path) -> None:
    assert health_of(small().system("SoftwareReleaseVersion", "4.4.0"), tmp_path)["gvisor"].severity == "info"


def test_impossible_times_are_left_out_and_counted(tmp_path: Path) -> None:
    export = small().kernel(100, 90).kernel(110, None).kernel(1 << 62, (1 << 62) + 1)  # type: ignore[arg-type]
    rows = read_nsys(export.write(tmp_path / "export.sqlite"))
    assert rows.tables["gpu"].height == 4
    assert "3 of 5 rows of CUPTI_ACTIVITY_KIND_KERNEL" in rows.health[0].message
