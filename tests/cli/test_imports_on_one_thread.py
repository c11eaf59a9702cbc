"""While one thread imports what a diagnosis needs, no other thread imports anything: two that import one package at the
same time may get a half-made module."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from paths import DATA

PROGRAM = """
import json, sys, threading, time

LAST = "warpline.work.registry"
imported = []

class Watch:
    def find_spec(self, name, path=None, target=None):
        here = threading.current_thread()
        if here.name == "warpline-load":
            if name == LAST:
                time.sleep(1)  # a second in which another thread would import, if it did not wait
            return None
        if any(thread.name == "warpline-load" for thread in threading.enumerate()):
            imported.append([here.name, name])
        return None

from warpline.cli.main import run
import warpline.sources.kineto.stream as stream
if sys.argv[2] == "python":
    stream.is_available = lambda: False
sys.meta_path.insert(0, Watch())
code = run(["diagnose", sys.argv[1], "--json", "--no-cache"])
print(json.dumps({"code": code, "imported": imported, "loaded": LAST in sys.modules}), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("file", "scanner"),
    [
        (DATA / "kineto" / "streams.json.gz", "native"),
        (DATA / "kineto" / "streams.json.gz", "python"),
        (DATA / "nsys" / "graph_bar.sqlite.gz", "native"),
    ],
)
def test_only_the_loading_thread_imports(file: Path, scanner: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file), scanner], capture_output=True, text=True, check=True, timeout=120
    )
    told = json.loads(done.stderr.splitlines()[-1])
    assert told == {"code": 0, "imported": [], "loaded": True}
