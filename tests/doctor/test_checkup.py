"""Every branch of every check of a machine, on hand-made ones."""

from __future__ import annotations

import sys

import pytest
from doctor_machines import H200, NSYS, FakeMachine, checks, healthy, smi, torch_answer, with_answers, with_files
from msgspec.structs import replace

from warpline.doctor.checks_torch import runs_on
from warpline.doctor.checkup import examine_machine
from warpline.doctor.machine import ProgramOutput, Space, ThisMachine
from warpline.doctor.model import exit_code


def test_a_machine_on_which_everything_works() -> None:
    examination = examine_machine(healthy())
    assert {check.name: check.state for check in examination.checks if check.state != "ok"} == {}
    assert examination.verdict == "ok"
    assert exit_code([examination]) == 0


def bare(**more: object) -> FakeMachine:
    return replace(FakeMachine(), **more)  # type: ignore[arg-type]


PCI = "/sys/bus/pci/devices"
HIDDEN_BUS = {"/proc": ""}


def with_pci_vendor(vendor: str) -> FakeMachine:
    """A Linux machine with one PCI device."""
    return bare(
        running=(), files={**HIDDEN_BUS, f"{PCI}/0000:00:01.0/vendor": f"{vendor}\n"}, folders={PCI: ("0000:00:01.0",)}
    )


@pytest.mark.parametrize("machine", [FakeMachine(), with_pci_vendor("0x8086")], ids=["no Linux", "no NVIDIA device"])
def test_a_machine_without_a_gpu_says_so_once_and_gets_no_advice_for_cuda(machine: FakeMachine) -> None:
    found = checks(machine)
    assert set(found) == {"gpu", "torch", "shared-memory", "disk", "temporary-disk"}
    assert (found["gpu"].state, found["gpu"].do) == ("warning", ())
    assert "Profiles from elsewhere can be read" in found["gpu"].means
    assert exit_code([examine_machine(machine)]) == 0


@pytest.mark.parametrize(
    "machine",
    [replace(FakeMachine(running=()), files=HIDDEN_BUS), with_pci_vendor("0x10de")],
    ids=["hidden bus", "NVIDIA"],
)
def test_a_machine_that_may_have_a_gpu_has_no_driver_and_little_to_tell(machine: FakeMachine) -> None:
    found = checks(machine)
    assert {name for name, check in found.items() if check.state == "problem"} == {"driver"}
    assert "profiles from elsewhere can be read" in found["driver"].means
    for name in ("clocks", "power-limit", "mig", "persistence", "counters", "memlock", "stack", "dcgm"):
        assert found[name].state == "unknown"
        assert "cannot tell" in found[name].seen
    assert exit_code([examine_machine(machine)]) == 1


@pytest.mark.parametrize(
    ("machine", "state", "words"),
    [
        (bare(files={"/dev/kfd": ""}), "note", "AMD GPU"),
        (bare(files={"/dev/nvidiactl": ""}), "unknown", "NVIDIA devices"),
    ],
)
def test_machines_without_an_nvidia_driver_that_answers(machine: FakeMachine, state: str, words: str) -> None:
    assert checks(machine)["driver"].state == state
    assert words in checks(machine)["driver"].seen


def test_nvidia_smi_that_hangs_or_fails() -> None:
    machine = healthy()
    silent = with_answers(machine, {"nvidia-smi": None})
    assert "did not answer" in checks(silent)["driver"].seen
    assert checks(silent)["driver"].state == "problem"
    said = ProgramOutput(18, "Failed to initialize NVML: Driver/library version mismatch\n")
    mismatch = checks(with_answers(machine, {"nvidia-smi": said}))["driver"]
    assert mismatch.state == "problem"
    assert "reboot" in mismatch.do[0]


def test_a_driver_without_a_gpu() -> None:
    machine = healthy()
    assert checks(with_answers(machine, smi([])))["gpu"].state == "problem"


def test_several_gpus_are_counted() -> None:
    machine = healthy()
    two = with_answers(machine, smi([H200, {**H200, "index": "1"}]))
    assert checks(two)["gpu"].seen == "2 × NVIDIA H200 (9.0)"
    assert examine_machine(two).subject == "this machine, 2 × NVIDIA H200 (9.0)"
    mixed = with_answers(machine, smi([H200, {**H200, "name": "NVIDIA L4", "compute_cap": "8.9"}]))
    assert checks(mixed)["gpu"].seen == "NVIDIA H200 (9.0), NVIDIA L4 (8.9)"


@pytest.mark.parametrize(
    ("change", "reasons", "name", "state", "words"),
    [
        ({}, "0x0000000000000040", "clocks", "warning", "hardware thermal slowdown"),
        ({}, "0x0000000000000002", "clocks", "warning", "application clocks"),
        ({}, "0x0000000000000004", "clocks", "note", "power limit"),
        ({}, "[N/A]", "clocks", "unknown", "cannot tell"),
        ({"enforced.power.limit": "450.00"}, "0x0", "power-limit", "warning", "limited to 450 W; the default is 700 W"),
        ({"enforced.power.limit": "[N/A]"}, "0x0", "power-limit", "unknown", "cannot tell"),
        ({"mig.mode.current": "Enabled"}, "0x0", "mig", "warning", "MIG is on"),
        ({"mig.mode.current": "[N/A]"}, "0x0", "mig", "ok", "has no MIG"),
        ({"persistence_mode": "Disabled"}, "0x0", "persistence", "note", "off"),
        ({"persistence_mode": "[N/A]"}, "0x0", "persistence", "unknown", "cannot tell"),
        ({"memory.used": "40000"}, "0x0", "other-work", "warning", "40,000 MiB"),
        ({"memory.used": "[N/A]"}, "0x0", "other-work", "unknown", "cannot tell"),
    ],
)
def test_the_state_of_a_gpu(change: dict[str, str], reasons: str, name: str, state: str, words: str) -> None:
    machine = healthy()
    found = checks(with_answers(machine, smi([{**H200, **change}], reasons)))[name]
    assert found.state == state
    assert words in found.seen


def test_an_old_nvidia_smi_that_knows_fewer_fields() -> None:
    machine = healthy()
    answers = {name: said for name, said in machine.answers.items() if not name.startswith("nvidia-smi --query")}
    answers["nvidia-smi --query-gpu=index,name,driver_version,compute_cap"] = ProgramOutput(
        0, "0, Tesla V100, 470.1, 7.0\n"
    )
    answers["nvidia-smi --query-gpu=clocks_throttle_reasons.active"] = ProgramOutput(0, "0x0000000000000008\n")
    answers["nvidia-smi"] = ProgramOutput(0, "Driver Version: 470.1   CUDA Version: 11.4 |")
    found = checks(replace(machine, answers=answers))
    assert found["gpu"].seen == "1 × Tesla V100 (7.0)"
    assert "hardware slowdown" in found["clocks"].seen
    assert found["power-limit"].state == "unknown"


@pytest.mark.parametrize(
    ("answer", "name", "state", "words"),
    [
        (None, "torch", "unknown", "did not answer"),
        (
            ProgramOutput(1, "", "ModuleNotFoundError: No module named 'torch'\n"),
            "torch",
            "unknown",
            "no Python with torch",
        ),
        (
            ProgramOutput(1, "", "ImportError: libcudart.so.12: cannot open\n"),
            "torch",
            "problem",
            "importing torch fails: ImportError",
        ),
        (ProgramOutput(0, "warpline:{broken\n"), "torch", "unknown", "no Python with torch"),
        (torch_answer(cuda=None, version="2.11.0+cpu"), "torch", "problem", "without CUDA"),
        (torch_answer(hip="6.2"), "torch", "ok", "ROCm 6.2"),
        (torch_answer(cuda="14.0"), "torch", "problem", "built for CUDA 14.0"),
        (torch_answer(available=False), "torch", "problem", "is_available() is false"),
        (torch_answer(arches=["sm_70", "sm_80"]), "torch-architectures", "problem", "the GPU is sm_90"),
        (torch_answer(arches=[]), "torch-architectures", "unknown", "cannot tell"),
        (torch_answer(kineto=False), "kineto", "problem", "without Kineto"),
    ],
)
def test_torch_against_driver_and_chip(answer: ProgramOutput | None, name: str, state: str, words: str) -> None:
    found = checks(with_answers(healthy(), {"python": answer}))[name]
    assert found.state == state
    assert words in found.seen
    assert found.state in ("ok", "unknown") or found.do


@pytest.mark.parametrize(
    ("arches", "chip", "runs"),
    [
        (["sm_80"], (8, 6), True),
        (["sm_86"], (8, 0), False),
        (["sm_80"], (9, 0), False),
        (["compute_80"], (9, 0), True),
        (["compute_90"], (8, 0), False),
        (["sm_90a"], (9, 0), True),
        (["sm_100a"], (10, 3), False),
        (["sm_120"], (12, 1), True),
        (["nonsense"], (9, 0), False),
    ],
)
def test_which_code_runs_on_which_chip(arches: list[str], chip: tuple[int, int], runs: bool) -> None:
    assert runs_on(arches, chip) is runs


def test_a_machine_without_profilers_says_so_calmly() -> None:
    found = checks(replace(healthy(), programs={"nvidia-smi": "/usr/bin/nvidia-smi"}))
    assert (found["nsys"].state, found["ncu"].state) == ("note", "note")


def test_nsys_older_than_the_driver() -> None:
    machine = healthy()
    folder = NSYS.rpartition("/")[0]
    old = checks(replace(machine, folders={**machine.folders, folder: ("libcupti.so.12.8",)}))["nsys-and-driver"]
    assert (old.state, old.failure) == ("warning", 4)
    assert old.seen == "nsys supports up to CUDA 12.8, the driver is for CUDA 13.0"
    none = checks(replace(machine, folders={**machine.folders, folder: ()}))["nsys-and-driver"]
    assert none.state == "unknown"


def test_an_nsys_without_its_importer() -> None:
    machine = healthy()
    inside = "/opt/nvidia/nsight-compute/2025.3.1/host/target-linux-x64/nsys"
    found = checks(replace(machine, programs={**machine.programs, "nsys": inside}))
    assert found["nsys"].seen.endswith("(inside Nsight Compute's package)")
    assert (found["nsys-importer"].state, found["nsys-importer"].failure) == ("problem", 16)
    assert "target-only" in found["nsys-importer"].seen


def test_the_nsys_of_nsight_compute_with_and_without_libdw() -> None:
    """As it lies in ncu 2025.3.1, seen on an H200."""
    machine = healthy()
    root = "/opt/nvidia/nsight-compute/2025.3.1/host"
    inside = replace(
        machine,
        programs={**machine.programs, "nsys": f"{root}/target-linux-x64/nsys"},
        folders={
            **machine.folders,
            root: ("linux-desktop-glibc_2_11_3-x64", "target-linux-x64"),
            f"{root}/target-linux-x64": ("libcupti.so.12.9", "libcupti.so.13.0", "nsys"),
            f"{root}/linux-desktop-glibc_2_11_3-x64": ("QdstrmImporter",),
        },
    )
    assert checks(inside)["nsys-importer"].state == "ok"
    lacking = checks(with_answers(inside, {"ldd": ProgramOutput(0, "\tlibdw.so.1 => not found\n")}))["nsys-importer"]
    assert (lacking.state, lacking.seen) == ("problem", "QdstrmImporter lacks libdw.so.1")
    assert lacking.do == ("apt-get install libdw1",)


def test_an_importer_without_its_libraries() -> None:
    lacking = ProgramOutput(0, "\tlibdw.so.1 => not found\n\tlibc.so.6 => /lib/libc.so.6\n")
    found = checks(with_answers(healthy(), {"ldd": lacking}))["nsys-importer"]
    assert (found.state, found.seen) == ("problem", "QdstrmImporter lacks libdw.so.1")
    assert checks(with_answers(healthy(), {"ldd": None}))["nsys-importer"].state == "unknown"


def test_an_nsys_behind_a_small_script_is_found() -> None:
    machine = healthy()
    script = replace(
        machine,
        programs={**machine.programs, "nsys": "/tmp/bin/nsys"},
        files={**machine.files, "/tmp/bin/nsys": f'#!/bin/sh\nexec {NSYS} "$@"\n', NSYS: "\x7fELF"},
    )
    assert checks(script)["nsys-importer"].state == "ok"


@pytest.mark.parametrize(
    ("version", "state", "words"),
    [
        ("Version 2025.4.0.0", "ok", "CUDA 13.1"),
        ("Version 2024.2.1.0", "warning", "for CUDA 12.5, the driver for CUDA 13.0"),
        ("Version 2031.1.0.0", "unknown", "not in warpline's list"),
        ("what?", "unknown", "version is not known"),
    ],
)
def test_ncu_against_the_driver(version: str, state: str, words: str) -> None:
    found = checks(with_answers(healthy(), {"ncu --version": ProgramOutput(0, version)}))["ncu-and-driver"]
    assert found.state == state
    assert words in found.seen


def test_a_driver_too_old_for_ncu() -> None:
    machine = healthy()
    old = with_answers(machine, {"nvidia-smi": ProgramOutput(0, "CUDA Version: 12.8 |")})
    found = checks(old)["ncu-and-driver"]
    assert (found.state, found.failure) == ("problem", 11)


def test_tools_of_different_ages_are_noted() -> None:
    found = checks(with_answers(healthy(), {"ncu --version": ProgramOutput(0, "Version 2024.2.1.0")}))
    assert found["nsys-and-ncu"].state == "note"


@pytest.mark.parametrize(
    ("files", "name", "state", "words"),
    [
        ({"proc__driver__nvidia__params": "RmProfilingAdminOnly: 1\n"}, "counters", "warning", "lacks CAP_SYS_ADMIN"),
        (
            {
                "proc__driver__nvidia__params": "RmProfilingAdminOnly: 1\n",
                "proc__self__status": "CapEff:\t000001ffffffffff\n",
            },
            "counters",
            "ok",
            "this process has the rights",
        ),
        ({"proc__driver__nvidia__params": "Other: 1\n"}, "counters", "unknown", "does not list the setting"),
        ({"proc__driver__nvidia__params": None}, "counters", "unknown", "cannot be read"),
        ({"proc__sys__kernel__perf_event_paranoid": "4\n"}, "perf-events", "note", "is 4"),
        ({"proc__sys__kernel__perf_event_paranoid": None}, "perf-events", "unknown", "cannot tell"),
        ({"proc__sys__kernel__yama__ptrace_scope": "3\n"}, "ptrace", "note", "is 3"),
        ({"proc__sys__kernel__yama__ptrace_scope": None}, "ptrace", "ok", "no ptrace restriction"),
        ({"proc__version": "Linux version 5.15.90.1-microsoft-standard-WSL2"}, "system", "warning", "WSL2"),
        ({"proc__version": "Linux version 4.4.0 #1 SMP Sun Jan 10"}, "system", "warning", "gVisor"),
        ({"proc__version": None}, "system", "ok", "no sign"),
        ({".dockerenv": ""}, "container", "ok", "inside Docker"),
        ({"run__.containerenv": ""}, "container", "ok", "inside Podman"),
        ({"proc__1__cgroup": "0::/kubepods/pod1"}, "container", "ok", "inside container"),
    ],
)
def test_the_system(files: dict[str, str | None], name: str, state: str, words: str) -> None:
    found = checks(with_files(healthy(), **files))[name]
    assert found.state == state
    assert words in found.seen


@pytest.mark.parametrize(
    ("change", "name", "state"),
    [
        ({"limits": {"memlock": 8 << 20, "stack": 8 << 20}}, "memlock", "note"),
        ({"limits": {"memlock": 1 << 30, "stack": -1}}, "memlock", "ok"),
        ({"limits": {"stack": -1}}, "memlock", "unknown"),
        ({"limits": {"memlock": -1}}, "stack", "unknown"),
        ({"spaces": {"/dev/shm": Space(64 << 20, 64 << 20)}}, "shared-memory", "warning"),
        ({"spaces": {}}, "shared-memory", "unknown"),
        ({"spaces": {".": Space(100 << 20, 9 << 30)}}, "disk", "problem"),
        ({"spaces": {".": Space(5 << 30, 9 << 30)}}, "disk", "warning"),
        ({"spaces": {"/tmp": Space(5 << 30, 9 << 30)}}, "temporary-disk", "warning"),
        ({"spaces": {}}, "temporary-disk", "unknown"),
        ({"environment": {"CUDA_INJECTION64_PATH": "/x.so"}}, "cupti-clients", "warning"),
        ({"environment": {"LD_PRELOAD": "/opt/libToolsInjectionProxy64.so"}}, "cupti-clients", "warning"),
        ({"environment": {"LD_PRELOAD": "/usr/lib/libjemalloc.so"}}, "cupti-clients", "ok"),
        ({"environment": {"KINETO_USE_DAEMON": "1"}}, "variables", "note"),
        ({"environment": {"CUDA_LAUNCH_BLOCKING": "1"}}, "variables", "warning"),
        ({"environment": {"CUDA_LAUNCH_BLOCKING": "0"}}, "variables", "ok"),
        ({"running": ("nsys", "bash")}, "other-profilers", "warning"),
        ({"running": ()}, "other-profilers", "unknown"),
        ({"running": ("nv-hostengine",)}, "dcgm", "warning"),
    ],
)
def test_limits_disks_and_others(change: dict[str, object], name: str, state: str) -> None:
    assert checks(replace(healthy(), **change))[name].state == state  # type: ignore[arg-type]


def test_a_small_stack_matters_in_a_container() -> None:
    assert checks(healthy())["stack"].state == "ok"
    assert checks(with_files(healthy(), **{".dockerenv": ""}))["stack"].state == "note"


def test_nsys_may_be_told_where_its_stream_goes() -> None:
    machine = replace(healthy(), environment={"NSYS_TMPDIR": "/full"}, spaces={"/full": Space(1 << 20, 1 << 30)})
    assert checks(machine)["temporary-disk"].state == "problem"


def test_values_of_variables_are_never_shown() -> None:
    secret = {
        "CUDA_INJECTION64_PATH": "/home/ada/s3cret.so",
        "KINETO_CONFIG": "s3cret",
        "LD_PRELOAD": "/s3cret/nsys.so",
    }
    assert "s3cret" not in str(examine_machine(replace(healthy(), environment=secret)).to_dict())


def test_this_machine_answers_and_never_hangs() -> None:
    machine = ThisMachine()
    assert machine.ask([sys.executable, "-c", "print(1)"]) == ProgramOutput(0, "1\n", "")
    assert machine.ask([sys.executable, "-c", "import time; time.sleep(60)"], 0.5) is None
    assert machine.ask(["/no/such/program"]) is None
    assert machine.read("/no/such/file") is None
    assert machine.names("/no/such/folder") == ()
    assert machine.space("/no/such/folder") is None
    assert machine.space("/") is not None
    assert machine.limit("nonsense") is None
    assert machine.limit("stack") is not None
    assert not machine.exists("/no/such/file")
    assert machine.which("no-such-program") is None
