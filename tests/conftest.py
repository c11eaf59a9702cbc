"""Fixtures for all tests: a cache of their own, and the profiles that are not part of the project."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from paths import SHARED

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
if WORKER:
    for threads in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS"):  # of torch, which wait for each other at full speed
        os.environ.setdefault(threads, "1")  # the workers share the cores

WITH_TORCH = (
    *("tests/analyses/memory/test_memory.py", "tests/analyses/test_cpu_time.py", "tests/analyses/test_ops.py"),
    *("tests/bench/test_ceilings.py", "tests/capture/test_calibration.py", "tests/capture/test_forwards.py"),
    *("tests/capture/test_profile.py", "tests/capture/test_session.py", "tests/faults/test_noise.py"),
    *("tests/faults/test_sealed.py", "tests/test_torch_profile.py", "tests/ui/test_training.py"),
    "tests/work/test_flop_counter.py",
)
"""Files whose tests load torch and its compiler into the worker: one worker runs them all."""

gc.disable()  # until all tests are loaded
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def new_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that no other test has, not made yet: `mktemp` lists all that there are, for each test anew."""
    parent = tmp_path_factory.mktemp("own")
    return (parent / str(number) for number in count())


@pytest.fixture(scope="session")
def common_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all workers: a shared profile is parsed once in a run, and read from here by the other tests."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if WORKER else own) / "common-cache"


@pytest.fixture(autouse=True)
def own_cache(
    request: pytest.FixtureRequest, new_folders: Iterator[Path], common_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No test reads or fills the user's cache or history, or knows the width of the terminal that it is run in."""
    folder = next(new_folders)
    cache = common_cache if "shared" in request.keywords else folder / "cache"
    folder.mkdir()
    cache.mkdir(exist_ok=True)
    monkeypatch.setenv("WARPLINE_CACHE", str(cache))
    monkeypatch.setenv("WARPLINE_HISTORY", str(folder / "history.sqlite"))
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="module")
def load_torch(request: pytest.FixtureRequest) -> None:
    """The module's `torch`: loading it takes seconds, which collecting the tests need not take in every worker."""
    request.module.torch = pytest.importorskip("torch", reason="torch is not installed")


def pytest_collection_finish() -> None:
    """What is loaded stays until the end: looking through it for garbage, again and again, would take a tenth of the
    time."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadfile`, but for the files with torch."""
    from xdist.scheduler import LoadFileScheduling  # noqa: PLC0415 - only where there are workers

    class ByFile(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "torch" if file in WITH_TORCH else file

    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


class Backwards(pytest.Dir):
    """A folder whose last file is loaded first."""

    def collect(self) -> Iterator[Any]:
        yield from reversed(list(super().collect()))


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Every second worker begins at the other end: of a new checkout, each then compiles one half of the tests."""
    return Backwards.from_parent(parent, path=path) if WORKER[-1:] in {*"13579"} else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # With several workers, nobody waits for long ones. All workers have the same order.
    items.sort(key=lambda item: (item.get_closest_marker("long") is None, item.path))
    if SHARED.is_dir():
        return
    absent = pytest.mark.skip(reason=f"the shared profiles are not here ({SHARED}); WARPLINE_SHARED names their folder")
    for item in items:
        if "shared" in item.keywords:
            item.add_marker(absent)
