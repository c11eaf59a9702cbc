"""What a finding tells this very program to write, and that it says no more than the trace shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from kineto_files import op
from small_programs import GEMM_BF16, MUL, Body, Program, judged

from warpline.fixes import prefetch
from warpline.fixes.claim import Place
from warpline.fixes.registry import rules


def advice(folder: Path, body: Body) -> dict[str, str]:
    """What each finding of the program says under `how`."""
    return {finding.rule: finding.how for finding in judged(folder, body).findings}


def general(rule: str) -> str:
    (how,) = [one.advice.pytorch for one in rules() if one.name == rule]
    return how


def wait_in(program: Program, name: str) -> None:
    start = program.now
    program.wait()
    program.events.append(op(name, start, program.now - start))


def test_each_kind_of_wait_has_its_own_replacement_in_its_own_function(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        with program.frame("train.py(12): fit") as fit:
            for name in ("aten::item", "aten::item", "aten::index"):
                program.op("aten::mm", (GEMM_BF16, 40), cpu=30)
                wait_in(program, name)
            with program.frame("metrics.py(3): count", fit):
                program.op("aten::mm", (GEMM_BF16, 40), cpu=30)
                wait_in(program, "aten::nonzero")

    how = advice(tmp_path, body)["hidden_sync"]
    said = "in fit, defined at train.py:12: total += loss.detach(), and total.item() every n-th step; torch.where(mask"
    assert said in how
    assert "in count, defined at metrics.py:3: the mask itself instead of nonzero." in how
    assert "`if`" not in how
    assert "synchronize" not in how


def test_lists_that_become_tensors_again_and_again_are_to_become_one_once(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(4):
            program.op("aten::mm", (GEMM_BF16, 40), cpu=30)
            program.python(40)
            program.op("aten::empty", cpu=1)
            program.python(30)
            program.copy("HtoD (Pageable -> Device)", 1, 3072)
            program.op("aten::lift_fresh", cpu=0.1)

    how = advice(tmp_path, body)["hidden_sync"]
    assert "Create tensors from Python numbers once, on the device" in how


def test_without_frames_no_function_is_named(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(4):
            program.op("aten::mm", (GEMM_BF16, 40), cpu=30)
            wait_in(program, "aten::item")

    how = advice(tmp_path, body)["hidden_sync"]
    assert how.startswith("Avoid waiting: total += loss.detach()")


def test_an_unknown_wait_gets_the_general_advice(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(4):
            program.op("aten::mm", (GEMM_BF16, 40), cpu=30)
            wait_in(program, "my::op")

    assert advice(tmp_path, body)["hidden_sync"] == general("hidden_sync")


UP, DOWN = "HtoD (Pageable -> Device)", "DtoH (Device -> Pageable)"


@pytest.mark.parametrize(
    ("kinds", "said", "unsaid"),
    [((UP,), "DataLoader", "torch.empty"), ((DOWN,), "torch.empty", "DataLoader"), ((UP, DOWN), "torch.empty", "…;")],
    ids=["up", "down", "both"],
)
def test_pinning_is_told_for_the_direction_of_the_copies(
    kinds: tuple[str, ...], said: str, unsaid: str, tmp_path: Path
) -> None:
    def body(program: Program) -> None:
        with program.frame("train.py(12): fit"):
            for kind in kinds:
                program.copy(kind, 3000, 32 << 20)
            program.large_product(500)

    how = advice(tmp_path, body)["pageable_copy"]
    assert said in how
    assert unsaid not in how
    assert how.count("in fit, defined at train.py:12") == len(kinds)


@pytest.mark.parametrize(
    ("optimizer", "said"),
    [
        ("SGD", "torch.optim.SGD(…, fused=True), without foreach=False"),
        ("RMSprop", "torch.optim has no fused RMSprop: step = torch.compile(optimizer.step)"),
    ],
)
def test_the_optimizer_is_the_one_whose_range_was_recorded(optimizer: str, said: str, tmp_path: Path) -> None:
    def body(program: Program) -> None:
        with program.range(f"Optimizer.step#{optimizer}.step"):
            for _ in range(56):
                program.op("aten::mul_", (MUL, 1), cpu=12)
        program.wait()

    assert advice(tmp_path, body)["per_parameter_optimizer"].startswith(said)


def test_the_place_of_an_optimizer_is_where_it_is_constructed(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        with program.range("Optimizer.step#Adam.step"):
            for _ in range(56):
                program.op("aten::mul_", (MUL, 1), cpu=12)
        program.wait()

    made = [
        {"class": name, "file": "train.py", "line": line, "function": "main"}
        for name, line in (("Adam", 31), ("SGD", 32))
    ]
    for file in ("trace.json", "trace.json.gz"):
        entry = {"file": file, "optimizers": made}
        (tmp_path / "manifest.json").write_text(json.dumps({"traces": [entry]}))
        found = judged(tmp_path, body)
        if found.evidence.trace.file.name == file:
            break
    (finding,) = [one for one in found.findings if one.rule == "per_parameter_optimizer"]
    assert [(place.op, place.spot) for place in finding.where] == [("Adam", "train.py:31")]


def test_an_optimizer_without_a_name_gets_the_general_advice(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        with program.range("Optimizer.step"):
            for _ in range(56):
                program.op("aten::mul_", (MUL, 1), cpu=12)
        program.wait()

    assert advice(tmp_path, body)["per_parameter_optimizer"] == general("per_parameter_optimizer")


def load(program: Program, iterator: str | None = None) -> None:
    """A batch: a DataLoader's iterator, or a read in the loop, that takes three milliseconds in a function."""
    with (
        program.frame("train.py(12): fit") as fit,
        program.frame("torch/utils/data/dataloader.py(736): __next__", fit) as get,
    ):
        program.python(10)
        if iterator is None:
            with program.frame("photos.py(7): __getitem__", get):
                program.python(3000)
        else:
            name = f"enumerate(DataLoader)#{iterator}.__next__"
            with program.range(name), program.frame("photos.py(7): __getitem__", get):
                program.python(3000)
    program.copy("HtoD (Pinned -> Device)", 10, 1 << 16)
    program.large_product(500)
    program.wait()


@pytest.mark.parametrize(
    ("iterator", "said"),
    [
        (
            "_SingleProcessDataLoaderIter",
            "has no workers: it loads in the loop's own process, most of it in __getitem__, defined at photos.py:7",
        ),
        ("_MultiProcessingDataLoaderIter", "too few workers, or they are too slow"),
        (None, "DataLoader blocks the loop in __getitem__, defined at photos.py:7. "),
    ],
)
def test_the_loader_is_described_as_it_was_seen(iterator: str | None, said: str, tmp_path: Path) -> None:
    how = advice(tmp_path, lambda program: load(program, iterator))["slow_input"]
    assert said in how
    assert how.endswith(general("slow_input"))


@pytest.mark.parametrize(
    ("loading", "said"),
    [
        (2000, r"assumes 7 workers, which hide all loading\."),
        (20_000, r"assumes 7 workers, which load a batch in 2\.8\d ms; about 1\d would hide all loading\."),
    ],
)
def test_the_advice_says_how_many_workers_it_counts_on(loading: float, said: str, tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.python(loading)
        program.copy("HtoD (Pinned -> Device)", 10, 1 << 16)
        program.large_product(500)
        program.wait()

    assert re.search(said, advice(tmp_path, body)["slow_input"])


def launches(program: Program) -> None:
    for _ in range(30):
        program.op("aten::mm", (GEMM_BF16, 2), cpu=20)


def test_the_outermost_module_that_launches_most_is_named(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        with program.frame("nn.Module: Network_0") as outer:
            program.python(1)
            with program.frame("nn.Module: Block_3", outer):
                launches(program)
        program.op("aten::mm", (GEMM_BF16, 2), cpu=20)

    assert advice(tmp_path, body)["launch_bound"].startswith("Most operations are launched by the module Network. ")


def test_without_a_module_the_function_is_named(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        with program.frame("train.py(12): fit") as fit:
            launches(program)
            with program.frame("nn.Module: Head_0", fit):
                program.op("aten::mm", (GEMM_BF16, 2), cpu=20)

    assert advice(tmp_path, body)["launch_bound"].startswith("Most operations are launched by fit (train.py:12). ")


def test_without_frames_nobody_is_named(tmp_path: Path) -> None:
    assert advice(tmp_path, launches)["launch_bound"] == general("launch_bound")


def test_a_function_that_loads_is_named_once() -> None:
    place = Place("run_on_input", "fuzz.py", 3, 1, "run_on_input", "definition")
    assert prefetch._blocking(place) == "run_on_input, defined at fuzz.py:3 blocks the loop. "
    assert prefetch._blocking(Place("open", "train.py", 7, 1, "load", "call")) == "open blocks the loop in train.py:7. "
