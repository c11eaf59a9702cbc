"""Hand-made machines: what they would answer if the doctor asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from warpline.doctor.checks_gpu import _FIELDS
from warpline.doctor.checkup import examine_machine
from warpline.doctor.machine import ProgramOutput, Space
from warpline.doctor.model import Check

NSYS = "/opt/nvidia/nsight-systems/2025.3.1/target-linux-x64/nsys"
HOST = "/opt/nvidia/nsight-systems/2025.3.1/host-linux-x64"
NCU = "/opt/nvidia/nsight-compute/2025.3.1/ncu"
H200 = {
    "index": "0",
    "name": "NVIDIA H200",
    "driver_version": "580.95.05",
    "compute_cap": "9.0",
    "persistence_mode": "Enabled",
    "mig.mode.current": "Disabled",
    "clocks.sm": "345",
    "clocks.max.sm": "1980",
    "enforced.power.limit": "700.00",
    "power.default_limit": "700.00",
    "memory.used": "4",
}
TORCH = {
    "version": "2.11.0+cu130",
    "cuda": "13.0",
    "hip": None,
    "arches": ["sm_80", "sm_90"],
    "available": True,
    "kineto": True,
}


class FakeMachine(Struct, frozen=True):
    """A machine of dictionaries."""

    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    folders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)
    answers: dict[str, ProgramOutput | None] = field(default_factory=dict)
    """By the program's last name and its first argument."""
    spaces: dict[str, Space] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    running: tuple[str, ...] = ("bash",)
    locked: frozenset[str] = frozenset()

    def read(self, path: str) -> str | None:
        return self.files.get(path)

    def exists(self, path: str) -> bool:
        return path in self.files or path in self.folders

    def names(self, folder: str) -> tuple[str, ...]:
        return self.folders.get(folder, ())

    def writable(self, folder: str) -> bool:
        return folder in self.folders and folder not in self.locked

    def which(self, program: str) -> str | None:
        return self.programs.get(program)

    def ask(self, command: Sequence[str], seconds: float = 10.0) -> ProgramOutput | None:
        name = command[0].rpartition("/")[2]
        if name.startswith("python"):
            return self.answers.get("python")
        return self.answers.get(" ".join([name, *command[1:2]]) if name != "ldd" else name)

    def space(self, folder: str) -> Space | None:
        return self.spaces.get(folder)

    def limit(self, name: str) -> int | None:
        return self.limits.get(name)

    def processes(self) -> tuple[str, ...]:
        return self.running


def torch_answer(**changes: Any) -> ProgramOutput:
    return ProgramOutput(0, "warpline:" + json.dumps({**TORCH, **changes}) + "\n")


def smi(gpus: list[dict[str, str]], reasons: str = "0x0000000000000001") -> dict[str, ProgramOutput | None]:
    """The answers of nvidia-smi for these GPUs."""
    rows = "".join(", ".join(gpu.get(name, "[N/A]") for name in _FIELDS) + "\n" for gpu in gpus)
    return {
        "nvidia-smi": ProgramOutput(0, "| NVIDIA-SMI 580.95.05   Driver Version: 580.95.05   CUDA Version: 13.0 |\n"),
        "nvidia-smi --query-gpu=" + ",".join(_FIELDS): ProgramOutput(0, rows),
        "nvidia-smi --query-gpu=clocks_event_reasons.active": ProgramOutput(0, f"{reasons}\n" * len(gpus)),
    }


def healthy() -> FakeMachine:
    """An H200 on which everything works."""
    return FakeMachine(
        files={
            "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue\n",
            "/proc/driver/nvidia/params": "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 0\n",
            "/proc/self/status": "Name:\tpython\nCapEff:\t0000000000000000\n",
            "/proc/sys/kernel/perf_event_paranoid": "1\n",
            "/proc/sys/kernel/yama/ptrace_scope": "1\n",
            "/proc/version": "Linux version 6.8.0-45-generic (buildd@lcy02)\n",
        },
        folders={
            ".": (),
            "/tmp": (),
            NSYS.rpartition("/")[0]: ("nsys", "libcupti.so.12.9", "libcupti.so.13.0"),
            NSYS.rpartition("/")[0].rpartition("/")[0]: ("host-linux-x64", "target-linux-x64"),
            HOST: ("QdstrmImporter",),
        },
        programs={"nvidia-smi": "/usr/bin/nvidia-smi", "nsys": NSYS, "ncu": NCU, "python3": "/usr/bin/python3"},
        answers={
            **smi([H200]),
            "python": torch_answer(),
            "nsys --version": ProgramOutput(0, "NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0\n"),
            "ncu --version": ProgramOutput(0, "NVIDIA (R) Nsight Compute\nVersion 2025.3.1.0 (build 36398880)\n"),
            "ldd": ProgramOutput(0, "\tlibdw.so.1 => /lib/libdw.so.1 (0x1)\n"),
        },
        spaces={
            "/dev/shm": Space(60 << 30, 64 << 30),
            ".": Space(500 << 30, 900 << 30),
            "/tmp": Space(90 << 30, 99 << 30),
        },
        limits={"memlock": -1, "stack": 8 << 20},
    )


def with_files(machine: FakeMachine, **files: str | None) -> FakeMachine:
    """The machine with files changed or, for None, removed; names are paths with __ for /."""
    changed = dict(machine.files)
    for name, text in files.items():
        path = "/" + name.replace("__", "/")
        if text is None:
            changed.pop(path, None)
        else:
            changed[path] = text
    return replace(machine, files=changed)


def with_answers(machine: FakeMachine, answers: dict[str, ProgramOutput | None]) -> FakeMachine:
    """The machine with other answers."""
    return replace(machine, answers={**machine.answers, **answers})


def checks(machine: FakeMachine) -> dict[str, Check]:
    """The checks of an examination by name."""
    checks = examine_machine(machine).checks
    assert len({check.name for check in checks}) == len(checks)
    return {check.name: check for check in checks}
