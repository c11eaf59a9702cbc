"""Polars leaves the order of some results open: of a join, of groups, of distinct values, of equal rows after a sort.

With this patch they come out in another order than usual, so that an answer that depends on it shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest


def leave_orders_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn around whatever was not asked to maintain its order."""
    frame, series = pl.DataFrame, pl.Series
    monkeypatch.setattr(frame, "join", _turned(frame.join, kept_by="how", values=("semi", "anti")))
    monkeypatch.setattr(frame, "unique", _turned(frame.unique))
    monkeypatch.setattr(series, "unique", _turned(series.unique))
    group_by = frame.group_by
    monkeypatch.setattr(
        frame, "group_by", lambda self, *keys, **options: _Groups(group_by(self, *keys, **options), options)
    )
    monkeypatch.setattr(frame, "sort", _sorted_from_behind(frame.sort))


def _turned(method: Callable[..., Any], kept_by: str = "", values: tuple[str, ...] = ()) -> Callable[..., Any]:
    def turned(self: Any, *arguments: Any, **options: Any) -> Any:
        result = method(self, *arguments, **options)
        is_kept = options.get("maintain_order") or options.get(kept_by) in values
        return result if is_kept else result.reverse()

    return turned


def _sorted_from_behind(sort: Callable[..., Any]) -> Callable[..., Any]:
    def sorted_from_behind(self: Any, *arguments: Any, **options: Any) -> Any:
        if options.get("maintain_order"):
            return sort(self, *arguments, **options)
        return sort(self.reverse(), *arguments, **{**options, "maintain_order": True})

    return sorted_from_behind


class _Groups:
    """What `group_by` returns, whose tables are turned around."""

    def __init__(self, groups: Any, options: dict[str, Any]) -> None:
        self._groups = groups
        self._is_kept = bool(options.get("maintain_order"))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._groups, name)
        return method if self._is_kept else _turned(lambda _, *keys, **options: method(*keys, **options)).__get__(self)

    def __iter__(self) -> Any:
        return iter(self._groups) if self._is_kept else reversed(list(self._groups))
