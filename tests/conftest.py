"""Fixtures for all tests: a cache of their own, and the profiles that are not part of the project."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings
from paths import SHARED

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # the workers share the cores

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or fills the user's cache or history, or knows the width of the terminal that it is run in."""
    monkeypatch.setenv("WARPLINE_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("WARPLINE_HISTORY", str(tmp_path_factory.mktemp("history") / "history.sqlite"))
    monkeypatch.delenv("COLUMNS", raising=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)  # with several workers, nobody waits for them
    if SHARED.is_dir():
        return
    absent = pytest.mark.skip(reason=f"the shared profiles are not here ({SHARED}); WARPLINE_SHARED names their folder")
    for item in items:
        if "shared" in item.keywords:
            item.add_marker(absent)
