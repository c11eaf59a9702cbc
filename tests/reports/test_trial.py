"""What `warpline try` found, as a report."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from warpline.capture.trial.use import ProgramUse
from warpline.estimate import Estimate
from warpline.reports import html, markdown, terminal
from warpline.reports.trial import trial_report
from warpline.trial.answer import NOT_TRIED, LaterLoss, MemoryPeak, TrialAnswer, TriedFix
from warpline.trial.sameness import Sameness

FASTER = TriedFix(
    "tf32",
    "FP32 matmuls in TF32",
    "torch.set_float32_matmul_precision('high')",
    "tf32",
    applied=True,
    predicted=Estimate(1.5, 2.0, 2.5),
    gain=Estimate(1.9, 2.0, 2.1),
    verdict="faster",
    confirmed=True,
    sameness=Sameness(False, "different, as expected of TF32", 1e-4),
    proof=("TF32 allowed for FP32 matmuls",),
    memory=MemoryPeak(10**9, 10**9),
    later_start_s=5.0,
    pays_after_steps=100,
    loss=LaterLoss(80, 2.5, 2.51234),
    processes=2,
)
PRUNED = TriedFix("channels_last", "", "", why_not="did not apply: the program calls no model with a Conv2d")
BOUND = TriedFix(
    "remove_sync", "", "", applied=True, gain=Estimate(1.0, 1.1, 1.2), verdict="inconclusive", is_bound=True
)


def answer(*rows: TriedFix, best: tuple[str, ...] = (), stopped: str = "") -> TrialAnswer:
    use = ProgramUse(on_gpu=True, writes=["/tmp/out/log.txt"])
    return TrialAnswer(("python",), "AdamW.step()", Estimate(0.09, 0.1, 0.11), 2, 6, 10, rows, best, use, 60.0, stopped)


def text(found: TrialAnswer) -> str:
    return terminal.render(trial_report(found), 140).plain


def test_the_first_line_has_the_best_combination() -> None:
    shown = text(answer(FASTER, PRUNED, best=("tf32",)))
    assert "A step (AdamW.step()) takes 100 ms; with tf32 it takes 50.0 ms: 2.00× (1.90× to 2.10×)." in shown
    assert "5 s later, pays after 100 steps" in shown
    assert "after 80 steps 2.50000 → 2.51234" in shown
    assert "1.50–2.50×" in shown


def test_a_waterfall_leads_to_the_best_combination() -> None:
    both = replace(FASTER, name="tf32+bf16", gain=Estimate(3.9, 4.0, 4.1))
    shown = text(answer(FASTER, both, best=("tf32", "bf16")))
    lines = [line.split() for line in shown.splitlines() if "█" in line or "░" in line]
    assert [(line[0], line[-2]) for line in lines] == [
        ("as", "100"),
        ("tf32", "−50.0"),
        ("bf16", "−25.0"),
        ("best", "25.0"),
    ]
    assert "Each bar is what its fix changes on top of those above it:" in shown
    assert "Each bar" not in text(answer(FASTER, best=("tf32",)))


def test_a_row_that_did_not_apply_says_why() -> None:
    assert "did not apply: the program calls no model with a Conv2d" in text(answer(PRUNED))
    assert "No fix that was tried is known to make it faster." in text(answer(PRUNED))


def test_a_bound_an_early_end_and_files_are_named() -> None:
    shown = text(answer(BOUND, stopped="interrupted"))
    assert "inconclusive (upper bound)" in shown
    assert "Ended early: interrupted" in shown
    assert "/tmp/out/log.txt" in shown


def test_what_more_time_may_decide_is_named() -> None:
    late = TriedFix("no_gc", "", "", why_not=NOT_TRIED)
    assert "Not known yet: remove_sync, no_gc; a larger --budget, or --fix for" in text(
        answer(FASTER, BOUND, late, PRUNED)
    )
    assert "Not known yet" not in text(answer(FASTER, PRUNED))


@pytest.mark.parametrize("render", [markdown.render, lambda report: "".join(map(html.section, report.sections))])
def test_markdown_and_html_have_the_rows(render: object) -> None:
    assert callable(render)
    shown = render(trial_report(answer(FASTER, BOUND, best=("tf32",))))
    assert "tf32" in shown
    assert "inconclusive (upper bound)" in shown


def test_the_json_turns_gains_into_step_times() -> None:
    row = answer(FASTER).to_dict()["tries"][0]
    assert row["measured_ns"] == {"low": round(1e8 / 2.1), "expected": 50_000_000, "high": round(1e8 / 1.9)}
    assert row["predicted_ns"]["expected"] == 50_000_000
    assert row["prediction_held"] is True
    assert row["same_result"] is False
