"""The difference between two steps on paper: what was fused, replaced, moved, new and gone, and the exact sum."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kineto_files import Event, annotation, launched, write

from warpline.analyses.idle.gaps import CAUSES
from warpline.compare.parts import StepPart, explain
from warpline.compare.typical_step import Operation, TypicalStep, typical_step
from warpline.intervals import Spans
from warpline.trace.open import open_trace

SILU = "void at::native::vectorized_elementwise_kernel<4, at::native::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}>(int)"
MUL = "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>>(int)"
FUSED = "triton_poi_fused_mul_silu_0"
GEMM = "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_TNT"
OTHER_GEMM = "nvjet_sm90_hsh_192x192_64x4_2x1_v_bz_coopB_TNN"
NORM = "void layer_norm_kernel<float>(int)"


def step(names: list[str], times: list[float], idle: float = 0.0, kinds: list[str] | None = None) -> TypicalStep:
    each = zip(kinds or ["kernel"] * len(names), names, strict=True)
    kernels = tuple(Operation(kind, name, "", (1, 1, 1)) for kind, name in each)
    whole = sum(times) + idle
    return TypicalStep(
        kernels,
        np.array(times, float),
        {cause: idle if cause == "dispatch" else 0.0 for cause in CAUSES},
        Spans(np.array([0]), np.array([round(whole)])),
        1,
        whole,
        0,
        "profiler_step",
    )


def by_kind(parts: Sequence[StepPart]) -> dict[str, StepPart]:
    return {part.kind: part for part in parts}


def test_two_kernels_that_became_one_are_named_together() -> None:
    a = step([GEMM, SILU, MUL, GEMM], [100, 20, 10, 100])
    b = step([GEMM, FUSED, GEMM], [100, 12, 101])
    found = explain(a, b)
    parts, unexplained = found.parts, found.unexplained_ns
    fused = by_kind(parts)["fused"]
    assert (fused.a_count, fused.b_count, fused.a_ns, fused.b_ns) == (2, 1, 30, 12)
    assert fused.name.endswith(f"→ {FUSED}")
    assert by_kind(parts)["same"].change_ns == 1
    assert unexplained == 0


def test_kernels_of_a_fused_name_are_found_among_others() -> None:
    a = step([GEMM, NORM, SILU, MUL, GEMM], [100, 50, 20, 10, 100])
    b = step([GEMM, "triton_red_fused_native_layer_norm_1", FUSED, GEMM], [100, 30, 12, 100])
    parts = explain(a, b).parts
    assert (by_kind(parts)["fused"].a_ns, by_kind(parts)["fused"].b_ns) == (30, 12)
    assert (by_kind(parts)["replaced"].a_ns, by_kind(parts)["replaced"].b_ns) == (50, 30)


def test_another_matrix_kernel_for_the_same_job_is_a_variant() -> None:
    parts = explain(step([NORM, GEMM, SILU], [5, 100, 5]), step([NORM, OTHER_GEMM, SILU], [5, 80, 5])).parts
    variant = by_kind(parts)["variant"]
    assert (variant.a, variant.b, variant.change_ns) == ((GEMM,), (OTHER_GEMM,), -20)


@pytest.mark.parametrize(
    ("a", "b", "name"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (pageable → pinned)"),
        ("Memcpy DtoH (Device -> Pageable)", "Memcpy DtoH (Device -> Pinned)", "Memcpy DtoH (pageable → pinned)"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
    ],
)
def test_a_copy_that_differs_in_its_memory_names_both_kinds(a: str, b: str, name: str) -> None:
    parts = explain(
        step([GEMM, a], [100, 50], kinds=["kernel", "memcpy"]), step([GEMM, b], [100, 10], kinds=["kernel", "memcpy"])
    ).parts
    assert (parts[0].name, parts[0].change_ns, parts[0].is_copy) == (name, -40, True)
    assert not parts[1].is_copy


def test_a_kernel_that_moved_is_the_same_kernel() -> None:
    parts = explain(step([SILU, GEMM, NORM], [7, 100, 5]), step([GEMM, NORM, SILU], [100, 5, 9])).parts
    assert {part.kind for part in parts} == {"same"}
    assert sum(part.change_ns for part in parts) == 2


def test_new_gone_and_idle() -> None:
    parts = explain(step([GEMM, SILU], [100, 7], idle=50), step([NORM, GEMM], [5, 100], idle=10)).parts
    assert (by_kind(parts)["new"].b_ns, by_kind(parts)["gone"].a_ns, by_kind(parts)["idle"].change_ns) == (5, 7, -40)


def test_a_step_compared_with_itself_changes_nowhere() -> None:
    same = step([GEMM, SILU, MUL], [100, 20, 10], idle=5)
    found = explain(same, same)
    parts, unexplained = found.parts, found.unexplained_ns
    assert [part.change_ns for part in parts] == [0] * len(parts)
    assert unexplained == 0


NAMES = st.lists(st.sampled_from([GEMM, OTHER_GEMM, SILU, MUL, FUSED, NORM]), max_size=8)


@given(NAMES, NAMES, st.floats(0, 1e6), st.floats(0, 1e6), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_parts_sum_to_the_difference_of_the_steps(left: list[str], right: list[str], x: float, y: float, draw) -> None:  # type: ignore[no-untyped-def]
    a = step(left, [draw.random() * 1e4 for _ in left], x)
    b = step(right, [draw.random() * 1e4 for _ in right], y)
    found = explain(a, b)
    parts, unexplained = found.parts, found.unexplained_ns
    assert sum(part.change_ns for part in parts) + unexplained == round(b.step_ns) - round(a.step_ns)
    assert sum(part.a_ns for part in parts) == pytest.approx(a.step_ns, abs=1)


def three_steps(slow: float) -> list[Event]:
    """Steps of 100 µs: a kernel of 40 µs, and after 20 µs of idleness one of 30; the last step takes longer."""
    events: list[Event] = []
    for number in range(3):
        zero, late = number * 200, slow if number == 2 else 0
        events += [
            annotation(f"ProfilerStep#{number}", zero, 100 + late),
            *launched("gemm", zero, zero + 5, 40, 10 * number + 1),
            *launched("silu", zero + 60, zero + 65, 30 + late, 10 * number + 2),
        ]
    return events


def test_a_typical_step_leaves_out_a_slow_one_and_sums_exactly(tmp_path: Path) -> None:
    found = typical_step(open_trace(write(tmp_path, three_steps(0))))
    assert [one.name for one in found.operations] == ["gemm", "silu"]
    assert found.exposed_ns.tolist() == [40_000, 30_000]
    assert found.step_ns == 100_000 == found.exposed_ns.sum() + sum(found.idle_ns.values())
    assert found.averaged == 3


def test_kernels_that_run_at_once_are_charged_once(tmp_path: Path) -> None:
    events = [
        annotation("ProfilerStep#1", 0, 100),
        *launched("gemm", 0, 10, 40, 1),  # 10..50
        *launched("silu", 5, 30, 40, 2, stream=8),  # 30..70, of which 50..70 are its own
    ]
    found = typical_step(open_trace(write(tmp_path, events)))
    assert found.exposed_ns.tolist() == [40_000, 20_000]
    assert found.exposed_ns.sum() + sum(found.idle_ns.values()) == found.step_ns == 100_000
