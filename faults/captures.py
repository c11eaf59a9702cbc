"""Captures a few steps with torch.profiler, and takes the machine's own paths out of the file."""

from __future__ import annotations

import gzip
import json
import operator
import re
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.jobs import FAULTY, Job, Result
from faults.stopwatch import pay_for_the_process, warm_up

WARM_UP_STEPS = 2
"""Steps that the profiler watches but does not keep: its own first calls are in them."""
GPU_CATEGORIES = frozenset(("kernel", "gpu_memcpy", "gpu_memset"))
ABSOLUTE_PATH = re.compile(r"[\"' (](/(?:home|root|opt|usr|tmp|work|mnt|var|workspace)/[^\s\"']*)")


class Captures:
    """The captures of one variant of a case, of which one is kept."""

    def __init__(self, torch: Any, job: Job) -> None:
        self._torch, self._job = torch, job
        capture(torch, lambda: None, steps=1, stacks=job.stacks, cold=True)  # the profiler's own cold start
        self._built: Callable[[], object] | None = None
        if not job.case.cold:
            self._built = job.build()
            warm_up(torch, self._built)
        else:
            pay_for_the_process(torch, job)
        self._latest = self._held = ("", 0)

    def take(self) -> Result:
        """Captures the steps once more, and returns how long one took and how long the GPU was busy in it."""
        case = self._job.case
        text = capture(
            self._torch, self._built or self._job.build(), steps=case.steps, stacks=self._job.stacks, cold=case.cold
        )
        step_ns, busy_ns = profiled_step_ns(text)
        self._latest = (text, step_ns)
        return {"busy_ns": busy_ns, "step_ns": step_ns}

    def hold(self) -> Result:
        """Prefers the latest capture to the one held before."""
        self._held = self._latest
        return {}

    def write(self, folder: Path) -> Result:
        """Writes the capture held to its file, without what names the machine."""
        job, (text, step_ns) = self._job, self._held
        text = scrubbed(text, self._torch)
        for path in absolute_paths(text):
            print(f"{job}: a path of this machine is in the file: {path}", file=sys.stderr, flush=True)
        name = job.case.name if job.variant == FAULTY else f"{job.case.name}.{job.variant}"
        write_compressed(text, folder / f"{name}.json.gz")
        return {"step_ns": step_ns, "stacks": job.stacks}


def capture(torch: Any, step: Callable[[], object], *, steps: int, stacks: bool, cold: bool) -> str:
    """The profiler's file as text: CPU and CUDA, with shapes; one ProfilerStep for each step.

    A cold step is not run before its first recorded one; the profiler is then warmed up on nothing.
    """
    if not cold:
        warm_up(torch, step)
    return text_of(record(torch, step, steps=steps, stacks=stacks, cold=cold))


def record(torch: Any, step: Callable[[], object], *, steps: int, stacks: bool = False, cold: bool = False) -> Any:
    """The profiler after it has watched so many steps."""
    torch.cuda.synchronize()
    activities = (torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA)
    schedule = torch.profiler.schedule(wait=0, warmup=WARM_UP_STEPS, active=steps, repeat=1)
    with torch.profiler.profile(
        activities=activities, schedule=schedule, record_shapes=True, with_stack=stacks
    ) as profiler:
        for position in range(WARM_UP_STEPS + steps):
            if position >= WARM_UP_STEPS or not cold:
                step()
            if position < WARM_UP_STEPS:
                torch.cuda.synchronize()  # else kernels of the warm-up would run inside the first step
            profiler.step()
    return profiler


def text_of(profiler: Any) -> str:
    """What the profiler writes, without the name of its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(path))
        return path.read_text(encoding="utf-8", errors="replace").replace(str(path), "trace.json")


def scrubbed(text: str, torch: Any) -> str:
    """The file without the host's name, and with paths relative to the project, the packages or Python's library."""
    project = Path(__file__).parents[1]
    packages = Path(torch.__file__).parents[1]
    for prefix in (packages, project, Path(sysconfig.get_paths()["stdlib"]), Path(tempfile.gettempdir())):
        text = text.replace(f"{prefix}/", "")
    return re.sub(r'"host_name": "[^"]*"', '"host_name": "host"', text)


def absolute_paths(text: str) -> list[str]:
    """Paths of the machine that are still in the file."""
    return sorted(set(ABSOLUTE_PATH.findall(text)))


def profiled_step_ns(text: str) -> tuple[int, int]:
    """Wall time of a step while it was recorded, and how long the GPU was busy in it.

    The time is from the first step's begin to the end of the last work.
    """
    first, last, steps, busy, busy_until = float("inf"), 0.0, 0, 0.0, 0.0
    for event in sorted(_complete_events(text), key=operator.itemgetter("ts")):
        begin, end = event["ts"], event["ts"] + event["dur"]
        is_step = event["cat"] == "user_annotation" and event["name"].startswith("ProfilerStep#")
        if is_step:
            steps += 1
            first = min(first, begin)
        if event["cat"] in GPU_CATEGORIES:
            busy += max(end - max(begin, busy_until), 0.0)
            busy_until = max(busy_until, end)
        if is_step or event["cat"] in GPU_CATEGORIES:
            last = max(last, end)
    if not steps:
        raise ValueError("the file has no ProfilerStep")
    return round((last - first) * 1000 / steps), round(busy * 1000 / steps)


def _complete_events(text: str) -> list[dict[str, Any]]:
    return [event for event in json.loads(text, strict=False)["traceEvents"] if "dur" in event and "cat" in event]


def write_compressed(text: str, path: Path) -> None:
    """Writes the same bytes for the same text, whenever it is written."""
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
