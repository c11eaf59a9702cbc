"""Fixtures for all tests: a cache of their own, and the profiles that are not part of the project."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from paths import SHARED

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
if WORKER:
    for threads in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(threads, "1")  # the workers share the cores

MAX_ID_LENGTH = 60

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def common_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all workers: a shared profile is parsed once in a run, and read from here by the other tests."""
    own = tmp_path_factory.getbasetemp()
    cache = (own.parent if WORKER else own) / "common-cache"
    cache.mkdir(exist_ok=True)
    return cache


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Programs end with Ctrl-C also where the tests run in the background, where a shell lets them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def own_cache(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    common_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No test reads or fills the user's cache or history, or knows the width of the terminal that it is run in."""
    folder = tmp_path_factory.mktemp("user")
    cache = common_cache if "shared" in request.keywords else folder
    monkeypatch.setenv("WARPLINE_CACHE", str(cache))
    monkeypatch.setenv("WARPLINE_HISTORY", str(folder / "history.sqlite"))
    monkeypatch.delenv("COLUMNS", raising=False)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name cases by their values where pytest would number them: files, words of a command, long texts."""
    if isinstance(val, Path):
        return val.name
    if isinstance(val, list | tuple | dict):
        return ascii(val)[:MAX_ID_LENGTH]
    if isinstance(val, str | bytes) and len(val) > MAX_ID_LENGTH:
        return ascii(val[:MAX_ID_LENGTH])
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if SHARED.is_dir():
        return
    absent = pytest.mark.skip(reason=f"the shared profiles are not here ({SHARED}); WARPLINE_SHARED names their folder")
    for item in items:
        if "shared" in item.keywords:
            item.add_marker(absent)
