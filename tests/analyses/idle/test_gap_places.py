"""What runs in idle gaps, on traces written by hand."""

from __future__ import annotations

from pathlib import Path

from kineto_files import call, frame, kernel, op, write

from warpline.analyses.idle.gap_places import GapPlace, gap_places
from warpline.analyses.idle.gaps import idle_gaps
from warpline.trace.open import open_trace

LOADER = "torch/utils/data/dataloader.py(736): __next__"
ZOOM = "scipy/ndimage/_interpolation.py(700): zoom"


def places(folder: Path, *events: object) -> list[GapPlace]:
    """Two kernels, with a gap of 1,000 µs between them; the second is launched 10 µs before it starts."""
    work = [
        call("cudaLaunchKernel", 0, 5, 1),
        kernel("first", 10, 90, 1),
        call("cudaLaunchKernel", 1090, 5, 2),
        kernel("second", 1100, 100, 2),
    ]
    trace = open_trace(write(folder, [*work, *events]), cache=False)
    (gaps,) = idle_gaps(trace)
    return gap_places(trace, gaps)


def test_the_innermost_function_that_fills_half_of_the_gap(tmp_path: Path) -> None:
    (place,) = places(
        tmp_path,
        frame("train.py(1): <module>", 0, 1200, 1, None),
        frame("train.py(12): train", 1, 1190, 2, 1),
        frame(LOADER, 150, 900, 3, 2),
        frame(ZOOM, 200, 800, 4, 3),
        frame("<built-in function zoom_shift>", 205, 350, 5, 4),
        frame("<built-in function copy>", 560, 350, 6, 4),
    )
    assert (place.cause, place.gaps, place.gap_ns) == ("input", 1, 1_000_000)
    assert abs(place.filled_ns - 800_000) < 10_000
    # The built-in functions fill less than half each.
    assert (place.what, place.called_by, place.file, place.line) == (
        "scipy.ndimage.zoom", "the DataLoader", "train.py", 12,
    )  # fmt: skip


def test_the_users_function_below_a_library_does_not_call_it(tmp_path: Path) -> None:
    """vLLM calls a function of another file: the place is inside the call that fills the gap."""
    (place,) = places(
        tmp_path,
        frame("vllm/model_executor/layers/fused_moe.py(30): moe_forward", 100, 950, 1, None),
        frame("kernels/matmul.py(352): matmul", 200, 400, 2, 1),
    )
    assert (place.called_by, place.function) == (None, "matmul")
    assert place.sentence == "vllm.model_executor.layers.moe_forward (matmul, defined at kernels/matmul.py:352)"


def test_without_frames_the_op_is_named(tmp_path: Path) -> None:
    (place,) = places(tmp_path, op("aten::sort", 120, 900))
    assert (place.what, place.file, place.called_by) == ("aten::sort", None, None)


def test_a_script_whose_calls_are_all_short_says_nothing(tmp_path: Path) -> None:
    parts = [frame(f"train.py({10 + at}): part{at}", 100 + 100 * at, 90, 2 + at, 1) for at in range(9)]
    assert places(tmp_path, frame("train.py(1): <module>", 0, 1200, 1, None), *parts) == []


def test_calls_nested_a_thousand_deep_are_walked(tmp_path: Path) -> None:
    depth = 1500
    deep = [frame(f"lib{at}.py(1): call", at / 100, 1180 - at / 50, at + 1, at or None) for at in range(depth)]
    assert len(places(tmp_path, *deep)) <= 1


def test_a_launch_that_takes_long_fills_the_gap_too(tmp_path: Path) -> None:
    """A launch of 960 µs, which loads code, inside a convolution."""
    events = [
        call("cudaLaunchKernel", 0, 5, 1),
        kernel("first", 10, 90, 1),
        op("aten::cudnn_convolution", 110, 985),
        call("cudaLaunchKernel", 130, 960, 2),
        kernel("second", 1100, 100, 2),
    ]
    trace = open_trace(write(tmp_path, events), cache=False)
    (gaps,) = idle_gaps(trace)
    (place,) = gap_places(trace, gaps)
    assert place.what == "aten::cudnn_convolution"
    assert place.filled_ns > 0.9 * place.gap_ns
