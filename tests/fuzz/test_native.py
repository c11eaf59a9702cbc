"""The compiled parts under sanitizers: nesting and replay against their definitions.

WARPLINE_FUZZ_ROUNDS sets how many rounds each takes; tests/sources/test_scan_sanitized.py feeds the scanner damaged text.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from paths import ROOT

SOURCES = ROOT / "src" / "warpline"
NATIVE = Path(__file__).with_name("native")
ROUNDS = int(os.environ.get("WARPLINE_FUZZ_ROUNDS", "600"))
SEED = "1"


def built(folder: Path, source: str, sanitizer: str, *flags: str) -> Path:
    """The program; the test is skipped where there is no compiler or no such sanitizer."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    program = folder / "program"
    command = [
        compiler,
        "-std=c11",
        "-g",
        "-O1",
        "-Wall",
        "-Wextra",
        f"-fsanitize={sanitizer}",
        "-fno-sanitize-recover=all",
    ]
    made = subprocess.run(
        [*command, *flags, str(NATIVE / source), "-o", str(program), "-lm", "-pthread"],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode and ("fsanitize" in made.stderr or "san" in made.stderr):
        pytest.skip("this compiler has no sanitizers")
    assert made.returncode == 0, made.stderr
    return program


def run(program: Path, rounds: int) -> None:
    done = subprocess.run([str(program), str(rounds), SEED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == f"{rounds} rounds\n"


def test_nesting_and_replay_keep_to_their_arrays_and_definitions(tmp_path: Path) -> None:
    nest, simulate = SOURCES / "trace" / "nest.c", SOURCES / "replay" / "simulate.c"
    run(built(tmp_path, "fuzz_nest.c", "address,undefined", f'-DNEST="{nest}"', f'-DSIMULATE="{simulate}"'), ROUNDS)
