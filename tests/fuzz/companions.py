"""What `warpline run` leaves beside a trace, damaged: the manifest, the second pass, the trace with stacks."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fuzz import byte_mutators, seeds, values
from tests.fuzz.raw_json import written

PICKLED = [
    None,
    True,
    -1,
    0,
    1 << 62,
    -(1 << 80),
    1.5,
    float("nan"),
    "",
    "\x1b[2J[red]\u202e",
    b"x",
    (),
    [],
    {},
    {1: 2},
    len,
    {3},
]
"""Values for a pickle: two of them would be imported or called."""
JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""The first bytes of SQLite's journal."""
COSTS = ("op", "launch", "frame", "recording_op", "recording_call", "recording_frame")


def beside(stem: str, chance: random.Random) -> dict[str, bytes]:
    """Some of the files."""
    made = {"manifest.json": damaged(manifest(stem), chance)}
    if chance.random() < 0.6:
        made[f"{stem}.look.json.gz"] = gzip.compress(damaged(look(), chance), 1, mtime=0)
        if chance.random() < 0.5:
            made[f"{stem}.stacks.json"] = damaged(seeds.training(), chance)
        if chance.random() < 0.1:
            made[f"{stem}.look.json.gz"] = byte_mutators.compressed(damaged(look(), chance), chance)
    return made


def other_ranks(content: bytes, chance: random.Random) -> dict[str, bytes]:
    """Traces of other processes in the same folder, some of them no traces."""
    choices = [content, b"", b"{}", b"[]", content[: len(content) // 3], json.dumps(seeds.xla()).encode()]
    names = ["rank1.json", "sub/rank2.json.gz", "a.sqlite", "notes.txt", "x.pt.trace.json"]
    return {name: chance.choice(choices) for name in names if chance.random() < 0.15}


def beside_database(name: str, content: bytes, chance: random.Random) -> dict[str, bytes]:
    """What a writer of a database leaves that was killed: logs of changes, whole, damaged or of another file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        database = sqlite3.connect(path)
        try:
            database.execute("PRAGMA journal_mode = wal")
            database.execute("CREATE TABLE left_over (x)")
            database.execute("INSERT INTO left_over VALUES (zeroblob(9000))")
            database.commit()
            log = path.with_name(f"{name}-wal").read_bytes()
        except (sqlite3.Error, OSError):
            log = b""
        finally:
            database.close()
    made = {}
    if chance.random() < 0.7:
        made[f"{name}-wal"] = chance.choice(
            [log, log[: len(log) // 2], b"", byte_mutators.flips(log, chance), bytes(64)]
        )
    if chance.random() < 0.4:
        made[f"{name}-shm"] = chance.choice([b"", bytes(32768), chance.randbytes(32768)])
    if chance.random() < 0.4:
        hot = (
            JOURNAL
            + (1).to_bytes(4, "big")
            + chance.randbytes(12)
            + (512).to_bytes(4, "big")
            + (4096).to_bytes(4, "big")
        )
        made[f"{name}-journal"] = chance.choice([hot + bytes(480) + chance.randbytes(4104), hot, b"", bytes(512)])
    return made


def manifest(stem: str) -> dict[str, Any]:
    """What `warpline run` says of a trace."""
    cost = {"low": 900.0, "expected": 1000.0, "high": 1200.0}
    entry = {
        "file": f"{stem}.json",
        "bare_step_ns": {
            "steps": 9,
            "median_ns": 900_000.0,
            "min_ns": 880_000,
            "max_ns": 950_000,
            "laps_ns": [880_000, 950_000],
            "cpu_ns": 9e5,
            "settled": True,
        },
        "recorded_step_ns": {"median_ns": 1e6},
        "host_costs": {"schema": "warpline.calibration/1", "costs_ns": {name: dict(cost) for name in COSTS}},
        "look": {"file": f"{stem}.look.json.gz", "state": "done", "steps": 2, "notes": []},
    }
    return {
        "schema": "warpline.run/1",
        "files": [f"{stem}.json"],
        "traces": [entry],
        "command": ["python", "train.py"],
    }


def look() -> dict[str, Any]:
    """A second pass of two calls."""
    calls = {
        "op": [0, 1],
        "ops": ["aten::mm", "aten::mul"],
        "thread": [0, 0],
        "parent": [-1, -1],
        "step": [0, 0],
        "record_function": [3, 4],
    }
    names = (
        "call",
        "argument",
        "output",
        "access",
        "tensor",
        "storage",
        "offset",
        "elements",
        "extent",
        "item_bytes",
        "shape",
        "dtype",
        "device",
    )
    tensors: dict[str, Any] = {name: [0, 0, 1] for name in names}
    tensors |= {
        "call": [0, 0, 1],
        "shapes": ["[64,64]", "[64]"],
        "dtypes": ["float", "half"],
        "devices": ["cuda:0", "cpu"],
    }
    return {
        "schema": "warpline.look/1",
        "calls": calls,
        "tensors": tensors,
        "lines": {"start_ns": [1, 2], "line": [3, 4]},
    }


def damaged(document: Any, chance: random.Random) -> bytes:
    """The document with up to three values replaced or gone."""
    document = json.loads(json.dumps(document))
    damage(document, chance, _value)
    return written(document).encode("utf-8", "surrogatepass")


def _value(chance: random.Random) -> Any:
    if chance.random() < 0.15:
        return chance.choice([values.long_text, values.deep_nesting])(chance)
    return values.anything(chance)


def damage(document: Any, chance: random.Random, value: Callable[[random.Random], Any]) -> None:
    """Up to three values replaced or gone."""
    for _ in range(chance.randint(0, 3)):
        place, key = _place(document, chance)
        if place is None:
            break
        if chance.random() < 0.2:
            del place[key]
        else:
            place[key] = value(chance)


def _place(document: Any, chance: random.Random) -> tuple[Any, Any]:
    """A container within the document, and a key of it."""
    place, key = None, None
    inner = document
    while isinstance(inner, dict | list) and inner and (place is None or chance.random() < 0.8):
        place, key = inner, chance.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
        inner = place[key]
    return place, key
