"""The scores on names that were labelled by hand; half of them were never used for tuning."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent
LABELLED = HERE / "labelled.jsonl"


@pytest.fixture(scope="module")
def scorer() -> ModuleType:
    path = HERE.parent.parent / "benchmarks" / "kernel_names.py"
    spec = importlib.util.spec_from_file_location("kernel_names", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_at_least_three_hundred_names_are_labelled_and_half_are_for_testing(scorer: ModuleType) -> None:
    rows = scorer.read(LABELLED)
    assert len(rows) >= 300
    assert 0.4 < sum(row["split"] == "test" for row in rows) / len(rows) < 0.6


@pytest.mark.parametrize("split", ["train", "test"])
def test_class_tensor_cores_and_fields_reach_the_promise(scorer: ModuleType, split: str) -> None:
    rows = [row for row in scorer.read(LABELLED) if row["split"] == split]
    found = scorer.score(rows)["all"]
    said = "\n".join(found.mistakes)
    assert found.right / found.names >= 0.95, said
    assert found.wrong / found.names <= 0.02, said
    assert found.core_right / found.core_judged >= 0.97, said
    assert found.fields_right / found.fields_printed >= 0.97, said
    assert found.fields_printed / found.fields_labelled >= 0.9, said
