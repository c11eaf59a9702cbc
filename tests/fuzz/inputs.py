"""Inputs: a seed and one to eight changes, each with its own source of chance, so that any of them can be left out."""

from __future__ import annotations

import contextlib
import json
import pickle
import random
import sqlite3
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from tests.fuzz import companions, mutators, seeds, snapshot_mutators, texts
from tests.fuzz.raw_json import written

CHANGES = 8
"""At most so many changes are combined."""
KINDS = {
    "document": 30,
    "recording": 33,
    "database": 26,
    "names": 4,
    "log": 2,
    "ncu": 4,
    "report": 1,
    "baseline": 3,
    "snapshot": 5,
    "history": 3,
    "source": 4,
    "folder": 5,
}
"""Kinds of inputs, and how often each is drawn."""
STEMS = [
    "trace",
    "trace",
    "trace",
    "trace",
    "trace",
    "[red]trace[bold]",
    "a b",
    "-x",
    "tra\x1b[31mce",
    "tr\u202ece",
    "[link=x]",
    "%s",
    "trace.look",
]
HISTORY_FILE = ".history.sqlite"
"""Where a run looks for the local record."""
RUN_FOLDER = "run"
"""Where the files of a run lie."""
PARTNERS = 0.4
"""How many inputs have a second, damaged one beside them."""
PADDED_BYTES = 80_000
"""Files of this size are cached; smaller ones are not."""


@dataclass(frozen=True)
class Recipe:
    """How an input is made."""

    kind: str
    seed: str
    stem: str
    changes: tuple[tuple[str, str], ...]
    """Each change's name and its own seed."""
    beside: str = ""
    """The seed of what lies beside the file, where something does."""
    padded: bool = False
    partner: Recipe | None = None
    """A second input, for commands that take two."""


@dataclass
class Files:
    """An input as files."""

    main: str
    content: dict[str, bytes] = field(default_factory=dict)
    seed: bytes = b""
    """The main file without changes."""
    partner: tuple[str, bytes] = ("", b"")
    """The second input's suffix and content; without one, the seed."""


def recipe_of(seed: int | str, number: int, kind: str = "") -> Recipe:
    """The input of that number; with `kind`, of this one, and without a partner."""
    chance = random.Random(f"{seed} {number}")
    alone = bool(kind)
    kind = kind or chance.choices(list(KINDS), list(KINDS.values()))[0]
    count = chance.choice([1, 1, 2, 3, chance.randint(1, CHANGES)])
    changes = tuple((_change(kind, chance), f"{seed} {number} {place}") for place in range(count))
    share = {"document": 0.12, "recording": 0.12, "database": 0.12, "folder": 0.9}.get(kind, 0.0)
    beside = f"{seed} {number} beside" if chance.random() < share else ""
    recipe = Recipe(kind, _seed(kind, chance), chance.choice(STEMS), changes, beside, chance.random() < 0.05)
    if alone or chance.random() > PARTNERS:
        return recipe
    other = kind if chance.random() < 0.7 else chance.choice(list(KINDS))
    return replace(recipe, partner=recipe_of(f"{seed} partner", number, other))


def _seed(kind: str, chance: random.Random) -> str:
    match kind:
        case "document":
            return chance.choice([*["training"] * 6, *seeds.documents()])
        case "recording":
            return str(chance.choice(seeds.recordings()).relative_to(seeds.SUITES))
        case "database":
            return chance.choice(list(seeds.databases()))
        case "log":
            return chance.choice(list(texts.LOGS))
        case "baseline":
            return "training"
        case "snapshot":
            return chance.choice(list(seeds.SNAPSHOTS))
        case "history":
            return "runs"
        case "ncu":
            return chance.choice(list(texts.PAGES))
        case "report":
            return chance.choice(list(seeds.reports()))
        case "source":
            return chance.choice(list(texts.SOURCES))
        case "folder":
            return "training"
        case _:
            return str(chance.randrange(1000))


def _change(kind: str, chance: random.Random) -> str:
    by_kind: dict[str, Any] = {
        "document": mutators.KINETO,
        "recording": mutators.KINETO,
        "database": mutators.SQLITE,
        "history": mutators.SQLITE,
        "names": mutators.LINES,
        "log": mutators.LINES,
        "ncu": mutators.LINES,
        "source": mutators.SOURCE,
        "folder": mutators.KINETO,
        "baseline": ["damaged"],
        "snapshot": mutators.SNAPSHOT,
    }
    share = {"document": 0.06, "recording": 0.06, "report": 1.0}.get(kind, 0.12)
    return (
        "bytes " + chance.choice(list(mutators.BYTES))
        if chance.random() < share
        else chance.choice(list(by_kind[kind]))
    )


def build(recipe: Recipe) -> Files:
    """The files of an input. A change that no longer fits what others left does nothing."""
    seed = b""
    chosen = [(name, random.Random(seed)) for name, seed in recipe.changes if not name.startswith("bytes ")]
    match recipe.kind:
        case "document" | "recording" | "folder":
            suffix, content, seed = ".json", _json(recipe, chosen), _text(recipe).encode()
        case "database":
            seed = seeds.databases()[recipe.seed]
            suffix, content = ".sqlite", _database(seed, chosen)
        case "history":
            suffix, content, seed = (
                ".sqlite",
                _database(seeds.history(), chosen),
                seeds.documents()["training"].encode(),
            )
        case "log":
            suffix, content = ".log", texts.mutated(texts.LOGS[recipe.seed], chosen)
        case "baseline":
            chance = random.Random("".join(own_seed for _, own_seed in recipe.changes))
            suffix, content, seed = (
                ".json",
                companions.damaged(json.loads(seeds.baseline()), chance),
                seeds.documents()["training"].encode(),
            )
        case "snapshot":
            seed = pickle.dumps(seeds.SNAPSHOTS[recipe.seed]())
            suffix, content = ".pickle", _snapshot(recipe.seed, chosen)
        case "ncu":
            suffix, content, seed = (
                ".csv",
                texts.mutated(texts.PAGES[recipe.seed], chosen),
                texts.PAGES[recipe.seed].encode(),
            )
        case "source":
            suffix, content = ".py", texts.mutated(texts.SOURCES[recipe.seed], chosen)
        case "report":
            suffix, content, seed = ".ncu-rep", seeds.reports()[recipe.seed], seeds.reports()[recipe.seed]
        case _:
            suffix, content = ".txt", texts.mutated(texts.names(recipe.seed), chosen)
    if recipe.padded and suffix in {".json", ".sqlite"}:
        content += b" " * max(PADDED_BYTES - len(content), 0) if suffix == ".json" else b""
    for name, own_seed in recipe.changes:
        if name.startswith("bytes "):
            content = mutators.BYTES[name.removeprefix("bytes ")](content, random.Random(own_seed))
    name = HISTORY_FILE if recipe.kind == "history" else recipe.stem + suffix
    others: dict[str, bytes] = {}
    if recipe.beside:
        chance = random.Random(recipe.beside)
        if recipe.kind == "database":
            others = companions.beside_database(name, content, chance)
        else:
            others = companions.beside(recipe.stem, chance)
        if recipe.kind == "folder":
            others |= companions.other_ranks(content, chance)
    within = f"{RUN_FOLDER}/" if recipe.kind == "folder" else ""
    content_of = {f"{within}{one}": data for one, data in {name: content, **others}.items()}
    files = Files(f"{within}{name}", content_of, seed)
    if recipe.partner is not None:
        other = build(recipe.partner)
        files.partner = PurePath(other.main).suffix, other.content[other.main]
    return files


def _snapshot(seed: str, chosen: list[tuple[str, random.Random]]) -> bytes:
    snapshot = seeds.SNAPSHOTS[seed]()
    for name, chance in chosen:
        with contextlib.suppress(TypeError, KeyError, AttributeError, IndexError):
            mutators.SNAPSHOT[name](snapshot, chance)
    return snapshot_mutators.written(snapshot, chosen[-1][1] if chosen else random.Random(seed))


def _json(recipe: Recipe, chosen: list[tuple[str, random.Random]]) -> bytes:
    document = json.loads(_text(recipe))
    for name, chance in chosen:
        # One event may be in the list twice after an earlier change: that is meant.
        with contextlib.suppress(TypeError, KeyError, OverflowError, AttributeError):
            mutators.KINETO[name](document, chance)
    return written(document).encode("utf-8", "surrogatepass")


def _text(recipe: Recipe) -> str:
    return (
        seeds.documents()[recipe.seed]
        if recipe.kind in {"document", "folder"}
        else seeds.recorded(seeds.SUITES / recipe.seed)
    )


def _database(content: bytes, chosen: list[tuple[str, random.Random]]) -> bytes:
    database = sqlite3.connect(":memory:")
    database.deserialize(content)
    for name, chance in chosen:
        with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeError):
            mutators.SQLITE[name](database, chance)
    database.commit()
    content = database.serialize()
    database.close()
    return content


def unchanged(recipe: Recipe) -> Recipe:
    """The recipe without its changes."""
    return replace(recipe, changes=())
