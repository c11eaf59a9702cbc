"""The `docker run` command that gives a containerised program its GPU and a working profiler."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from warpline.capture.plan import NCU, NSYS, TORCH
from warpline.capture.tool_commands import Flag, flag

PACKAGE_AT = "/opt/warpline"
WORK_AT = "/workspace/run"
NSYS_AT = "/opt/warpline-nsys"
SHARED_MEMORY_WHY = (
    "DataLoader workers and NCCL pass data through shared memory; Docker's default of 64 MB ends in bus errors"
)
LOCKED_MEMORY_WHY = (
    "the GPU's copy engine (DMA) and RDMA need pages that the OS never moves: pinned memory; the default limit is low, "
    "and pinning beyond it fails"
)
STACK_WHY = (
    "deep calls in libraries' threads overflow the default of 8 MB, and an overflow is a segmentation fault without a "
    "message; 64 MB is NVIDIA's recommendation"
)


def docker_flags(image: str, tool: str, inner: Sequence[str], work: Path) -> list[Flag]:
    """Every flag with its reason; `inner` holds the arguments of `python3 -m warpline.capture`."""
    package = Path(__file__).parents[1]
    flags = [
        flag("docker", "run", "--rm", why="remove the container when the program ends"),
        flag(
            "--gpus", "all", why="NVIDIA's container toolkit; without it no GPU is seen, and many programs use the CPU"
        ),
        flag("--ipc=host", why=SHARED_MEMORY_WHY),
        flag("--ulimit", "memlock=-1", why=LOCKED_MEMORY_WHY),
        flag("--ulimit", "stack=67108864", why=STACK_WHY),
        flag("-v", f"{work}:{WORK_AT}", why="the work folder; without it the trace is lost with the container"),
        flag("-w", WORK_AT, why="start there, so that relative paths are those of the work folder"),
        flag("-v", f"{package}:{PACKAGE_AT}/warpline:ro", why="warpline itself, read-only; it needs no packages"),
        flag("-e", f"PYTHONPATH={PACKAGE_AT}", why="so that Python finds it"),
    ]
    if tool in {NSYS, NCU}:
        flags.append(flag("--cap-add=SYS_ADMIN", why="performance counters and system traces need it"))
    mounted = _host_nsys() if tool == NSYS else None
    if mounted is not None:
        flags += [
            flag("-v", f"{mounted.parents[1]}:{NSYS_AT}:ro", why="this machine's nsys: it must run in the container"),
            flag("-e", f"WARPLINE_NSYS={NSYS_AT}/{mounted.parent.name}/nsys", why="use this nsys"),
        ]
    return [*flags, flag(image, why="the image"), flag("python3", "-m", "warpline.capture", *inner, why=_why(tool))]


def _why(tool: str) -> str:
    if tool == TORCH:
        return "the program, with torch.profiler injected; standard library only"
    return f"{tool} inside the container; from outside it records only the Docker client"


def _host_nsys() -> Path | None:
    """The folder of this machine's nsys, which is mounted as a whole."""
    found = shutil.which(os.environ.get("WARPLINE_NSYS", "") or "nsys")
    return Path(found).resolve() if found else None
