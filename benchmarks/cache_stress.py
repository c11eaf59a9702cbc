"""Readers and writers of one cache folder that is too small for them, and writers that are killed.

    python benchmarks/cache_stress.py [--seconds 60] [--readers 8] [--writers 2] [--kills 100] [--json]

Readers open traces and compare every table with what the file holds. Writers store entries again and again, so that
entries are replaced and evicted under the readers. Then writers are killed at random moments, and after each kill the
traces are opened again. The exit code is 1 after a failed open or a wrong table.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TRACES = 12
EVENTS = 4_000
"""Of the smallest trace; some tables are then large enough to be read when they are first used."""
ENTRIES_THAT_FIT = 14
"""Of the smallest size: less than all, since the others are larger and those being written count too."""
ROLES = ("reader", "writer")


def work(role: str, folder: Path, seconds: float) -> None:
    """One worker: prints the number of opens, hits, failed opens, wrong tables and stored entries."""
    from warpline.sources.cache_folder import content_key  # noqa: PLC0415 - not in the parent, which only waits
    from warpline.trace import cache  # noqa: PLC0415
    from warpline.trace.open import open_trace  # noqa: PLC0415
    from warpline.trace.schema import TABLES  # noqa: PLC0415

    files = sorted(folder.glob("*.json"))
    right = {file: open_trace(file, cache=False) for file in files}
    keys = {file: str(content_key(file)) for file in files}
    count = dict.fromkeys(("opens", "hits", "failed", "wrong", "stored"), 0)
    print("ready", flush=True)
    sys.stdin.readline()
    rounds = random.Random(os.getpid())
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        file = rounds.choice(files)
        if role == "writer":
            cache.store(keys[file], right[file])
            count["stored"] += 1
            continue
        count["opens"] += 1
        try:
            found = cache.load(keys[file], file)
            count["hits"] += found is not None
            trace = found or open_trace(file)
            time.sleep(rounds.random() / 100)  # so that entries vanish before their tables are read
            if not all(trace.tables[name].stored.equals(right[file].tables[name].stored) for name in TABLES):
                count["wrong"] += 1
        except Exception as error:
            count["failed"] += 1
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
    print(json.dumps(count), flush=True)


def start(role: str, folder: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).resolve()), "--role", role, "--folder", str(folder)]
    command += ["--seconds", str(seconds)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def say_go(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()


def await_ready(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    if child.stdout.readline() != "ready\n":
        raise SystemExit("a worker did not start")


def counted(children: list[subprocess.Popen[str]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for child in children:
        out, _ = child.communicate()
        for name, value in json.loads(out.splitlines()[-1]).items():
            total[name] = total.get(name, 0) + value
    return total


def together(folder: Path, readers: int, writers: int, seconds: float) -> dict[str, int]:
    """All workers at once."""
    children = [start(role, folder, seconds) for role in ["reader"] * readers + ["writer"] * writers]
    for child in children:
        await_ready(child)
    for child in children:
        say_go(child)
    return counted(children)


def killed(folder: Path, kills: int) -> dict[str, int]:
    """Writers that are killed after up to 50 ms; after each a reader opens a trace."""
    from warpline.trace.open import open_trace  # noqa: PLC0415
    from warpline.trace.schema import TABLES  # noqa: PLC0415

    files = sorted(folder.glob("*.json"))
    right = {file: open_trace(file, cache=False) for file in files}
    total = {"kills": 0, "failed": 0, "wrong": 0}
    rounds = random.Random(kills)
    for number in range(kills):
        child = start("writer", folder, 60)
        await_ready(child)
        say_go(child)
        time.sleep(rounds.random() * 0.05)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        total["kills"] += 1
        file = files[number % len(files)]
        try:
            trace = open_trace(file)
            total["wrong"] += not all(
                trace.tables[name].stored.equals(right[file].tables[name].stored) for name in TABLES
            )
        except Exception as error:
            total["failed"] += 1
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return total


def prepare(folder: Path) -> None:
    """Traces of different sizes, and a limit that some of their entries exceed."""
    from scaling import SHAPES, write  # noqa: PLC0415

    for number in range(TRACES):
        write(SHAPES[-1], EVENTS + 200 * number, folder / f"{number}.json")
    os.environ["WARPLINE_CACHE"] = str(folder / "cache")
    from warpline.sources.cache_folder import traces_folder  # noqa: PLC0415
    from warpline.trace.open import open_trace  # noqa: PLC0415

    open_trace(folder / "0.json")
    one = sum(file.stat().st_size for file in traces_folder().rglob("*"))
    os.environ["WARPLINE_CACHE_BYTES"] = str(int(ENTRIES_THAT_FIT * one))


def left_behind(folder: Path) -> dict[str, Any]:
    """The state of the cache folder after one more store."""
    from warpline.sources.cache_limit import make_room  # noqa: PLC0415

    make_room()
    files = [path for path in (folder / "cache").rglob("*") if path.is_file()]
    return {
        "bytes": sum(path.stat().st_size for path in files),
        "limit_bytes": int(os.environ["WARPLINE_CACHE_BYTES"]),
        "temporaries": sum(path.name.startswith(".") for path in (folder / "cache").rglob("*")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--writers", type=int, default=2)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--role", choices=ROLES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role:
        work(arguments.role, arguments.folder, arguments.seconds)
        return
    with tempfile.TemporaryDirectory(prefix="warpline-stress-") as name:
        folder = Path(name)
        prepare(folder)
        result = {
            "together": together(folder, arguments.readers, arguments.writers, arguments.seconds),
            "killed": killed(folder, arguments.kills),
            "afterwards": left_behind(folder),
        }
    print(json.dumps(result, indent=None if arguments.json else 1))
    if any(result[part][what] for part in ("together", "killed") for what in ("failed", "wrong")):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
