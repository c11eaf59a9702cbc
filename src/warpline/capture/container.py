"""The `docker run` that gives a program in a container its GPU, and a profiler that works."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from warpline.capture.plan import NCU, NSYS, TORCH
from warpline.capture.tools import Flag, flag

PACKAGE_AT = "/opt/warpline"
WORK_AT = "/workspace/run"
NSYS_AT = "/opt/warpline-nsys"


def docker_flags(image: str, tool: str, inner: Sequence[str], work: Path) -> list[Flag]:
    """Every flag with its reason; `inner` is what `python3 -m warpline.capture` gets."""
    package = Path(__file__).parents[1]
    flags = [
        flag("docker", "run", "--rm", why="a container that is gone when the program ends"),
        flag("--gpus", "all", why="the GPUs, through NVIDIA's container toolkit"),
        flag("--ipc=host", why="shared memory for DataLoader workers and NCCL: Docker gives 64 MB otherwise"),
        flag("--ulimit", "memlock=-1", why="pinned memory without a limit"),
        flag("--ulimit", "stack=67108864", why="64 MB of stack, as NVIDIA's images expect"),
        flag("-v", f"{work}:{WORK_AT}", why="the work folder: the program, and where the trace goes"),
        flag("-w", WORK_AT, why="start there"),
        flag("-v", f"{package}:{PACKAGE_AT}/warpline:ro", why="warpline itself, read-only; it needs nothing installed"),
        flag("-e", f"PYTHONPATH={PACKAGE_AT}", why="so that Python finds it"),
    ]
    if tool in {NSYS, NCU}:
        flags.append(flag("--cap-add=SYS_ADMIN", why="performance counters and system traces need it"))
    mounted = _host_nsys() if tool == NSYS else None
    if mounted is not None:
        flags += [
            flag("-v", f"{mounted.parents[1]}:{NSYS_AT}:ro", why="this machine's nsys: it must run in the container"),
            flag("-e", f"WARPLINE_NSYS={NSYS_AT}/{mounted.parent.name}/nsys", why="and be the one that is used"),
        ]
    return [*flags, flag(image, why="the image"), flag("python3", "-m", "warpline.capture", *inner, why=_why(tool))]


def _why(tool: str) -> str:
    if tool == TORCH:
        return "the program, with torch.profiler injected; standard library only"
    return f"{tool} inside the container: from outside it sees only the Docker client"


def _host_nsys() -> Path | None:
    """The nsys of this machine; its folder moves as a whole."""
    found = shutil.which(os.environ.get("WARPLINE_NSYS", "") or "nsys")
    return Path(found).resolve() if found else None
