"""What ops, launches and their recording cost this host, measured by loops of tiny ops.

Each loop is timed bare and then under torch.profiler: the difference is what recording costs. Nothing here may disturb
the program: on any failure there is no calibration.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from warpline.capture.recorders import as_ours
from warpline.capture.run_folder import COSTS_SCHEMA

TURNS = 100
"""Turns of a loop: far below the 1,024 launches that the driver queues before a launch waits."""
REPEATS, WARM_UP = 9, 2
LONGEST_S = 0.4
"""No loop is begun after this time."""

Now = Callable[[], int]
Loop = Callable[[], object]
Quartiles = tuple[float, float, float]


def measure_host(
    torch: Any, *, shapes: bool = True, stacks: bool = False, now: Now = time.perf_counter_ns
) -> dict[str, Any] | None:
    """A calibration as a document, or None where it could not be measured; with `shapes` and `stacks` as recorded."""
    try:
        with as_ours():
            return _measure(torch, shapes, stacks, now)
    except Exception:  # the program comes first
        return None


def _measure(torch: Any, shapes: bool, stacks: bool, now: Now) -> dict[str, Any] | None:
    began = now()
    on_gpu = bool(torch.cuda.is_initialized())
    if on_gpu and torch.cuda.is_current_stream_capturing():
        return None
    with _side_stream(torch) if on_gpu else contextlib.nullcontext(), torch.no_grad():
        loops = _loops(torch, on_gpu)
        wait = torch.cuda.synchronize if on_gpu else _nothing
        timer = _Timer(wait, now, began + int(LONGEST_S * 1e9))
        bare = timer.samples(loops)
        profiler = _profiler(torch, on_gpu, shapes, stacks)
        with profiler:
            recorded = timer.samples(loops)
    costs = _costs(bare, recorded, stacks)
    if not costs:
        return None
    return {
        "schema": COSTS_SCHEMA,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),  # noqa: UP017 - Python 3.9
        "torch": str(torch.__version__),
        "shapes": shapes,
        "stacks": stacks,
        "seconds": round((now() - began) / 1e9, 3),
        "costs_ns": costs,
    }


def _loops(torch: Any, on_gpu: bool) -> dict[str, Loop]:
    """What is repeated: a view launches nothing, an addition launches one kernel."""
    data = torch.zeros(8, device="cuda" if on_gpu else "cpu")
    loops: dict[str, Loop] = {"function": _nothing, "view": functools.partial(data.view, 8)}
    if on_gpu:
        loops["add"] = functools.partial(data.add_, 1.0)
        if hasattr(torch.cuda, "_sleep"):
            loops["launch"] = functools.partial(torch.cuda._sleep, 1)
    return loops


@contextlib.contextmanager
def _side_stream(torch: Any) -> Iterator[None]:
    """A stream of our own: the program's streams keep their order."""
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        yield
    torch.cuda.synchronize()


def _profiler(torch: Any, on_gpu: bool, shapes: bool, stacks: bool) -> Any:
    kinds = torch.profiler.ProfilerActivity
    activities = [kinds.CPU, kinds.CUDA] if on_gpu else [kinds.CPU]
    return torch.profiler.profile(activities=activities, record_shapes=shapes, with_stack=stacks)


class _Timer:
    """Times loops until the time is up."""

    def __init__(self, wait: Callable[[], object], now: Now, until: int) -> None:
        self._wait, self._now, self._until = wait, now, until

    def samples(self, loops: dict[str, Loop]) -> dict[str, list[float]]:
        """Nanoseconds per turn of each loop; the loops take turns, so that a slow moment strikes all alike."""
        taken: dict[str, list[float]] = {name: [] for name in loops}
        for number in range(WARM_UP + REPEATS):
            if number > WARM_UP and self._now() > self._until:
                break
            for name, loop in loops.items():
                self._wait()
                began = self._now()
                for _ in range(TURNS):
                    loop()
                if number >= WARM_UP:
                    taken[name].append((self._now() - began) / TURNS)
        self._wait()
        return taken


def _costs(bare: dict[str, list[float]], recorded: dict[str, list[float]], stacks: bool) -> dict[str, dict[str, float]]:
    """Costs by name; what came out as nothing is left out."""
    view, add, launch, function = (_quartiles(bare.get(name, [])) for name in ("view", "add", "launch", "function"))
    recorded_view, recorded_add, recorded_function = (
        _quartiles(recorded.get(name, [])) for name in ("view", "add", "function")
    )
    recording_op = _difference(recorded_view, view)
    recording_both = _difference(recorded_add, add)
    found = {
        "op": _difference(add, launch),
        "launch": launch,
        "frame": function,
        "recording_op": recording_op,
        "recording_call": _difference(recording_both, recording_op),
        "recording_frame": _difference(recorded_function, function) if stacks else None,
    }
    return {
        name: dict(zip(("low", "expected", "high"), (round(value, 1) for value in values)))  # noqa: B905 - Python 3.9
        for name, values in found.items()
        if values is not None and values[1] > 0
    }


def _quartiles(samples: list[float]) -> Quartiles | None:
    if not samples:
        return None
    if len(samples) == 1:
        return samples[0], samples[0], samples[0]
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    return low, middle, high


def _difference(one: Quartiles | None, other: Quartiles | None) -> Quartiles | None:
    """One less the other, with the widest range that both allow."""
    if one is None or other is None:
        return None
    middle = one[1] - other[1]
    return max(min(one[0] - other[2], middle), 0.0), middle, max(one[2] - other[0], middle)


def _nothing() -> None:
    pass
