"""Waits of the CPU: how long they block, and what the step gets back without them, which is another matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kineto_files import op, write
from small_programs import GEMM_BF16, H200, MUL, Body, Program, repeated

from warpline.findings.diagnosis import diagnose
from warpline.trace.open import open_trace


def answer_to(folder: Path, body: Body, why: bool | None = True) -> dict[str, Any]:
    """The diagnosis, as JSON, of a program whose every step has this body."""
    path = write(folder, repeated(body).events, **H200)
    return diagnose(open_trace(path, cache=False), why).to_dict()


def read_number(program: Program) -> None:
    """`.item()`: a copy of four bytes, and the wait for it."""
    start = program.now
    program.copy("DtoH (Device -> Pinned)", 1.5, 4)
    program.wait()
    program.events.append(op("aten::item", start, program.now - start))


def number_per_layer(program: Program) -> None:
    """Eight layers of 200 µs on the GPU and 100 µs on the CPU; after each the CPU waits."""
    with program.frame("model.py(12): forward"):
        for _ in range(8):
            program.op("aten::mm", (GEMM_BF16, 200), cpu=100, shapes=[[1024, 1024], [1024, 1024]])
            read_number(program)


def test_waits_that_leave_the_device_idle_give_time_back(tmp_path: Path) -> None:
    (row,) = answer_to(tmp_path, number_per_layer)["syncs"]
    assert (row["kind"], row["op"], row["count"]) == ("synchronise", "aten::item", 8)
    assert (row["call"], row["file"], row["line"]) == ("cudaStreamSynchronize", "model.py", 12)
    # Without the waits the GPU works 8 * 201.5 µs without a pause; the CPU's 100 µs of each layer are hidden.
    assert row["returned_ns"] == pytest.approx(8 * 100_000, rel=0.15)


def test_a_wait_in_a_loop_that_is_late_anyway_gives_nothing_back(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(40):
            program.op("aten::mul", (MUL, 2), cpu=30, shapes=[[64, 64]])
        read_number(program)

    answer = answer_to(tmp_path, body)
    (row,) = answer["syncs"]
    assert row["op"] == "aten::item"
    assert row["returned_ns"] < 0.02 * answer["replay"]["bare_step_ns"]


def test_a_blocking_copy_and_the_wait_after_it_are_dropped_together(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        program.copy("HtoD (Pageable -> Device)", 400, 32 << 20)
        program.op("aten::mm", (GEMM_BF16, 600), cpu=50, shapes=[[4096, 1024], [1024, 4096]])

    copy, wait = answer_to(tmp_path, body)["syncs"]
    assert (copy["kind"], wait["kind"]) == ("pageable copy", "synchronise")
    assert copy["op"] == wait["op"] == "aten::copy_"
    assert copy["returned_ns"] == wait["returned_ns"]


def test_without_a_replay_only_the_blocked_time_is_known(tmp_path: Path) -> None:
    rows = answer_to(tmp_path, number_per_layer, why=False)["syncs"]
    assert {row["returned_ns"] for row in rows} == {None}
    assert rows[0]["blocked_ns"] > 0
