"""The fixture `gpu_profile`: it profiles steps, or reads recordings, and checks the limits of a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from warpline.analyses.user_frames import site_of
from warpline.capture.bare_step_timer import StepTimer
from warpline.capture.manifest import write_times
from warpline.compare.baseline import path_of, read_baseline
from warpline.compare.budgets import Budget
from warpline.compare.gate import Gate, GateLimits, check
from warpline.findings.diagnosis import diagnose
from warpline.front.functions import open_trace
from warpline.front.trace import Trace
from warpline.reports import terminal
from warpline.reports.compare import gate_report
from warpline.reports.diagnosis import report
from warpline.units import several


class GpuProfile:
    """Profiles steps, and checks the limits of the test's marker."""

    def __init__(self, scratch: Path, baselines: Path, limits: dict[str, Any]) -> None:
        self._scratch, self._baselines, self._limits = scratch, baselines, limits
        self.was_used = False

    def __call__(self, step: Callable[[], object], *, steps: int = 10, warmup: int = 3) -> Trace:
        """Record some steps with torch.profiler, after a warm-up, and check the limits."""
        self.was_used = True
        plain = self._record(step, steps, warmup, stacks=False)
        gate = self._gate(plain)
        if gate is not None and gate.failed:
            # Stacks cost time, so they are recorded only to say where.
            self._fail(gate, self._record(step, 3, warmup, stacks=True))
        return plain

    def read(self, path: str | Path) -> Trace:
        """Check the limits on a recording."""
        self.was_used = True
        trace = open_trace(path)
        gate = self._gate(trace)
        if gate is not None and gate.failed:
            self._fail(gate, trace)
        return trace

    def _record(self, step: Callable[[], object], steps: int, warmup: int, *, stacks: bool) -> Trace:
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("profiling a step needs a CUDA device; gpu_profile.read() checks a recording anywhere")
        for _ in range(warmup):
            step()
        torch.cuda.synchronize()
        file = self._scratch / f"{'stacks' if stacks else 'plain'}.json"
        if not stacks:
            self._time(torch, step, steps, file.name)
        profiler = torch.profiler
        activities = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]
        schedule = profiler.schedule(wait=0, warmup=1, active=steps)
        with profiler.profile(
            activities=activities, schedule=schedule, record_shapes=True, with_stack=stacks
        ) as active:
            for _ in range(steps + 1):
                step()
                active.step()
            torch.cuda.synchronize()
        active.export_chrome_trace(str(file))
        return open_trace(file, cache=False)

    def _time(self, torch: Any, step: Callable[[], object], steps: int, name: str) -> None:
        """Time some steps without the profiler, as `warpline run` does, for a baseline whose runs were timed."""
        laps = StepTimer(torch)
        laps.lap()
        for _ in range(steps):
            step()
            laps.lap()
        write_times(self._scratch, name, laps.summary(cold=0))

    def _gate(self, trace: Trace) -> Gate | None:
        limits = dict(self._limits)
        name, metric = limits.pop("baseline", None), limits.pop("metric", "step")
        if name is None and not limits:
            return None
        signs = {"max": "<=", "min": ">="}
        budgets = []
        for key, limit in limits.items():
            side, _, number = key.partition("_")
            if side not in signs:
                raise pytest.UsageError(f"the marker warpline takes max_NUMBER and min_NUMBER, not {key}")
            budgets.append(Budget.parse(f"{number}{signs[side]}{limit}"))
        baseline = read_baseline(path_of(name, self._baselines)) if name is not None else None
        return check([trace], GateLimits(baseline, budgets, metric))

    def _fail(self, gate: Gate, trace: Trace) -> None:
        found = diagnose(trace)
        places = [
            f"the CPU waits for {row['op'] or row['call']} in {site.spot}, {several(row['count'], 'time')} a step"
            for row in found.syncs.rows(named=True)
            if (site := site_of(row))
        ]
        texts = [terminal.render(gate_report(gate), 100).plain, *places, terminal.render(report(found), 100).plain]
        pytest.fail("\n".join(texts), pytrace=False)
