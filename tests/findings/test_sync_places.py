"""Waits of the CPU: how long they block, and what the step gets back without them, which is another matter."""

from __future__ import annotations

from typing import Any

from paths import SUITES

from warpline.findings.diagnosis import diagnose
from warpline.trace.open import open_trace

FAULTS = SUITES / "planted"


def waits(case: str, why: bool | None = True) -> list[dict[str, Any]]:
    trace = open_trace(FAULTS / f"{case}.json.gz")
    rows: list[dict[str, Any]] = diagnose(trace, why).to_dict()["syncs"]
    return rows


def test_waits_that_let_the_device_run_dry_give_time_back() -> None:
    (row,) = waits("item_per_layer")
    assert (row["kind"], row["op"], row["call"], row["count"]) == (
        "synchronise",
        "aten::item",
        "cudaStreamSynchronize",
        8,
    )
    assert row["file"].endswith("lab/faults/sync.py")
    assert row["returned_ns"] > 0.3 * row["blocked_ns"]


def test_a_wait_in_a_loop_that_is_late_anyway_gives_next_to_nothing_back() -> None:
    trace = open_trace(FAULTS / "item_in_a_dispatch_bound_loop.json.gz")
    answer = diagnose(trace, why=True).to_dict()
    (row,) = answer["syncs"]
    assert row["op"] == "aten::item"
    assert row["returned_ns"] < 0.02 * answer["replay"]["bare_step_ns"]


def test_a_blocking_copy_and_the_wait_after_it_are_dropped_together() -> None:
    copy, wait = waits("pageable_batch")
    assert (copy["kind"], wait["kind"]) == ("pageable copy", "synchronise")
    assert copy["op"] == wait["op"] == "aten::to"
    assert copy["returned_ns"] == wait["returned_ns"]


def test_without_a_replay_only_the_blocked_time_is_known() -> None:
    rows = waits("item_per_layer", why=False)
    assert {row["returned_ns"] for row in rows} == {None}
    assert rows[0]["blocked_ns"] > 0
