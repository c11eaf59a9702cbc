"""Checks of the system around the program: permissions, container limits, WSL, gVisor, disks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpline.doctor.failures import known_failure
from warpline.doctor.machine import Machine
from warpline.doctor.model import Check
from warpline.units import size

CAP_SYS_ADMIN = 1 << 21
MIN_SHARED_BYTES = 1 << 30
MIN_LOCKED_BYTES = 64 << 20
MIN_STACK_BYTES = 64 << 20
LOW_DISK_BYTES = 10 << 30
FULL_DISK_BYTES = 1 << 30
_MAX_PARANOID_FOR_SAMPLING = 2


def system_checks(machine: Machine) -> Iterator[Check]:
    """All checks about the system."""
    container = in_container(machine)
    yield _counters(machine)
    yield _paranoid(machine)
    yield _ptrace(machine)
    yield _container(container)
    yield _memlock(machine, container)
    yield _stack(machine, container)
    yield _kernel(machine)
    yield from room_checks(machine)


def room_checks(machine: Machine) -> Iterator[Check]:
    """What matters without a GPU, too: shared memory and disks."""
    yield _shared_memory(machine)
    yield from _disks(machine)


def in_container(machine: Machine) -> str:
    """The kind of container; empty if there is no sign of one."""
    if machine.exists("/.dockerenv"):
        return "Docker"
    if machine.exists("/run/.containerenv"):
        return "Podman"
    if machine.environment.get("APPTAINER_CONTAINER") or machine.environment.get("SINGULARITY_CONTAINER"):
        return "Apptainer"
    if machine.environment.get("KUBERNETES_SERVICE_HOST"):
        return "Kubernetes"
    groups = machine.read("/proc/1/cgroup") or ""
    return "container" if re.search(r"docker|kubepods|containerd|libpod|lxc", groups) else ""


def _counters(machine: Machine) -> Check:
    name = "counters"
    parameters = machine.read("/proc/driver/nvidia/params")
    status = machine.read("/proc/self/status") or ""
    granted = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", status, re.MULTILINE)
    administrator = bool(granted and int(granted[1], 16) & CAP_SYS_ADMIN)
    found = re.search(r"RmProfilingAdminOnly:\s*(\d)", parameters or "")
    if not found:
        why = (
            "/proc/driver/nvidia/params cannot be read"
            if parameters is None
            else "the driver does not list the setting"
        )
        return Check(name, "unknown", f"cannot tell whether counters are readable, because {why}")
    if found[1] == "0":
        return Check(name, "ok", "the driver allows all users to read performance counters")
    if administrator:
        return Check(name, "ok", "only administrators may read performance counters, and this process has the rights")
    failure = known_failure("counters-forbidden")
    seen = "RmProfilingAdminOnly is 1, and this process lacks CAP_SYS_ADMIN"
    means = "ncu and nsys's GPU metrics will fail with ERR_NVGPUCTRPERM; nsys and torch.profiler timelines work."
    return Check(name, "warning", seen, means, failure.do, failure.number)


def _paranoid(machine: Machine) -> Check:
    name, text = "perf-events", (machine.read("/proc/sys/kernel/perf_event_paranoid") or "").strip()
    if not re.fullmatch(r"-?\d+", text):
        return Check(name, "unknown", "cannot tell, because the kernel has no perf_event_paranoid")
    if int(text) > _MAX_PARANOID_FOR_SAMPLING:
        failure = known_failure("perf-paranoid")
        return Check(name, "note", f"perf_event_paranoid is {text}", failure.cause, failure.do, failure.number)
    return Check(name, "ok", f"perf_event_paranoid is {text}")


def _ptrace(machine: Machine) -> Check:
    name, text = "ptrace", (machine.read("/proc/sys/kernel/yama/ptrace_scope") or "").strip()
    if not text.isdecimal():
        return Check(name, "ok", "no ptrace restriction")
    if int(text) >= 2:
        means = "Attaching to a running program (cuda-gdb, py-spy, ncu --mode=attach) needs an administrator."
        return Check(name, "note", f"ptrace_scope is {text}", means, ("sudo sysctl kernel.yama.ptrace_scope=1",))
    return Check(name, "ok", f"ptrace_scope is {text}")


def _container(container: str) -> Check:
    if not container:
        return Check("container", "ok", "no sign of a container")
    means = "nsys and ncu must run inside it, not around it."
    return Check("container", "ok", f"inside {container}", means)


def _memlock(machine: Machine, container: str) -> Check:
    limit = machine.limit("memlock")
    if limit is None:
        return Check("memlock", "unknown", "cannot tell, because the system reports no limit")
    if limit == -1 or limit >= MIN_LOCKED_BYTES:
        return Check(
            "memlock", "ok", "locked memory is unlimited" if limit == -1 else f"up to {size(limit)} may be locked"
        )
    means = "RDMA and NCCL may fail to register memory; CUDA's own pinned memory does not count."
    do = ("docker run --ulimit memlock=-1 …",) if container else ("ulimit -l unlimited",)
    return Check("memlock", "note", f"at most {size(limit)} may be locked", means, do)


def _stack(machine: Machine, container: str) -> Check:
    limit = machine.limit("stack")
    if limit is None:
        return Check("stack", "unknown", "cannot tell, because the system reports no limit")
    if limit == -1 or limit >= MIN_STACK_BYTES or not container:
        return Check("stack", "ok", "stack unlimited" if limit == -1 else f"stack up to {size(limit)}")
    means = "NVIDIA recommends 64 MiB for its containers."
    return Check("stack", "note", f"stack up to {size(limit)}", means, ("docker run --ulimit stack=67108864 …",))


def _shared_memory(machine: Machine) -> Check:
    room = machine.space("/dev/shm")
    if room is None:
        return Check("shared-memory", "unknown", "cannot tell, because there is no /dev/shm")
    if room.total_bytes < MIN_SHARED_BYTES:
        means = "DataLoader workers pass batches through it; they die with bus errors when it is full."
        seen = f"/dev/shm has {size(room.total_bytes)}"
        return Check("shared-memory", "warning", seen, means, ("docker run --ipc=host …   (or --shm-size=16g)",))
    return Check("shared-memory", "ok", f"/dev/shm has {size(room.total_bytes)}")


def _kernel(machine: Machine) -> Check:
    text = machine.read("/proc/version") or ""
    release = re.search(r"Linux version (\S+)", text)
    if "microsoft" in text.lower():
        means = "Launches are batched and GPU times are less exact; an old nsys or driver records no kernels."
        do = ("keep the Windows driver and nsys current",)
        return Check("system", "warning", "WSL2", means, do, known_failure("launches-without-kernels").number)
    if release and release[1] == "4.4.0":
        means = (
            "gVisor has no performance counters: ncu fails. nsys and torch.profiler work, but system calls cost more."
        )
        return Check(
            "system",
            "warning",
            "gVisor",
            means,
            ("use nsys and warpline roofline",),
            known_failure("ncu-and-driver-do-not-match").number,
        )
    return Check("system", "ok", f"Linux {release[1]}" if release else "no sign of WSL or gVisor")


def _disks(machine: Machine) -> Iterator[Check]:
    environment = machine.environment
    temporary = environment.get("NSYS_TMPDIR") or environment.get("TMPDIR") or "/tmp"
    for name, folder, what in (
        ("disk", ".", "profiles are written"),
        ("temporary-disk", temporary, "nsys stores its raw stream"),
    ):
        room = machine.space(folder)
        where = f"here, where {what}" if folder == "." else f"in the temporary folder, where {what}"
        if room is None:
            yield Check(name, "unknown", f"cannot tell the free space {where}")
        elif room.free_bytes < LOW_DISK_BYTES:
            state = "problem" if room.free_bytes < FULL_DISK_BYTES else "warning"
            failure = known_failure("stream-not-imported").number
            do = (
                ("NSYS_TMPDIR=/with/room nsys profile …",)
                if folder != "."
                else ("record to another disk: -o /with/room/report",)
            )
            means = "A profile of one minute can take gigabytes, and a full disk truncates it."
            seen = f"{size(room.free_bytes)} free {where}"
            yield Check(name, "problem" if state == "problem" else "warning", seen, means, do, failure)
        else:
            yield Check(name, "ok", f"{size(room.free_bytes)} free {where}")
