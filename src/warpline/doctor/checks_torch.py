"""Checks of PyTorch: its build against the driver and the GPU. torch runs in a separate process."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

from warpline.doctor.checks_gpu import GpuFacts, version_pair
from warpline.doctor.machine import Machine
from warpline.doctor.model import Check

IMPORT_SECONDS = 90.0
"""From a cold network disk, importing torch takes half a minute."""
QUESTION = """
import json, torch
answer = {"version": torch.__version__, "cuda": torch.version.cuda, "hip": torch.version.hip}
try:
    answer["arches"] = torch.cuda.get_arch_list() or torch._C._cuda_getArchFlags().split()
except Exception:
    answer["arches"] = []
try:
    answer["available"] = torch.cuda.is_available()
except Exception:
    answer["available"] = False
try:
    answer["kineto"] = torch.profiler.kineto_available()
except Exception:
    answer["kineto"] = None
print("warpline:" + json.dumps(answer))
"""


def read_torch(machine: Machine) -> dict[str, Any] | str:
    """What torch reports about itself, or why it reports nothing."""
    tried = dict.fromkeys([sys.executable, machine.which("python3") or "", machine.which("python") or ""])
    reason = "no Python with torch was found"
    for python in filter(None, tried):
        answer = machine.ask([python, "-c", QUESTION], IMPORT_SECONDS)
        if answer is None:
            reason = f"torch did not answer within {IMPORT_SECONDS:.0f} s"
            continue
        found = re.search(r"^warpline:(\{.*\})$", answer.output, re.MULTILINE)
        if found:
            try:
                facts = json.loads(found[1])
            except ValueError:
                continue
            if isinstance(facts, dict):
                return facts
        if "No module named 'torch'" not in answer.errors and answer.status:
            lines = [line for line in answer.errors.splitlines() if line.strip()]
            reason = f"importing torch fails: {lines[-1][:160] if lines else f'status {answer.status}'}"
    return reason


def torch_checks(machine: Machine, gpus: GpuFacts) -> Iterator[Check]:
    """All checks about torch."""
    facts = read_torch(machine)
    if isinstance(facts, str):
        broken = "fails" in facts
        means = "torch.profiler needs a working torch." if broken else ""
        do = ('python -c "import torch"',) if broken else ("pip install torch   (where the program runs)",)
        yield Check("torch", "problem" if broken else "unknown", facts, means, do)
        return
    version, cuda = str(facts.get("version", "?")), facts.get("cuda")
    if facts.get("hip"):
        yield Check("torch", "ok", f"torch {version} for ROCm {facts['hip']}")
        return
    if not cuda:
        state = "problem" if gpus.gpus else "note"
        means = "This build cannot use the GPU." if gpus.gpus else "This is right for a machine without a GPU."
        seen = f"torch {version} is built without CUDA"
        yield Check(
            "torch", "problem" if state == "problem" else "note", seen, means, _install(gpus) if gpus.gpus else ()
        )
        return
    yield _against_driver(version, str(cuda), facts, gpus)
    yield from _against_chips(version, [str(arch) for arch in facts.get("arches") or []], gpus)
    if facts.get("kineto") is False:
        means = "torch.profiler will record no GPU activity."
        yield Check("kineto", "problem", "this torch is built without Kineto", means, _install(gpus))


def _install(gpus: GpuFacts) -> tuple[str, ...]:
    number = gpus.cuda_number
    index = f"cu{number[0]}{number[1]}" if number else "cuXYZ"
    return (f"pip install torch --index-url https://download.pytorch.org/whl/{index}   (or the newest older one)",)


def _against_driver(version: str, cuda: str, facts: dict[str, Any], gpus: GpuFacts) -> Check:
    built, driver = version_pair(cuda), gpus.cuda_number
    seen = f"torch {version}, built for CUDA {cuda}"
    if built and driver and built[0] > driver[0]:
        means = f"The driver supports CUDA up to {gpus.cuda}: no CUDA call will work."
        return Check("torch", "problem", seen, means, ("install a newer driver, or: " + _install(gpus)[0],))
    if not facts.get("available"):
        if not gpus.gpus:
            return Check("torch", "unknown", f"{seen}; cannot check more without a GPU")
        means = "torch finds no GPU although the driver lists one: check CUDA_VISIBLE_DEVICES and the CUDA libraries."
        return Check(
            "torch",
            "problem",
            f"{seen}; torch.cuda.is_available() is false",
            means,
            ('python -c "import torch; torch.cuda.init()"',),
        )
    return Check("torch", "ok", seen)


def _against_chips(version: str, arches: list[str], gpus: GpuFacts) -> Iterator[Check]:
    chips = sorted({gpu.capability for gpu in gpus.gpus if gpu.capability})
    if not chips:
        return
    if not arches:
        yield Check(
            "torch-architectures",
            "unknown",
            "cannot tell, because torch does not list the architectures it was built for",
        )
        return
    lacking = [chip for chip in chips if not runs_on(arches, chip)]
    if lacking:
        names = ", ".join(f"sm_{major}{minor}" for major, minor in lacking)
        seen = f"torch {version} is built for {', '.join(arches)}, but the GPU is {names}"
        means = "Its kernels cannot run here: no kernel image is available for execution on the device."
        yield Check("torch-architectures", "problem", seen, means, _install(gpus))
        return
    yield Check("torch-architectures", "ok", f"built for {', '.join(arches)}")


def runs_on(arches: list[str], chip: tuple[int, int]) -> bool:
    """Whether code for these architectures runs on a chip.

    Machine code (``sm_XY``) runs on its own major version from its minor on; ``compute_XY`` is compiled for any later
    chip. A trailing letter ties it to one chip.
    """
    for arch in arches:
        found = re.fullmatch(r"(sm|compute)_(\d+)(\d)([a-z]?)", arch)
        if not found:
            continue
        built = (int(found[2]), int(found[3]))
        if found[4] == "a" and built == chip:
            return True
        if found[4] == "a":
            continue
        if (built[0] == chip[0] and built[1] <= chip[1]) or (found[1] == "compute" and built <= chip):
            return True
    return False
