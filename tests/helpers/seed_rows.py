"""The rows of docs/seeds.toml: what guides ask for, and the command; docs/seeds.md shows what it prints.

PYTHONPATH=src:tests/helpers python -m seed_rows     runs the commands and writes the page
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from msgspec import Struct, toml
from paths import ROOT, SHARED

from warpline.capture.run_folder import MANIFEST
from warpline.cli.main import run

TABLE, PAGE = ROOT / "docs" / "seeds.toml", ROOT / "docs" / "seeds.md"
FOLDERS = (
    *(ROOT / "tests" / "data" / name for name in ("kineto", "ncu", "nsys", "ladders")),
    ROOT / "faults" / "recordings" / "planted",
    *(SHARED / "h200" / name for name in ("kineto", "nsys", "ncu")),
)
LOGS = {
    "wall.log": "Exportation error: Report was created in Nsight Systems version\n(2025.5.1.121), newer than your current "
    "version (2025.3.2.474).\n",
    "skipped.log": "SKIPPED: trace.sqlite does not contain CUDA trace data.\n",
    "nsys.log": "nsys profile --capture-range=nvtx --nvtx-capture=step -o trace python train.py\nNo reports were generated\n",
}
WIDTH = 110
SHOWN = 2
"""Lines of an answer that the page shows, unless the row chooses some."""


class SeedRow(Struct, frozen=True):
    """One thing that a guide asks for."""

    guide: str
    asked: str
    command: str
    pick: str = ""
    """A regular expression for the lines to show; else the first ones below the title."""
    printed: str = ""
    """For a row that needs a GPU: what it printed there."""
    where: str = ""
    """Empty: runs anywhere; else where it was run and when, or that it never was."""

    @property
    def files(self) -> list[str]:
        """The recordings that the command names."""
        return re.findall(r"[\w./-]+\.(?:json|sqlite|csv)\.(?:gz|xz)", self.command)

    @property
    def is_runnable(self) -> bool:
        """Whether it needs no GPU, and its recordings are here."""
        return not self.where and all(_found(name) for name in self.files)


def rows() -> list[SeedRow]:
    """All rows, in order."""
    return toml.decode(TABLE.read_bytes(), type=dict[str, list[SeedRow]])["row"]


def _found(name: str) -> Path | None:
    return next((folder / name for folder in FOLDERS if (folder / name).is_file()), None)


def output_of(row: SeedRow) -> str:
    """What the command prints now."""
    with tempfile.TemporaryDirectory() as folder:
        for name in dict.fromkeys(row.files):
            found = _found(name)
            assert found is not None
            Path(folder, name).parent.mkdir(exist_ok=True)
            Path(folder, name).symlink_to(found)
            manifest = found.with_name(MANIFEST)  # with the steps timed without the profiler
            if manifest.is_file() and not Path(folder, name).with_name(MANIFEST).exists():
                Path(folder, name).with_name(MANIFEST).symlink_to(manifest)
        for name, text in LOGS.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        for name in ("slow_loop.py", "waits.py"):
            Path(folder, name).symlink_to(ROOT / "docs" / "examples" / name)
        Path(folder, "train.py").write_text("import torch\n", encoding="utf-8")
        environment = {"COLUMNS": str(WIDTH), "HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache"}
        out = StringIO()
        with chdir(folder), patch.dict(os.environ, environment), redirect_stdout(out), redirect_stderr(out):
            run(shlex.split(row.command)[1:])
        # Columns are as wide as the paths of this machine.
        return re.sub(" {3,}", "  ", out.getvalue().replace(folder, "."))


def printed(row: SeedRow) -> str:
    """The lines of the answer that the page shows."""
    if row.where:
        return row.printed
    lines = [line.strip() for line in output_of(row).splitlines() if line.strip()]
    if row.pick:
        return "\n".join(line for line in lines if re.search(row.pick, line))
    return "\n".join(lines[1 : 1 + SHOWN] if len(lines) > 1 else lines)


def line_of(row: SeedRow) -> str:
    """The row as the page has it."""
    shown = "<br>".join(f"`{_cell(line)}`" for line in printed(row).splitlines())
    return f"{start_of(row)}{' '.join(filter(None, (row.where, shown)))} |"


def start_of(row: SeedRow) -> str:
    """The part of the row that stands in the table."""
    return f"| {row.asked} | `{_cell(row.command)}` | "


def page(table: list[SeedRow], lines: list[str]) -> str:
    """docs/seeds.md, with a line for each row."""
    never = sum(row.where.startswith("never") for row in table)
    on_gpu = sum(bool(row.where) for row in table) - never
    text = [
        "# What five profiling guides ask for",
        "",
        "warpline began with five published guides to GPU profiling. Each thing that they tell a reader to do or to look at is a row here, in",
        "our words, with the command that does it and the lines of its answer that matter. The page is written from",
        "`docs/seeds.toml`; a test runs the commands and compares what they print. The stories are the",
        "[lessons](lessons/one_matmul.md).",
        "",
        f"{len(table)} rows: {len(table) - never - on_gpu} are run by the test, {on_gpu} need a GPU and have what they printed there, {never} need "
        "one and were never run.",
        "",
        "`layer_eager`, `block_fp32`, `compiled` and `streams` are in `tests/data/kineto`, `triton` in `tests/data`, the ladders in `tests/data/ladders`, small programs with planted",
        "faults in `faults/recordings/planted`; `bad_training`, `llama_train`, `llama_decode` and the files of nsys and ncu are not in the",
        "repository. All are of an NVIDIA H200.",
    ]
    for guide in dict.fromkeys(row.guide for row in table):
        text += ["", f"## {guide}", "", "| asked for | command | printed |", "|---|---|---|"]
        text += [line for row, line in zip(table, lines, strict=True) if row.guide == guide]
    return "\n".join(text) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")


def written_line(row: SeedRow, text: str) -> str:
    """The row's line on the page as it is; empty if there is none."""
    return next((line for line in text.splitlines() if line.startswith(start_of(row))), "")


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    found = [line_of(row) if row.where or row.is_runnable else written_line(row, before) for row in rows()]
    PAGE.write_text(page(rows(), found), encoding="utf-8")
