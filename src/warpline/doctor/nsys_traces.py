"""Check the words of ``nsys profile -t``: by the help of the nsys that is installed, else by a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from warpline.doctor.command_line import Command
from warpline.doctor.machine import Machine
from warpline.doctor.model import Check
from warpline.doctor.remark import Remark, setting

WORDS = frozenset(
    {
        *("cuda", "cuda-hw", "cuda-sw", "nvtx", "cublas", "cublas-verbose", "cusolver", "cusolver-verbose"),
        *("cusparse", "cusparse-verbose", "cudla", "cudla-verbose", "mpi", "oshmem", "ucx", "osrt", "cudnn", "gds"),
        *("opengl", "opengl-annotations", "openacc", "openmp", "nvvideo", "vulkan", "vulkan-annotations"),
        *("python-gil", "syscall", "none", "nvmedia", "tegra-accelerators", "openxr", "openxr-annotations"),
        *("dx11", "dx11-annotations", "dx12", "dx12-annotations", "wddm", "ftrace"),
    }
)
"""Words of nsys 2020.1 to 2025.3 on Linux, Windows and embedded systems."""
_INSTEAD = {
    "nccl": ("nvtx", "NCCL marks its calls with NVTX ranges, which -t nvtx records."),
    "pytorch": ("nvtx", "nsys marks PyTorch's ops with --pytorch=autograd-nvtx, in NVTX ranges."),
    "cuda-api": ("cuda", ""),
    "python": ("python-gil", "Python's call stacks are an option of their own: --python-sampling=true."),
    "all": ("cuda,nvtx,osrt", "There is no word for everything."),
}
_UNASKED = "nsys (up to 2025.3)"
_VERSION = re.compile(r"(\d{4})\.(\d+)")


def trace_remarks(command: Command, machine: Machine) -> Iterator[Remark]:
    """Words that this nsys does not know."""
    asked = command.value("--trace")
    if asked is None:
        return
    words = [word.strip() for word in asked.split(",") if word.strip()]
    known, version = _known(machine)
    better: list[str] = []
    for word in words:
        if word in known:
            better.append(word)
            continue
        instead, why = _INSTEAD.get(word, (next(iter(get_close_matches(word, known, 1, 0.7)), ""), ""))
        seen = f"{version} does not know -t {word}"
        means = why or "It stops at once."
        do = (f"-t {instead}",) if instead else (f"one of: {', '.join(sorted(known))}",)
        better += instead.split(",") if instead else []
        yield Remark(Check("unknown-trace", "problem", seen, means, do))
    if better != words:
        check = Check("traces-corrected", "note", "words of -t replaced or left out")
        yield Remark(check, setting("--trace", ",".join(dict.fromkeys(better)) or "cuda,nvtx"))


def _known(machine: Machine) -> tuple[frozenset[str], str]:
    """The words of the installed nsys, from its help; else those of the table. And whose words they are."""
    path = machine.which("nsys")
    if path is None:
        return WORDS, _UNASKED
    help_text = machine.ask([path, "profile", "--help"])
    told = help_text.output if help_text is not None and help_text.status == 0 else ""
    values = told.partition("-t, --trace=")[2].partition("Possible values are ")[2]
    listed = frozenset(re.findall(r"'([a-z0-9-]++)'", re.split(r"\.\s", values, maxsplit=1)[0]))
    named = _VERSION.search(path)
    return (listed, f"nsys {named[0]}" if named else "this nsys") if "cuda" in listed else (WORDS, _UNASKED)
