"""The pytest plug-in: a test that profiles a step, or reads a recording, and fails with the diagnosis.

    @pytest.mark.warpline(max_syncs=0, max_launches=200)
    def test_no_hidden_sync(gpu_profile):
        gpu_profile(train_step)

    @pytest.mark.warpline(max_step_ms=12, baseline="train")
    def test_recorded_step(gpu_profile):
        gpu_profile.read("trace.json.gz")

Every run of pytest loads this file, and only a test with the fixture the rest.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from warpline.ui.gpu_profile import GpuProfile

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
    from warpline.ui.gpu_profile import GpuProfile  # noqa: PLC0415 - polars loads in tests that profile

    marker = request.node.get_closest_marker("warpline")
    return GpuProfile(tmp_path, request.config.rootpath / "baselines", dict(marker.kwargs) if marker else {})
