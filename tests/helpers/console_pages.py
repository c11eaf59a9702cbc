"""Pages whose console blocks are real: each command is run, and what it prints stands below it.

PYTHONPATH=tests/helpers python -m console_pages docs/tutorial.md     writes what the commands print today

The commands of lessons run in the repository, on its recordings; those of other pages in a folder with `FILES`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from paths import ROOT

from warpline.cli.main import run

RECORDINGS = ROOT / "faults" / "recordings" / "planted"
FILES = {"slow.json.gz": "pageable_batch.plain.json.gz", "fixed.json.gz": "pageable_batch.fixed.json.gz"}
"""The files that the pages speak of, and the recordings that they are."""
BLOCK = re.compile(r"^```console\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
WIDTH = 110


def answered(page: str, *, in_repository: bool = False) -> str:
    """The page with what its commands print now, run one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        for name, recording in FILES.items():
            shutil.copy(RECORDINGS / recording, Path(folder, name))
        place = ROOT if in_repository else Path(folder)
        return BLOCK.sub(lambda block: _block(block[1], Path(folder), place), page)


def _block(text: str, folder: Path, place: Path) -> str:
    """One block. Lines that begin with `$ ` are commands; only warpline's own are run."""
    commands = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    lines = [f"$ {command}\n{_output(command, folder, place)}" for command in commands]
    return "```console\n" + "".join(lines) + "```\n"


def _output(command: str, folder: Path, place: Path) -> str:
    verb, *arguments = shlex.split(command, comments=True)
    if verb != "warpline" or "run" in arguments[:1]:
        return ""
    environment = {"COLUMNS": str(WIDTH), "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    out, err = StringIO(), StringIO()
    with chdir(place), patch.dict(os.environ, environment, clear=True), redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
    return out.getvalue() + err.getvalue() + (f"(exit code {code})\n" if code else "")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        file = Path(name)
        page = answered(file.read_text(encoding="utf-8"), in_repository=file.parent.name == "lessons")
        file.write_text(page, encoding="utf-8")
