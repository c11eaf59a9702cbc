"""The experiments: their shapes, their work, and their run on a CPU where torch is there."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

from warpline.bench import command
from warpline.bench.command import BenchRequest, answer
from warpline.bench.experiments import EXPERIMENTS, prepare, shape_of
from warpline.bench.program import load, names_a_program
from warpline.errors import UsageError, WarplineError

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
SMALL = {
    "matmul": "16x8x4",
    "attention": "1x2x16x8",
    "softmax": "8x16",
    "layernorm": "8x16",
    "add": "64",
    "copy": "64",
    "launch": "1",
}


def test_the_whole_of_bench_needs_nothing_but_the_standard_library_to_load() -> None:
    modules = [
        "warpline.bench",
        *(
            f"warpline.bench.{path.stem}"
            for path in (ROOT / "src/warpline/bench").glob("*.py")
            if path.stem != "tiles"  # imported only where Triton is
        ),
    ]
    heavy = "('polars', 'numpy', 'click', 'rich', 'msgspec', 'torch')"
    program = f"import sys, {', '.join(modules)}; print([name for name in {heavy} if name in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "text", "shape"),
    [
        ("matmul", "4096", (4096, 4096, 4096)),
        ("matmul", "16x8x4", (16, 8, 4)),
        ("matmul", "4K×2K×1K", (4096, 2048, 1024)),
        ("copy", "64M", (64 << 20,)),
        ("attention", "1x2x16x8", (1, 2, 16, 8)),
        ("matmul", None, (4096, 4096, 4096)),
    ],
)
def test_shapes_as_people_write_them(name: str, text: str | None, shape: tuple[int, ...]) -> None:
    assert shape_of(EXPERIMENTS[name], text) == shape


@pytest.mark.parametrize(
    ("name", "text"), [("matmul", "1x2"), ("copy", "x"), ("copy", "0"), ("attention", "64"), ("copy", "1T")]
)
def test_what_is_no_shape(name: str, text: str) -> None:
    with pytest.raises(UsageError, match="bad-shape"):
        shape_of(EXPERIMENTS[name], text)


@needs_torch
def test_work_is_counted_as_on_paper() -> None:
    torch: Any = importlib.import_module("torch")

    def work(name: str, dtype: str) -> tuple[float, float]:
        experiment = EXPERIMENTS[name]
        found = prepare(experiment, torch, shape_of(experiment, SMALL[name]), dtype, "cpu").work
        return found.flops, found.bytes

    # 16x4 times 4x8 in bf16: 2 * 16 * 8 * 4 FLOPs, (64 + 32 + 128) elements of two bytes.
    assert work("matmul", "bf16") == (1024, 448)
    # Two products of 2 * 16 * 16 * 8 in each of two heads; q, k, v and the output of 256 elements each.
    assert work("attention", "fp16") == (16384, 2048)
    assert work("softmax", "fp32") == (0, 1024)
    assert work("layernorm", "fp32") == (0, 1024 + 128)
    assert work("add", "bf16") == (0, 384)
    assert work("copy", "fp32") == (0, 512)


@needs_torch
@pytest.mark.parametrize("name", SMALL)
def test_every_experiment_runs_on_the_cpu_and_says_so(name: str) -> None:
    found = answer(BenchRequest(name, (SMALL[name],), seconds=0.01, device="cpu"))
    (result,) = found.results
    assert result.median_ns > 0
    assert result.clock == "cpu"
    assert result.judgement is not None
    assert "cpu" in {note.code for note in result.notes}
    assert found.exit_code == 0


@needs_torch
def test_a_precision_asked_for_does_not_outlive_the_experiment() -> None:
    torch: Any = importlib.import_module("torch")
    before = torch.get_float32_matmul_precision()
    answer(BenchRequest("matmul", ("16",), ("tf32",), seconds=0.01, device="cpu"))
    assert torch.get_float32_matmul_precision() == before


PROGRAM = """
def inputs():
    return [(1, 2), (3, 4)]

def twice_inputs():
    return 5

def add(a, b):
    return a + b

def twice(a):
    return 2 * a

def alone():
    return 1
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "kernels_of_mine.py"
    path.write_text(PROGRAM)
    return path


def test_a_function_of_a_file_gets_the_inputs_of_its_file(program: Path) -> None:
    assert load(f"{program}:add").inputs == [(1, 2), (3, 4)]
    assert load(f"{program}:twice").inputs == [(5,)]
    assert load(f"{program}:alone").inputs == [()]
    assert names_a_program("a.py:f")
    assert not names_a_program("matmul")


def test_two_functions_of_a_file_are_compared(program: Path) -> None:
    found = answer(BenchRequest(f"{program}:add", against=f"{program}:add", seconds=0.01, device="cpu"))
    assert found.comparison is not None
    assert found.to_dict()["comparison"]["pairs"] == len(found.comparison.ratios)


def test_mistakes_about_a_file_are_named(program: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "bare.py").write_text("def f(x): return x")
    mistakes = {
        f"{program}:nope": "no-function: .* it has inputs, twice_inputs, add, twice, alone",
        f"{program}": "no-function",
        f"{tmp_path}/absent.py:f": "no-such-file",
        f"{tmp_path}/broken.py:f": "program-failed: .*ZeroDivisionError",
        f"{tmp_path}/bare.py:f": "no-inputs: f needs x",
    }
    for text, line in mistakes.items():
        with pytest.raises(WarplineError, match=line):
            load(text)


class _Way:
    """A result with what the sentence reads."""

    def __init__(self, name: str, time_ns: float) -> None:
        self.name, self.median_ns = name, time_ns


def test_the_fastest_way_is_named_beside_the_library() -> None:
    library, good, bad = _Way("cuBLAS, tiles 4096", 200), _Way("tile 128x256", 220), _Way("tile 64x64", 500)
    assert command._fastest([library, good, bad]) == (  # type: ignore[list-item]
        "cuBLAS, tiles 4096 is the fastest of 3; the next, tile 128x256, takes 1.10 times as long; "
        "the slowest, tile 64x64, takes 2.50 times as long"
    )
    assert command._fastest([good, library]).startswith(  # type: ignore[list-item]
        "cuBLAS, tiles 4096 is the fastest of 2: it takes 0.91 times as long as tile 128x256"
    )


@needs_torch
def test_tiles_need_triton_and_a_gpu() -> None:
    with pytest.raises(WarplineError) as error:
        answer(BenchRequest("tiles", ("16",), device="cpu"))
    assert error.value.code in {"no-triton", "no-gpu"}
