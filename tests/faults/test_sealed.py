"""The programs of five suites on real models at toy sizes on a CPU, which stands in for the GPU."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

from faults.programs import SUITES, Case, Step, clinic, harbour, sealed, unseen, ward
from faults.programs.sealed import parts

VARIANTS = [
    (case, fix)
    for case in sealed.CASES
    for fix in (None, *dict.fromkeys(fix for fix in (case.fix, *case.also, case.innocent) if fix))
]
SAME_RESULT = [*unseen.CASES, *clinic.CASES, *ward.CASES, *harbour.CASES]


def on_the_cpu(value: Any) -> Any:
    return "cpu" if value == "cuda" else value


class NoStream:
    """A stream on which nothing runs."""

    def wait_stream(self, other: object) -> None:
        """There is nothing to wait for."""


@pytest.fixture
def cpu_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """torch in which "cuda" is the CPU, and what needs a GPU does nothing."""
    torch: Any = pytest.importorskip("torch")

    class Elsewhere(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if getattr(function, "__name__", "") == "pin_memory":
                return args[0]
            args = tuple(on_the_cpu(value) if isinstance(value, str) else value for value in args)
            kwargs = {
                name: on_the_cpu(value) if isinstance(value, str) else value for name, value in (kwargs or {}).items()
            }
            return function(*args, **kwargs)

    def same(torch: Any, function: Any) -> Any:
        return function

    move, autocast = torch.nn.Module.to, torch.autocast
    monkeypatch.setenv(parts.SMALL, "1")
    monkeypatch.setattr(
        torch.nn.Module, "to", lambda self, *args, **kwargs: move(self, *(map(on_the_cpu, args)), **kwargs)
    )
    monkeypatch.setattr(
        torch, "autocast", lambda device_type, *args, **kwargs: autocast(on_the_cpu(device_type), *args, **kwargs)
    )
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda self, stream: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "Stream", NoStream)
    monkeypatch.setattr(torch.cuda, "stream", contextlib.nullcontext)
    monkeypatch.setattr(torch.cuda, "current_stream", NoStream)
    for suite in (sealed, unseen, clinic, ward, harbour):
        for module in (suite.dispatch, suite.healthy):
            monkeypatch.setattr(module, "graphed", same)
    for suite in (sealed, unseen, ward):
        monkeypatch.setattr(suite.kernels, "compiled", same)
    with Elsewhere():
        yield torch


@pytest.mark.parametrize(
    ("suite", "faulty", "healthy", "traps"),
    [("sealed", 16, 6, 2), ("unseen", 10, 3, 1), ("clinic", 18, 6, 2), ("ward", 18, 4, 2), ("harbour", 16, 6, 2)],
)
def test_a_suite_has_faulty_cases_healthy_ones_and_traps(suite: str, faulty: int, healthy: int, traps: int) -> None:
    cases = SUITES[suite]
    assert sum(case.fix is not None for case in cases) == faulty
    assert sorted(case.trap for case in cases if case.fix is None) == [False] * healthy + [True] * traps


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.parametrize(("case", "fix"), VARIANTS, ids=[f"{case.name}-{fix}" for case, fix in VARIANTS])
def test_every_variant_runs_at_toy_size(cpu_for_a_gpu: Any, case: Case, fix: str | None) -> None:
    step = case.fixed(fix) if fix else case.faulty()
    assert any(line.function for line in case.planted_lines()) == (case.fix is not None)
    for _ in range(3):
        step()


def built(case: Case, fix: str | None) -> Step:
    try:
        return case.fixed(fix) if fix else case.faulty()
    except ModuleNotFoundError as missing:
        if missing.name != "transformers":
            raise
        pytest.skip("transformers is not installed")


@pytest.mark.parametrize("case", SAME_RESULT, ids=[case.name for case in SAME_RESULT])
def test_a_fix_leaves_the_result_as_it_is(cpu_for_a_gpu: Any, case: Case) -> None:
    torch = cpu_for_a_gpu
    assert any(line.function for line in case.planted_lines()) == (case.fix is not None)
    results = []
    for fix in dict.fromkeys((None, *(fix for fix in (case.fix, *case.also, case.innocent) if fix))):
        step = built(case, fix)
        torch.manual_seed(1)
        results.append([torch.as_tensor(step()).double().clone() for _ in range(3)])
    for other in results[1:]:
        for ours, first in zip(other, results[0], strict=True):  # torch.testing would load torch's distributed tensors
            numpy.testing.assert_allclose(ours.detach(), first.detach(), rtol=0.02, atol=0.02)
