"""Compare what warpline says of a profile before and after scrubbing.

    PYTHONPATH=src:tests/helpers python tests/helpers/same_diagnosis.py PROFILE…

does so for many files, and prints those that differ.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from warpline.cli.main import run
from warpline.errors import WarplineError
from warpline.scrub.file import check, scrub

WORDS = ("rule", "cause", "fix", "code", "severity", "confidence", "source", "schema")
"""Keys whose texts are part of the answer; other texts quote names of the profile."""


def diagnosis(path: Path) -> Any:
    """The diagnosis as JSON; the exit code and the error's code where there is none."""
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        code = run(["diagnose", str(path), "--json", "--no-cache"])
    return json.loads(printed.getvalue()) if code == 0 else [code, said.getvalue().split(":")[1]]


def differences(before: Any, after: Any, place: str = "") -> list[str]:
    """The places in which two answers differ, names aside."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = {**before, **after}
        return [each for key in keys for each in differences(before.get(key), after.get(key), f"{place}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [each for number, (one, other) in pairs for each in differences(one, other, f"{place}[{number}]")]
    if isinstance(before, str) and isinstance(after, str) and place.rpartition(".")[2] not in WORDS:
        return []
    return [] if before == after else [f"{place}: {before!s:.60} became {after!s:.60}"]


def changed_by_scrubbing(path: Path, folder: Path) -> list[str]:
    """Scrub a copy of a profile; how its diagnosis changed, and what a second scrubbing would change."""
    alone = folder / path.name  # without the files that may stand beside it
    shutil.copyfile(path, alone)
    output = folder / f"scrubbed.{path.name}"
    scrub(alone, output)
    again = [f"{change.place} is not clean" for change in check(output).changes]
    found = again + differences(diagnosis(alone), diagnosis(output))
    output.unlink()
    alone.unlink()
    return found


if __name__ == "__main__":
    different = 0
    for name in sys.argv[1:]:
        try:
            with tempfile.TemporaryDirectory() as folder:
                found = changed_by_scrubbing(Path(name), Path(folder))
        except WarplineError as error:
            print(name, "refused:", error.code, flush=True)
            continue
        different += bool(found)
        print(name, "same" if not found else "\n  ".join(["differs", *found[:9]]), flush=True)
    print(f"{different} of {len(sys.argv) - 1} differ")
