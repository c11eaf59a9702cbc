"""Without zlib-ng everything that packs or unpacks uses the standard library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from paths import DATA

PROGRAM = """
import sys, zlib
sys.modules["zlib_ng"] = None
from pathlib import Path
from warpline.sources.zlib_engine import DamagedGzip, engine
assert engine is zlib and DamagedGzip is zlib.error
import warpline
from warpline.doctor.files import examine_file
from warpline.scrub.file import scrub
for path in (Path(sys.argv[1]), Path(sys.argv[2])):
    trace = warpline.open(path)
    warpline.open(path)
    examine_file(path)
    cleaned = scrub(path, Path(sys.argv[3], path.name)).output
    assert len(warpline.open(cleaned).gpu) == len(trace.gpu) > 0
"""


def test_profiles_are_read_cached_scrubbed_and_examined_without_zlib_ng(tmp_path: Path) -> None:
    files = [DATA / "kineto" / "streams.json.gz", DATA / "nsys" / "odd_ranges.sqlite.gz"]
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, files), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
