"""Waits are named as the program wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import Event, call, copy, frame, launched, op, write

from warpline.analyses.syncs import sync_points
from warpline.trace.open import open_trace


def waiting(op_name: str, *frames: str) -> list[Event]:
    """A wait of 30 µs under an op, called through these frames from train.py."""
    events = [frame("train.py(10): step", 0, 1000, 1, None)]
    events += [frame(name, 90 + 2 * n, 100 - 4 * n, 2 + n, 1 + n) for n, name in enumerate(frames)]
    events += [op(op_name, 110, 60, external=1), call("cudaMemcpyAsync", 114, 5, 1)]
    events += [copy("Memcpy DtoH (Device -> Pinned)", 118, 2, 1, 4), call("cudaStreamSynchronize", 120, 30, 2)]
    return [*events, *launched("k", 600, 610, 5, 6)]


def written_of(folder: Path, events: list[Event]) -> list[str | None]:
    trace = open_trace(write(folder, events))
    return sync_points(trace).filter(kind="synchronise")["written"].to_list()


TENSOR = "of Tensor object at 0x7f>"


@pytest.mark.parametrize(
    ("op_name", "frames", "text"),
    [
        ("aten::item", [f"<built-in method item {TENSOR}"], ".item()"),
        ("aten::to", [f"<built-in method tolist {TENSOR}"], ".tolist()"),
        ("aten::to", [f"<built-in method cpu {TENSOR}"], ".cpu()"),
        ("aten::to", ["torch/_tensor.py(1100): __array__"], ".numpy()"),
        ("aten::item", ["<built-in function print>", "torch/_tensor.py(590): __repr__", f"<built-in method item {TENSOR}"], "print or str()"),
        ("aten::nonzero", [f"<built-in method nonzero {TENSOR}"], "nonzero"),
        ("aten::is_nonzero", [], "`if` on a tensor"),
        ("aten::item", [], ".item()"),
        ("aten::unheard_of", [], None),
    ],
)  # fmt: skip
def test_frames_tell_and_else_the_op(op_name: str, frames: list[str], text: str | None, tmp_path: Path) -> None:
    assert written_of(tmp_path, waiting(op_name, *frames)) == [text]


def test_numpy_after_cpu(tmp_path: Path) -> None:
    events = waiting("aten::to", f"<built-in method cpu {TENSOR}")
    assert written_of(tmp_path, [*events, frame(f"<built-in method numpy {TENSOR}", 195, 3, 9, 1)]) == [
        ".cpu().numpy()"
    ]
    assert written_of(tmp_path, [*events, frame("<built-in function len>", 195, 3, 9, 1)]) == [".cpu()"]


def test_a_bare_wait_is_named_by_its_call(tmp_path: Path) -> None:
    events = [call("cudaDeviceSynchronize", 10, 20, 1), *launched("k", 600, 610, 5, 6)]
    assert written_of(tmp_path, events) == ["torch.cuda.synchronize()"]


def test_without_ops_a_wait_for_a_stream_may_be_any_read(tmp_path: Path) -> None:
    """`.item()`, `.cpu()` and stream.synchronize() all wait in that call."""
    events = [call("cudaStreamSynchronize", 10, 20, 1), *launched("k", 600, 610, 5, 6)]
    assert written_of(tmp_path, events) == [None]
    assert written_of(tmp_path, [*events, op("aten::add", 500, 5)]) == ["stream.synchronize()"]
