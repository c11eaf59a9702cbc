"""Findings as sections: the best fixes with their gains and places, and each in words with its code."""

from __future__ import annotations

from msgspec.structs import replace

from warpline.estimate import Estimate
from warpline.findings.limits import Limit, Limits
from warpline.findings.model import Finding, Verdict
from warpline.fixes.claim import Place
from warpline.fixes.words import StepNoun
from warpline.reports.findings import (
    BRIEF_ADVICE,
    all_fixes,
    best_fixes,
    brief_advice,
    explained,
    first_place,
    in_order,
    places,
    small_limits,
    worth_showing,
)

STEP = StepNoun("step")


def finding(fix: str = "remove_sync", gain: float = 1.5, where: tuple[Place, ...] = ()) -> Finding:
    return Finding(
        rule="hidden_sync",
        cause="sync",
        fix=fix,
        words=fix,
        claim="The CPU waits in 6 calls a step.",
        lost_ns=1_000_000,
        evidence_ns=1_000_000,
        gain=Estimate(gain - 0.1, gain, gain + 0.1),
        new_step_ns=Estimate(1_900_000, 2_000_000, 2_100_000),
        confidence="high",
        where=where,
        how="Keep results on the device.",
        verify="record again",
    )


def test_the_table_has_fix_gain_range_step_and_place() -> None:
    found = [finding(where=(Place("aten::item", "train.py", 12, 6, "step", "call"),))]
    table = best_fixes(found, found, STEP)
    assert table.rows == (("remove_sync", 1.5, Estimate(1.4, 1.5, 1.6), 2_000_000, "train.py:12"),)
    assert table.columns[table.key].name == "fix"
    assert table.hidden_note == ""


def test_a_recording_without_steps_has_a_new_time() -> None:
    for noun, title in (("step", "new step"), ("recording", "new time")):
        table = all_fixes([finding()], StepNoun(noun))
        assert [column.title for column in table.columns if column.name == "new_step_ns"] == [title]


def test_fixes_that_are_not_shown_are_counted_apart_from_the_small_ones() -> None:
    found = [finding(gain=gain) for gain in (1.5, 1.4, 1.3, 1.2, 1.02, 1.01, 1.0)]
    table = best_fixes(found[:3], found, STEP)
    assert [row[1] for row in table.rows] == [1.5, 1.4, 1.3]
    assert table.hidden == 4
    assert table.hidden_note == "hidden: 2 more fixes and 2 fixes under 2 %; use -v to see all"


def test_fixes_under_two_percent_are_no_table_but_can_be_asked_for() -> None:
    small = [finding(gain=1.01)]
    assert worth_showing(small) == []
    assert len(all_fixes(small, STEP).rows) == 1


def test_the_fix_of_the_verdict_comes_first_and_then_the_largest_gain() -> None:
    found = [finding("torch_compile", 1.7), finding("remove_sync", 1.4), finding("cuda_graph", 1.8)]
    verdict = Verdict("sync", "remove_sync", "", found[0].gain, None)
    assert [one.fix for one in in_order(found, verdict)] == ["remove_sync", "cuda_graph", "torch_compile"]


def test_words_come_with_claim_place_and_code() -> None:
    (entry,) = explained([finding(where=(Place("aten::item", "train.py", 12, 6, "step", "call"),))]).entries
    assert entry.name == "hidden_sync → remove_sync"
    assert entry.text == "The CPU waits in 6 calls a step."
    assert entry.where == "in train.py:12 aten::item"
    assert entry.how == "Keep results on the device."


def test_places_of_one_line_are_said_together_and_ops_without_a_line_alone() -> None:
    where = (
        Place("a", "train.py", 12, 6, "step", "call"),
        Place("b", "train.py", 12, 3, "step", "call"),
        Place("c", None, None, 1),
    )
    assert places(where) == "in train.py:12 a, b; c"
    assert first_place(where) == "train.py:12 and 1 more"
    defined = Place("a", "src/models/gpt.py", 7, 1, "forward", "definition")
    assert places([defined]) == "in forward, defined at src/models/gpt.py:7: a"
    assert first_place([defined], brief=True) == "forward()"
    assert first_place((Place("a", "src/models/gpt.py", 7, 1, "step", "call"),)) == "src/models/gpt.py:7"
    assert first_place((Place("a", "src/models/gpt.py", 7, 1, "step", "call"),), brief=True) == "gpt.py:7"
    assert first_place((Place("a/b", None, None, 1),), brief=True) == "a/b"
    assert places(()) == ""
    assert first_place(()) is None


def test_long_advice_is_cut_after_a_sentence_or_a_word() -> None:
    assert brief_advice("Pin it.") == "Pin it."
    sentence = "Capture the step " + "again and " * 10 + "again."
    assert brief_advice(f"{sentence} {'More. ' * 40}").startswith(sentence)
    cut = brief_advice("word " * 100)
    assert cut.endswith("word … (-v)")
    assert len(cut) <= BRIEF_ADVICE + len(" … (-v)")


def test_a_gain_that_is_not_known_within_a_factor_of_three_must_be_measured() -> None:
    """3.3 ms become 1 ms, or 0.5 to 1.5 ms; or, with a wider range of the gain, perhaps nothing."""
    vague = replace(
        finding(gain=3.3), gain=Estimate(2.2, 3.3, 6.6), new_step_ns=Estimate(500_000, 1_000_000, 1_500_000)
    )
    unknown = replace(vague, fix="batch", gain=Estimate(0.9, 3.3, 12.0))
    healthy = Verdict("healthy", None, "", Estimate(1.0, 1.0, 1.0), None)
    found = in_order([unknown, vague], healthy)
    table = best_fixes(found, found, STEP)
    assert [row[:4] for row in table.rows] == [
        ("batch", "measure it", Estimate(0.9, 3.3, 12.0), None),
        ("remove_sync", 3.3, Estimate(2.2, 3.3, 6.6), 1_000_000),
    ]


def test_what_was_replayed_and_gives_nothing_is_named() -> None:
    def limit(cause: str, gain: float) -> Limit:
        return Limit(cause, Estimate(1e6, 1e6, 1e6), Estimate(gain, gain, gain), 0)

    found = Limits((limit("dispatch", 1.5), limit("sync", 1.0), limit("comm", 1.0)), 1.5, False)
    assert small_limits(found, 1e6, STEP, has_collectives=True) == (
        "Replayed too, less than 1 % each: no waits for the GPU; collectives that take no time."
    )
    assert small_limits(found, 1e6, STEP, has_collectives=False) == (
        "Replayed too, less than 1 % each: no waits for the GPU. The step has no collective (NCCL)."
    )
