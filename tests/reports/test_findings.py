"""Findings as text: gains in a table, then each in words with its places and its code."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, RenderableType

from warpline.estimate import Estimate
from warpline.findings.model import Finding
from warpline.fixes.claim import Place
from warpline.reports.findings import LISTED_FINDINGS, explained, gains, places


def finding(rule: str = "hidden_sync", where: tuple[Place, ...] = ()) -> Finding:
    return Finding(
        rule=rule,
        cause="sync",
        fix="remove_sync",
        claim="The CPU waits in 6 calls a step.",
        lost_ns=1_000_000,
        gain=Estimate(1.4, 1.5, 1.6),
        new_step_ns=Estimate(1_900_000, 2_000_000, 2_100_000),
        confidence="high",
        where=where,
        how="Keep results on the device.",
        verify="record again",
    )


def shown(part: RenderableType, width: int = 100) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(part)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_the_table_has_gain_range_step_confidence_fix_and_rule() -> None:
    (line,) = [line for line in shown(gains([finding()], 100)).splitlines() if "1.50x" in line]
    assert line.split() == ["1.50x", "1.40–1.60", "2.00", "ms", "high", "remove_sync", "hidden_sync"]


def test_words_come_with_claim_place_and_code() -> None:
    text = shown(explained([finding(where=(Place("aten::item", "train.py", 12, 6),))]))
    for part in ("hidden_sync", "The CPU waits in 6 calls a step.", "in train.py:12 aten::item", "Keep results"):
        assert part in text


def test_places_of_one_line_are_said_together_and_ops_without_a_line_alone() -> None:
    where = (Place("a", "train.py", 12, 6), Place("b", "train.py", 12, 3), Place("c", None, None, 1))
    assert places(where) == "in train.py:12 a, b; c"


def test_what_is_left_out_is_counted() -> None:
    text = shown(explained([finding()] * (LISTED_FINDINGS + 2)))
    assert "2 more with --json" in text
