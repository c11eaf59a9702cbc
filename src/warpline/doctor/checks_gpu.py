"""Checks of the driver and the GPUs: versions, clocks, power, MIG, persistence, other processes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, field

from warpline.doctor.machine import Machine
from warpline.doctor.model import Check

_FIELDS = (
    "index",
    "name",
    "driver_version",
    "compute_cap",
    "persistence_mode",
    "mig.mode.current",
    "clocks.sm",
    "clocks.max.sm",
    "enforced.power.limit",
    "power.default_limit",
    "memory.used",
)
_REASON_FIELDS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
"""The field's name since driver 535, and before."""
_THROTTLE_REASONS = {
    0x2: "application clocks are set below the maximum",
    0x8: "a hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "a hardware power brake",
}
_IDLE, _POWER_CAP = 0x1, 0x4
NO_GPU = Check(
    "gpu",
    "warning",
    "this machine has no GPU for CUDA or ROCm",
    "It cannot record a GPU. Profiles from elsewhere can be read, and warpline run records ops on the CPU.",
)
_PCI_DEVICES = "/sys/bus/pci/devices"
_NVIDIA_VENDOR = "0x10de"
_MAX_IDLE_MEMORY_MIB = 1000
_MIN_POWER_LIMIT_SHARE = 0.98


class InstalledGpu(Struct, frozen=True):
    """One GPU as nvidia-smi reports it; unknown fields are absent."""

    values: dict[str, str]

    def text(self, name: str) -> str:
        """A field; empty if unknown."""
        value = self.values.get(name, "").strip()
        return "" if value.startswith(("[", "N/A")) else value

    def number(self, name: str) -> float | None:
        """A field as a number."""
        try:
            return float(self.text(name))
        except ValueError:
            return None

    @property
    def capability(self) -> tuple[int, int] | None:
        """The compute capability."""
        major, _, minor = self.text("compute_cap").partition(".")
        return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None


class GpuFacts(Struct, frozen=True):
    """The driver and its GPUs."""

    driver: str = ""
    cuda: str = ""
    """The newest CUDA version that the driver supports."""
    gpus: tuple[InstalledGpu, ...] = ()
    error: str = ""
    """nvidia-smi's error output."""
    reasons: tuple[int | None, ...] = field(default=())
    """The clock event reasons of each GPU, as a bit mask."""

    @property
    def cuda_number(self) -> tuple[int, int] | None:
        """Major and minor."""
        return version_pair(self.cuda)


def version_pair(text: str) -> tuple[int, int] | None:
    """Major and minor of a version."""
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def read_gpus(machine: Machine) -> GpuFacts:
    """Query the driver."""
    version = (machine.read("/proc/driver/nvidia/version") or "").partition("Kernel Module")[2].partition("\n")[0]
    kernel_module = re.search(r"\s(\d++\.\d++(?:\.\d++)?)(?!\S)", version)
    driver = kernel_module[1] if kernel_module else ""
    if machine.which("nvidia-smi") is None:
        return GpuFacts(driver, error="nvidia-smi is not on PATH" if driver else "")
    plain = machine.ask(["nvidia-smi"], 20)
    if plain is None:
        return GpuFacts(driver, error="nvidia-smi did not answer within 20 s")
    if plain.status:
        return GpuFacts(driver, error=" ".join((plain.output + plain.errors).split())[:200] or f"status {plain.status}")
    cuda = re.search(r"CUDA (?:UMD )?Version:\s*(\d+\.\d+)", plain.output)
    rows = _query(machine, _FIELDS) or _query(machine, _FIELDS[:4])
    gpus = tuple(InstalledGpu(dict(zip(_FIELDS, row, strict=False))) for row in rows)
    reasons: tuple[int | None, ...] = ()
    for name in _REASON_FIELDS:
        answered = _query(machine, (name,))
        if answered:
            reasons = tuple(_bits(row[0]) for row in answered)
            break
    return GpuFacts(
        driver or (gpus[0].text("driver_version") if gpus else ""), cuda[1] if cuda else "", gpus, "", reasons
    )


def has_no_gpu(facts: GpuFacts, machine: Machine) -> bool:
    """Whether the machine shows that it has no GPU. A container without --gpus still sees its host's on the PCI bus."""
    if (
        facts.driver
        or facts.gpus
        or facts.error
        or any(map(machine.exists, ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")))
    ):
        return False
    devices = machine.names(_PCI_DEVICES)
    vendors = {(machine.read(f"{_PCI_DEVICES}/{name}/vendor") or "").strip() for name in devices}
    # A sandbox may hide the bus. Without /proc this is no Linux, for which alone there are drivers.
    return _NVIDIA_VENDOR not in vendors if devices else not machine.exists("/proc")


def _query(machine: Machine, names: tuple[str, ...]) -> list[list[str]]:
    answer = machine.ask(["nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits"], 20)
    if answer is None or answer.status:
        return []
    return [[cell.strip() for cell in line.split(",")] for line in answer.output.splitlines() if line.strip()]


def _bits(text: str) -> int | None:
    try:
        return int(text, 16)
    except ValueError:
        return None


def gpu_checks(facts: GpuFacts, machine: Machine) -> Iterator[Check]:
    """All checks about the driver and its GPUs."""
    if not facts.driver and not facts.gpus:
        yield _no_driver(facts, machine)
        for name in ("clocks", "power-limit", "mig", "persistence", "other-work"):
            yield Check(name, "unknown", "cannot tell, because there is no working driver")
        return
    if facts.error:
        mismatch = "version mismatch" in facts.error
        means = (
            "The driver was updated, but the old one is still loaded." if mismatch else "The driver does not respond."
        )
        do = (
            ("sudo reboot   (or unload and reload the nvidia modules)",)
            if mismatch
            else ("nvidia-smi", "dmesg | grep -i nvrm")
        )
        yield Check("driver", "problem", f"nvidia-smi: {facts.error}", means, do)
        return
    yield Check("driver", "ok", f"driver {facts.driver}" + (f", for CUDA up to {facts.cuda}" if facts.cuda else ""))
    if not facts.gpus:
        yield Check("gpu", "problem", "the driver lists no GPU", "", ("nvidia-smi -L", "docker run --gpus all …"))
        return
    names = [f"{gpu.text('name')} ({gpu.text('compute_cap')})" for gpu in facts.gpus]
    yield Check("gpu", "ok", f"{len(names)} × {names[0]}" if len(set(names)) == 1 else ", ".join(names))
    yield _clocks(facts)
    yield _power(facts)
    yield _mig(facts)
    yield _persistence(facts)
    yield _other_work(facts)


def _no_driver(facts: GpuFacts, machine: Machine) -> Check:
    elsewhere = "This machine cannot profile a GPU; profiles from elsewhere can be read."
    if machine.exists("/dev/nvidiactl"):
        seen = facts.error or "there are NVIDIA devices, but neither nvidia-smi nor /proc/driver/nvidia"
        return Check("driver", "unknown", seen, "The driver's tools are not in this container.", ("ls /dev/nvidia*",))
    if machine.exists("/dev/kfd"):
        seen = "an AMD GPU (/dev/kfd) and no NVIDIA driver"
        return Check("driver", "note", seen, "torch.profiler works; nsys and ncu do not.", ())
    do = ("docker run --gpus all …   (in a container)", "nvidia-smi")
    return Check("driver", "problem", facts.error or "no NVIDIA driver", elsewhere, do)


def _clocks(facts: GpuFacts) -> Check:
    if not facts.reasons or all(bits is None for bits in facts.reasons):
        return Check("clocks", "unknown", "cannot tell, because nvidia-smi does not report clock event reasons")
    for gpu, bits in zip(facts.gpus, facts.reasons, strict=False):
        slowed = [what for bit, what in _THROTTLE_REASONS.items() if bits is not None and bits & bit]
        if slowed:
            clock = f"{gpu.text('clocks.sm')} of {gpu.text('clocks.max.sm')} MHz"
            seen = f"GPU {gpu.text('index')} at {clock}: {', '.join(slowed)}"
            means = "Times measured now are slower than at full clock."
            return Check("clocks", "warning", seen, means, ("nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE",))
    now = ", ".join(sorted({f"{gpu.text('clocks.sm')} of {gpu.text('clocks.max.sm')} MHz" for gpu in facts.gpus}))
    if all(bits == _IDLE for bits in facts.reasons):
        return Check("clocks", "ok", f"idle at {now}, not throttled")
    if any(bits is not None and bits & _POWER_CAP for bits in facts.reasons):
        return Check("clocks", "note", f"{now}, throttled by the power limit", "This is normal under full load.", ())
    return Check("clocks", "ok", f"{now}, not throttled")


def _power(facts: GpuFacts) -> Check:
    pairs = [(gpu, gpu.number("enforced.power.limit"), gpu.number("power.default_limit")) for gpu in facts.gpus]
    known = [(gpu, limit, usual) for gpu, limit, usual in pairs if limit is not None and usual]
    if not known:
        return Check("power-limit", "unknown", "cannot tell, because nvidia-smi does not report the limit")
    for gpu, limit, usual in known:
        if limit < _MIN_POWER_LIMIT_SHARE * usual:
            seen = f"GPU {gpu.text('index')} is limited to {limit:.0f} W; the default is {usual:.0f} W"
            means = "Large GEMMs will run slower than at the default limit."
            return Check(
                "power-limit", "warning", seen, means, (f"sudo nvidia-smi -i {gpu.text('index')} -pl {usual:.0f}",)
            )
    return Check("power-limit", "ok", f"{known[0][1]:.0f} W, the default limit")


def _mig(facts: GpuFacts) -> Check:
    modes = [gpu.text("mig.mode.current") for gpu in facts.gpus]
    if "Enabled" in modes:
        means = "A MIG slice has only part of the chip's SMs and bandwidth: the chip's peaks do not apply."
        do = ("nvidia-smi mig -lgi", "use warpline roofline TRACE --device CHIP only for whole chips")
        return Check("mig", "warning", "MIG is on", means, do)
    return Check("mig", "ok", "MIG is off" if any(modes) else "this GPU has no MIG")


def _persistence(facts: GpuFacts) -> Check:
    modes = {gpu.text("persistence_mode") for gpu in facts.gpus} - {""}
    if not modes:
        return Check("persistence", "unknown", "cannot tell, because nvidia-smi does not report it")
    if "Disabled" in modes:
        means = "The driver unloads when no program uses it: the first CUDA call takes seconds longer."
        return Check("persistence", "note", "persistence mode is off", means, ("sudo nvidia-smi -pm 1",))
    return Check("persistence", "ok", "persistence mode is on")


def _other_work(facts: GpuFacts) -> Check:
    used = [(gpu, gpu.number("memory.used")) for gpu in facts.gpus]
    if all(amount is None for _, amount in used):
        return Check("other-work", "unknown", "cannot tell, because nvidia-smi does not report the used memory")
    busy = [(gpu, amount) for gpu, amount in used if amount is not None and amount > _MAX_IDLE_MEMORY_MIB]
    if busy:
        seen = ", ".join(f"GPU {gpu.text('index')}: {amount:,.0f} MiB in use" for gpu, amount in busy)
        means = "Another program shares the GPU: timings will be longer and vary more."
        return Check("other-work", "warning", seen, means, ("nvidia-smi",))
    return Check("other-work", "ok", "no other program uses much GPU memory")
