"""The pytest plug-in: a test that profiles a step, or reads a recording, and fails with the diagnosis.

    @pytest.mark.warpline(max_syncs=0, max_launches=200)
    def test_no_hidden_sync(gpu_profile):
        gpu_profile(train_step)

    @pytest.mark.warpline(max_step_ms=12, baseline="train")
    def test_recorded_step(gpu_profile):
        gpu_profile.read("trace.json.gz")

Everything but pytest loads when a test uses the fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from warpline.compare.gate import Gate
    from warpline.front.trace import Trace

MARKER = "warpline(max_NUMBER=…, min_NUMBER=…, baseline=NAME, metric='step'|'busy'): limits of a profiled step"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", MARKER)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Fail a test that has limits and passed without checking them."""
    outcome = yield
    profile = getattr(item, "funcargs", {}).get("gpu_profile")
    marked = any(marker.name == "warpline" for marker in item.own_markers)
    if outcome.excinfo is None and marked and (profile is None or not profile.was_used):
        what = "profiled nothing" if profile is not None else "does not use the fixture gpu_profile"
        hint = "call gpu_profile(step), or gpu_profile.read(path) for a recording"
        text = f"the test has the marker warpline and {what}, so no limit was checked; {hint}"
        outcome.force_exception(pytest.fail.Exception(text, pytrace=False))


@pytest.fixture
def gpu_profile(request: pytest.FixtureRequest, tmp_path: Path) -> GpuProfile:
    """Profiles a step (`gpu_profile(step)`) or reads a recording (`gpu_profile.read(path)`), and checks the marker's
    limits."""
    marker = request.node.get_closest_marker("warpline")
    return GpuProfile(tmp_path, request.config.rootpath / "baselines", dict(marker.kwargs) if marker else {})


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
        if gate is not None and gate.outcome == "regression":
            # Stacks cost time, so they are recorded only to say where.
            self._fail(gate, self._record(step, 3, warmup, stacks=True))
        return plain

    def read(self, path: str | Path) -> Trace:
        """Check the limits on a recording."""
        from warpline.front.functions import open_trace  # noqa: PLC0415 - loads when it is used

        self.was_used = True
        trace = open_trace(path)
        gate = self._gate(trace)
        if gate is not None and gate.outcome == "regression":
            self._fail(gate, trace)
        return trace

    def _record(self, step: Callable[[], object], steps: int, warmup: int, *, stacks: bool) -> Trace:
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("profiling a step needs a CUDA device; gpu_profile.read() checks a recording anywhere")
        from warpline.front.functions import open_trace  # noqa: PLC0415 - loads when it is used

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
        from warpline.capture.bare_step_timer import StepTimer  # noqa: PLC0415 - loads when it is used
        from warpline.capture.manifest import write_times  # noqa: PLC0415

        laps = StepTimer(torch)
        laps.lap()
        for _ in range(steps):
            step()
            laps.lap()
        write_times(self._scratch, name, laps.summary(cold=0))

    def _gate(self, trace: Trace) -> Gate | None:
        from warpline.compare.asked_numbers import asked_numbers  # noqa: PLC0415 - loads when it is used
        from warpline.compare.baseline import path_of, read_baseline  # noqa: PLC0415
        from warpline.compare.budgets import Budget  # noqa: PLC0415
        from warpline.compare.gate import judge  # noqa: PLC0415
        from warpline.compare.measurement import measure_sound  # noqa: PLC0415

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
        return judge([measure_sound(trace)], baseline, budgets, metric, more=asked_numbers(budgets, trace, ()))

    def _fail(self, gate: Gate, trace: Trace) -> None:
        from warpline.analyses.user_frames import site_of  # noqa: PLC0415 - loads when it is used
        from warpline.findings.diagnosis import diagnose  # noqa: PLC0415 - loads when it is used
        from warpline.reports import terminal  # noqa: PLC0415
        from warpline.reports.compare import gate_report  # noqa: PLC0415
        from warpline.reports.diagnosis import report  # noqa: PLC0415
        from warpline.units import several  # noqa: PLC0415

        found = diagnose(trace)
        places = [
            f"the CPU waits for {row['op'] or row['call']} in {site.spot}, {several(row['count'], 'time')} a step"
            for row in found.syncs.rows(named=True)
            if (site := site_of(row))
        ]
        texts = [terminal.render(gate_report(gate), 100).plain, *places, terminal.render(report(found), 100).plain]
        pytest.fail("\n".join(texts), pytrace=False)
