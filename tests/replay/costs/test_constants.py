"""Numbers of nanoseconds: only in replay/costs, and other ones for another chip."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import kineto_files as files
import pytest
from small_programs import MUL, STEPS, Body, Program

import warpline
from warpline.fixes.registry import question_about
from warpline.replay import WhatIf
from warpline.trace.open import open_trace

SOURCES = Path(warpline.__file__).parent
COSTS = SOURCES / "replay" / "costs"
TIME = re.compile(r"_(NS|US|MS|NANOSECONDS|MICROSECONDS)$|_(ns|us|ms)$")
NUMBER = re.compile(r"_NS *(:[^=]*)?= *[0-9]")
LEAST_TIME = 500.0
"""A smaller number that a time is compared with is a count or a share."""


MODULES = [
    file
    for part in ("replay", "fixes", "findings")
    for file in sorted((SOURCES / part).rglob("*.py"))
    if COSTS not in file.parents
]


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", MODULES)
def test_no_module_but_those_of_costs_holds_a_constant_of_time(file: Path) -> None:
    assert not NUMBER.findall(file.read_text(encoding="utf-8"))
    for node in parsed(file).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            assert not [name for name in names if TIME.search(name)], "a time belongs to HostCosts or DeviceCosts"


@pytest.mark.parametrize("file", MODULES)
def test_no_duration_is_held_against_a_bare_number(file: Path) -> None:
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Compare):
            numbers = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
            names = {
                one.attr if isinstance(one, ast.Attribute) else one.id
                for one in ast.walk(node)
                if isinstance(one, ast.Attribute | ast.Name)
            }
            large = [one for one in numbers if isinstance(one, int | float) and one >= LEAST_TIME]
            assert not (large and names & {"duration", "lag", "measured_end", "saved_ns"}), ast.unparse(node)


BELOW_REPLAY = [file for part in ("analyses", "trace", "ranks") for file in sorted((SOURCES / part).rglob("*.py"))]


@pytest.mark.parametrize("file", BELOW_REPLAY)
def test_a_threshold_of_time_has_its_reason_below_it(file: Path) -> None:
    for node, below in pairwise([*parsed(file).body, None]):
        if isinstance(node, ast.Assign) and re.search(r"_NS = [0-9]|_NS, .* = ", ast.unparse(node)):
            name = ast.unparse(node.targets[0])
            has_reason = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            assert has_reason or name == "MICROSECOND_NS", f"say below {name} why it is this long"


CHIPS = {
    "H200": {
        "name": "NVIDIA H200",
        "computeMajor": 9,
        "computeMinor": 0,
        "numSms": 132,
        "totalGlobalMem": 150_000_000_000,
    },
    "A100": {
        "name": "NVIDIA A100-SXM4-80GB",
        "computeMajor": 8,
        "computeMinor": 0,
        "numSms": 108,
        "totalGlobalMem": 85_000_000_000,
    },
    "L4": {"name": "NVIDIA L4", "computeMajor": 8, "computeMinor": 9, "numSms": 58, "totalGlobalMem": 24_000_000_000},
}
SGEMM = "ampere_sgemm_128x64_nn"


def small_kernels(program: Program) -> None:
    for _ in range(100):
        program.op("aten::mul", (MUL, 2), cpu=30)


def large_product(program: Program) -> None:
    program.op("aten::mm", (SGEMM, 3_000))


def pageable_copy(program: Program) -> None:
    program.copy("HtoD (Pageable -> Device)", 4_000, 40_000_000)


def passes_over_a_tensor(program: Program) -> None:
    for _ in range(3):
        program.op("aten::mul", (MUL, 800), shapes=[[16384, 4096]], dtype="float")


def asked(folder: Path, body: Body, chip: str) -> WhatIf:
    program = Program()
    for _ in range(STEPS):
        with program.step():
            body(program)
            program.wait()
    return question_about(open_trace(files.write(folder, program.events, deviceProperties=[CHIPS[chip]]), cache=False))


@pytest.mark.parametrize(
    ("chip", "fix", "body"),
    [
        ("A100", "cuda_graph", small_kernels),
        ("L4", "tf32", large_product),
        ("A100", "pin_memory", pageable_copy),
        ("L4", "torch_compile", passes_over_a_tensor),
    ],
)
def test_another_chip_gets_other_numbers(tmp_path: Path, chip: str, fix: str, body: Body) -> None:
    ours, other = asked(tmp_path, body, "H200"), asked(tmp_path, body, chip)
    assert other.labelled.device.chip != ours.labelled.device.chip
    assert ours.ask(fix).applies and other.ask(fix).applies
    assert other.ask(fix).new_step_ns != ours.ask(fix).new_step_ns
