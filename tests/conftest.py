"""Fixtures for all tests: a cache of their own, and the profiles that are not part of the project."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from paths import SHARED

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # the workers share the cores

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
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "common-cache"


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
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)  # with several workers, nobody waits for them
    if SHARED.is_dir():
        return
    absent = pytest.mark.skip(reason=f"the shared profiles are not here ({SHARED}); WARPLINE_SHARED names their folder")
    for item in items:
        if "shared" in item.keywords:
            item.add_marker(absent)
