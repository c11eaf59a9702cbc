"""Which fix was made: each is named by its own mark, and a change without a mark by none."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace
from paths import SUITES

from warpline.analyses.idle.gaps import CAUSES
from warpline.cli.main import run
from warpline.compare.prediction import CALLS, Outcome, applied_fixes
from warpline.estimate import Estimate
from warpline.fixes.registry import all_fixes
from warpline.fixes.step_contents import StepContents
from warpline.sources.local_record import rows
from warpline.sources.record_files import outcomes_file

F32 = "ampere_sgemm_128x64_tn"
TF32 = "cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4"
COPY = "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>()"
BASE = StepContents(
    kernels=Counter({F32: 2, "relu": 4}),
    step_ns=1000.0,
    copy_ns=0.0,
    calls=dict.fromkeys((*CALLS, "waits"), 0.0) | {"launches": 6.0},
    copies={},
    streams=1,
    idle_ns=dict.fromkeys(CAUSES, 0.0),
    cold_steps=0,
)


def changed(calls: dict[str, float] | None = None, idle: dict[str, float] | None = None, **more: Any) -> StepContents:
    return replace(BASE, calls=BASE.calls | (calls or {}), idle_ns=BASE.idle_ns | (idle or {}), **more)


PAGEABLE, PINNED = ("HtoD", "Pageable", "Device"), ("HtoD", "Pinned", "Device")
PAIRS = {
    "cuda_graph": (BASE, changed({"launches": 1.0, "graph_launches": 1.0})),
    "torch_compile": (BASE, changed(kernels=Counter({F32: 2, "triton_poi_fused_mul_silu_0": 1}))),
    "tf32": (BASE, changed(kernels=Counter({TF32: 2, "relu": 4}))),
    "drop_copies": (changed(kernels=BASE.kernels + Counter({COPY: 3})), BASE),
    "pin_memory": (
        changed({"waits": 1.0}, copies={PAGEABLE: (1.0, 1e6)}),
        changed(copies={PINNED: (1.0, 1e6)}),
    ),
    "coalesce_copies": (
        changed({"waits": 40.0}, copies={PAGEABLE: (40.0, 1e6)}),
        changed({"waits": 1.0}, copies={PAGEABLE: (1.0, 1e6)}),
    ),
    "remove_sync": (changed({"waits": 8.0}), changed({"waits": 0.2})),
    "no_empty_cache": (changed({"frees": 3.0, "allocations": 3.0}), BASE),
    "prefetch": (changed(idle={"input": 600.0}), changed(step_ns=400.0)),
    "warm_up": (changed(cold_steps=2), BASE),
    "streams": (BASE, changed(streams=4)),
}


@pytest.mark.parametrize("fix", PAIRS)
def test_a_fix_is_named_by_its_mark(fix: str) -> None:
    assert applied_fixes(*PAIRS[fix]) == (fix,)


def test_no_change_and_an_unmarked_change_are_not_named() -> None:
    assert applied_fixes(BASE, BASE) == ()
    assert applied_fixes(BASE, changed(step_ns=10.0)) == ()
    assert applied_fixes(BASE, changed(kernels=Counter({F32: 2, "relu": 3}))) == ()


def test_the_reverse_of_a_fix_is_not_that_fix() -> None:
    assert {fix: found for fix, (a, b) in PAIRS.items() if fix in (found := applied_fixes(b, a))} == {}


def test_two_fixes_are_both_named() -> None:
    both = changed({"launches": 1.0, "graph_launches": 1.0}, kernels=Counter({TF32: 2, "relu": 4}))
    assert applied_fixes(BASE, both) == ("tf32", "cuda_graph"), "in the order in which they are applied"


def test_every_implied_fix_can_be_recognised() -> None:
    implied = {name for fix in all_fixes().values() for name in fix.implies}
    assert implied <= {name for name, fix in all_fixes().items() if fix.was_made is not None}


@pytest.mark.parametrize(
    ("predicted", "words"),
    [
        (Estimate(1.0, 1.5, 2.9), "timed 2.00×: as predicted."),
        (Estimate(1.0, 1.5, 3.1), "timed 2.00×: within a range wider than 3×, which proves little."),
        (Estimate(1.0, 1.2, 1.9), "timed 2.00×: outside the predicted range."),
    ],
)
def test_only_a_narrow_range_is_a_prediction_that_came_true(predicted: Estimate, words: str) -> None:
    assert Outcome(("tf32",), predicted, 2.0, timed=True, recorded=2.0).sentence.endswith(words)


def test_a_recorded_pair_says_which_prediction_came_true(capsys: pytest.CaptureFixture[str]) -> None:
    before, after = (str(SUITES / "planted" / f"fp32_matmul.{form}.json.gz") for form in ("plain", "fixed"))
    assert run(["compare", before, after]) == 0
    assert "B has tf32: predicted" in " ".join(capsys.readouterr().out.split())
    assert run(["compare", before, after, "--json"]) == 0
    assert rows(outcomes_file(), "select fix, timed from outcomes") == [("tf32", 0)], "the same pair counts once"
