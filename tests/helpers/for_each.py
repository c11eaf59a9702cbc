"""Rows that are checked one after the other within one test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any


def for_each(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`pytest.mark.parametrize` for rows that take less time than pytest's own work for one more test.

    All rows run, and each that fails is shown. They share the test's fixtures, but for `tmp_path`.
    """
    every = list(rows)

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def test(**fixtures: Any) -> None:
            failures = []
            for number, row in enumerate(every):
                values = {names: row} if isinstance(names, str) else dict(zip(names, row, strict=True))
                try:
                    function(**values, **_of_its_own(fixtures, number))
                except Exception as error:
                    error.add_note(f"for {values}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(every)} rows", failures)

        given = {names} if isinstance(names, str) else set(names)
        signature = inspect.signature(function)
        left = [one for name, one in signature.parameters.items() if name not in given]
        test.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return test

    return decorate


def _of_its_own(fixtures: dict[str, Any], number: int) -> dict[str, Any]:
    if "tmp_path" not in fixtures:
        return fixtures
    folder = fixtures["tmp_path"] / str(number)
    folder.mkdir()
    return {**fixtures, "tmp_path": folder}
