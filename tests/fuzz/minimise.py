"""Makes a failing input small: fewer changes, then fewer events, rows or lines, as long as it fails the same way."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.fuzz.commands import Command
from tests.fuzz.execute import attempt
from tests.fuzz.inputs import Files, Recipe, build
from tests.fuzz.sqlite_mutators import quoted, tables_of

LONGEST_S = 15.0
"""CPU time for one failure."""


class Minimiser:
    """One failing input."""

    def __init__(self, command: Command, signature: str) -> None:
        self._command = command
        self._signature = signature
        self._until = time.process_time() + LONGEST_S

    def fails(self, files: Files) -> bool:
        """Whether it still fails the same way; no longer once the time is used up."""
        if time.process_time() > self._until:
            return False
        return self._signature in {failure.signature for failure in attempt(files, self._command).failures}

    def recipe(self, recipe: Recipe) -> Recipe:
        """The recipe without the changes that do not matter."""
        for change in recipe.changes:
            smaller = replace(recipe, changes=tuple(one for one in recipe.changes if one != change))
            if self.fails(build(smaller)):
                recipe = smaller
        for plainer in ({"partner": None}, {"stem": "trace", "beside": "", "padded": False}):
            plain = replace(recipe, **plainer)  # type: ignore[arg-type]
            recipe = plain if plain != recipe and self.fails(build(plain)) else recipe
        return recipe

    def files(self, files: Files) -> Files:
        """The files with little in them."""
        content = files.content[files.main]

        def with_main(smaller: bytes) -> Files:
            return replace(files, content={**files.content, files.main: smaller})

        def fails(smaller: bytes) -> bool:
            return self.fails(with_main(smaller))

        if content.startswith(b"SQLite format 3"):
            return with_main(_smaller_database(content, fails))
        try:
            return with_main(_smaller_document(json.loads(content), content, fails))
        except (ValueError, RecursionError):
            return with_main(_fewer(content.split(b"\n"), lambda lines: fails(b"\n".join(lines)), b"\n".join))


def _fewer(parts: list[Any], fails: Callable[[list[Any]], bool], joined: Callable[[list[Any]], bytes]) -> bytes:
    """The parts that matter: ever smaller groups are left out."""
    group = max(len(parts) // 2, 1)
    while parts:
        at = 0
        while at < len(parts):
            smaller = parts[:at] + parts[at + group :]
            if fails(smaller):
                parts = smaller
            else:
                at += group
        if group == 1:
            break
        group //= 2
    return joined(parts)


def _smaller_document(document: Any, content: bytes, fails: Callable[[bytes], bool]) -> bytes:
    if not fails(_dumped(document)):
        return content  # the text itself matters, not what it says
    listed = (
        document if isinstance(document, list) else document.get("traceEvents") if isinstance(document, dict) else None
    )
    if not isinstance(listed, list):
        return content

    def joined(events: list[Any]) -> bytes:
        return _dumped(events if isinstance(document, list) else {**document, "traceEvents": events})

    events = json.loads(_fewer(listed, lambda some: fails(joined(some)), joined))
    document = events
    for owner, key in list(_keys(document)):
        if key in owner and key != "traceEvents":
            value = owner.pop(key)
            if not fails(_dumped(document)):
                owner[key] = value
    return _dumped(document)


def _keys(document: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Every key of the header, the events and their arguments."""
    events = document if isinstance(document, list) else document["traceEvents"]
    for owner in ([] if isinstance(document, list) else [document]) + [one for one in events if isinstance(one, dict)]:
        for key in list(owner):
            yield owner, key
        for inner in [value for key, value in owner.items() if isinstance(value, dict)]:
            for key in list(inner):
                yield inner, key


def _dumped(document: Any) -> bytes:
    return json.dumps(document).encode()


def _smaller_database(content: bytes, fails: Callable[[bytes], bool]) -> bytes:
    def changed(statement: str) -> bytes | None:
        database = sqlite3.connect(":memory:")
        try:
            database.deserialize(content)
            database.execute(statement)
            database.commit()
            database.execute("VACUUM")
            return database.serialize()
        except sqlite3.Error:
            return None
        finally:
            database.close()

    try:
        database = sqlite3.connect(":memory:")
        database.deserialize(content)
        tables = tables_of(database)
    except sqlite3.Error:
        return content
    for table in tables:
        for statement in (
            f"DROP TABLE {quoted(table)}",
            f"DELETE FROM {quoted(table)}",
            f"DELETE FROM {quoted(table)} WHERE rowid > 3",
        ):
            smaller = changed(statement)
            if smaller is not None and fails(smaller):
                content = smaller
                break
    return content
