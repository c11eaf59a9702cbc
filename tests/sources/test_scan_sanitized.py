"""scan.c under the address and undefined-behaviour sanitizers; see fuzz_scan.c."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from scan_checks import SOURCE
from scan_samples import GOOD, ILLEGAL, OF_2021, TODAY, in_layouts, trace_of

ROUNDS = int(os.environ.get("WARPLINE_FUZZ_ROUNDS", "1000"))
"""Inputs a build; a few seconds. Raise it for a long run."""
BUILDS = {
    "vector": ["-O1"],
    "portable": ["-O1", "-U__SSE2__", "-U__ARM_NEON"],
    "short limits": ["-O1", "-DEVENT_LIMIT=400", "-DWASTE_LIMIT=1000"],
}


@pytest.mark.parametrize("build", BUILDS)
def test_no_input_reads_or_writes_out_of_bounds(build: str, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler, so the compiled scanner cannot be tested")
    program = tmp_path / "fuzz"
    command = [compiler, "-std=c11", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", *BUILDS[build]]
    harness = Path(__file__).with_name("fuzz_scan.c")
    built = subprocess.run(
        [*command, f'-DSCANNER="{SOURCE}"', str(harness), "-o", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode and ("fsanitize" in built.stderr or "asan" in built.stderr):
        pytest.skip("this compiler has no sanitizers")
    assert built.returncode == 0, built.stderr
    seeds = []
    for index, text in enumerate([TODAY, OF_2021, trace_of(*ILLEGAL, GOOD), *in_layouts(TODAY).values()]):
        seeds.append(tmp_path / f"{index}.json")
        seeds[-1].write_bytes(text[text.index(b"[") + 1 :])
    run = subprocess.run(
        [str(program), str(ROUNDS), "1", *map(str, seeds)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-4000:]
