"""The pytest plug-in, in a real pytest run: an added `.item()` fails with the line, and a good recording passes."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace

from paths import ROOT, SUITES

from warpline.capture.run_folder import recorded_entry, timed_step
from warpline.ui.gpu_profile import GpuProfile

TESTS = """
import pytest

@pytest.mark.warpline(max_syncs=0)
def test_waits_for_nothing(gpu_profile):
    gpu_profile.read({faulty!r})

@pytest.mark.warpline(max_syncs=0, max_launches=100)
def test_good(gpu_profile):
    assert len(gpu_profile.read({fixed!r}).steps) > 0

@pytest.mark.warpline(most_syncs=0)
def test_bad_limit(gpu_profile):
    gpu_profile.read({fixed!r})

@pytest.mark.warpline(max_syncs=0)
def test_live(gpu_profile):
    gpu_profile(lambda: None)

@pytest.mark.warpline(max_syncs=0)
def test_that_profiles_nothing(gpu_profile):
    pass

@pytest.mark.warpline(max_syncs=0)
def test_without_the_fixture():
    pass
"""


def test_a_recorded_sync_fails_a_real_run_and_the_message_names_the_line(tmp_path: Path) -> None:
    faulty, fixed = (str(SUITES / "planted" / f"item_per_layer{form}.json.gz") for form in ("", ".fixed"))
    (tmp_path / "test_gpu.py").write_text(TESTS.format(faulty=faulty, fixed=fixed))
    source = f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", "-rs", "--strict-markers"]
    loaded = [] if _is_installed() else ["-p", "warpline.ui.pytest_plugin"]
    ran = subprocess.run(
        [*command, *loaded, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": source, "COLUMNS": "120"},
        cwd=tmp_path,
    )
    assert "sync.py:21" in ran.stdout
    assert "aten::item" in ran.stdout
    assert "exceeded" in ran.stdout
    assert "not most_syncs" in ran.stdout
    assert "profiled nothing, so no limit was checked" in ran.stdout
    assert "does not use the fixture gpu_profile" in ran.stdout
    assert "4 failed, 1 passed, 1 skipped" in ran.stdout, ran.stdout


def _is_installed() -> bool:
    return any(point.value == "warpline.ui.pytest_plugin" for point in entry_points(group="pytest11"))


def test_a_step_is_timed_without_the_profiler_before_it_is_recorded(tmp_path: Path) -> None:
    torch = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: False))
    done: list[int] = []
    GpuProfile(tmp_path, tmp_path, {})._time(torch, lambda: done.append(1), 5, "plain.json")
    timed = timed_step(tmp_path / "plain.json")
    assert timed is None or len(timed.laps_ns) == len(done) == 5  # None if the steps became faster
    assert recorded_entry(tmp_path / "plain.json")["bare_step_ns"]["steps"] == 5
