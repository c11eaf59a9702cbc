"""The compiled parts under sanitizers: nesting and replay against their definitions, the scanner on several threads.

WARPLINE_FUZZ_ROUNDS sets how many rounds each takes; tests/sources/test_scan_sanitized.py feeds the scanner damaged text.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from paths import ROOT
from scan_samples import GOOD, ILLEGAL, OF_2021, TODAY, in_layouts, trace_of

SOURCES = ROOT / "src" / "warpline"
NATIVE = Path(__file__).with_name("native")
ROUNDS = int(os.environ.get("WARPLINE_FUZZ_ROUNDS", "600"))
THREADED_ROUNDS = ROUNDS // 10
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


def run(program: Path, rounds: int, *more: str) -> None:
    done = subprocess.run([str(program), str(rounds), SEED, *more], capture_output=True, text=True, check=False)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the thread sanitizer does not run on this kernel")
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == f"{rounds} rounds\n"


def test_nesting_and_replay_keep_to_their_arrays_and_definitions(tmp_path: Path) -> None:
    nest, simulate = SOURCES / "trace" / "nest.c", SOURCES / "replay" / "simulate.c"
    run(built(tmp_path, "fuzz_nest.c", "address,undefined", f'-DNEST="{nest}"', f'-DSIMULATE="{simulate}"'), ROUNDS)


def test_scanners_on_several_threads_share_nothing(tmp_path: Path) -> None:
    scanner = SOURCES / "sources" / "kineto" / "scan.c"
    program = built(tmp_path, "race_scan.c", "thread", f'-DSCANNER="{scanner}"')
    texts = [TODAY, OF_2021, trace_of(*ILLEGAL, GOOD), trace_of(*[GOOD] * 90), *in_layouts(TODAY).values()]
    files = [tmp_path / f"{number}.json" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text[text.index(b"[") + 1 :])
    run(program, THREADED_ROUNDS, *map(str, files))
