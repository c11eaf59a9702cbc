"""A prediction as sections: the step before and after, its range, and the assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpline.estimate import Estimate
from warpline.findings.doubts import misses_recording
from warpline.findings.model import MEASURE_IT, how_to_measure
from warpline.fixes import registry
from warpline.fixes.words import StepNoun
from warpline.replay.whatif import Prediction
from warpline.reports.sections import Column, Content, Note, Notes, Report, Section, Table, Text, Value
from warpline.units import capitalised, duration, several, speedup

STEP = StepNoun("step")
_TIMES = (
    Column("low_ns", "low", "ns"),
    Column("expected_ns", "expected", "ns"),
    Column("high_ns", "high", "ns"),
)


def report(prediction: Prediction, recording: str = "", noun: StepNoun = STEP) -> Report:
    """One prediction in full, of a step or of a recording without steps."""
    names = " + ".join(fix.name for fix in prediction.fixes)
    sections = [
        Section("answer", "Answer", tuple(_answer(prediction, noun)), is_lead=True),
        Section("step", noun.word.capitalize(), (_steps(prediction, noun),)),
    ]
    for fix in prediction.fixes:
        found = f"{several(fix.changed, 'graph node')} changed" if fix.changed else "nothing to change"
        found = "the steps stay as they are" if prediction.is_outside_steps else found
        content: list[Content] = [Text(fix.summary)]
        content += [Text(f"· {assumption}", "quiet") for assumption in fix.assumptions]
        sections.append(Section(fix.name, f"{fix.name}: {found}", tuple(content)))
    return Report(" · ".join(filter(None, (recording, names))), tuple(sections))


def report_all(predictions: Sequence[Prediction], recording: str, noun: StepNoun) -> Report:
    """Each fix alone, the best first."""
    if not predictions:
        nothing = Text("None of the fixes would change anything in the selected steps.")
        return Report(recording, (Section("fixes", "Fixes", (nothing,), is_lead=True),))
    first = predictions[0]
    length = f"{duration(first.old_step_ns.expected)} ({duration(first.measured_step_ns)} recorded)"
    title = f"{recording} · {noun.word} {length} · replay {first.error_pct:.2f} % off"
    columns = (
        Column("fix", "fix", key=True),
        Column("gain", "gain", "gain"),
        Column("gain_range", "range", "gain", priority=2),
        Column("new_step_ns", noun.new, "ns"),
        Column("finding", "finding", priority=2),
        Column("summary", "what it does"),
    )
    rows = tuple(
        (
            prediction.fixes[0].name,
            MEASURE_IT if prediction.gain.is_wide else prediction.gain.expected,
            prediction.gain,
            None if prediction.gain.is_wide else prediction.new_step_ns.expected,
            "none" if prediction.warnings else "yes",
            prediction.fixes[0].summary,
        )
        for prediction in predictions
    )
    named = {prediction.fixes[0].name for prediction in predictions}
    rest = ", ".join(name for name in registry.all_fixes() if name not in named)
    nothing = Text(f"Would change nothing here, as far as this file shows (--fix NAME says why): {rest}.", "quiet")
    content = (*_misses(first, noun), Table(columns, rows), nothing)
    return Report(title, (Section("fixes", "Fixes, each replayed alone", content),))


def _misses(prediction: Prediction, noun: StepNoun) -> Iterator[Content]:
    if missed := misses_recording(prediction.error_pct / 100, noun):
        text = f"{capitalised(missed)}; warpline diagnose says what is missing."
        yield Notes((Note("warning", "replay-misses", text),))


def _answer(prediction: Prediction, noun: StepNoun) -> Iterator[Content]:
    yield from _misses(prediction, noun)
    speed_up, new = prediction.gain, prediction.new_step_ns
    if prediction.is_outside_steps:
        yield Text(
            f"The step stays at {duration(new.expected)}: the fix removes what is lost once, outside the steps "
            "(warpline diagnose shows how much).",
            "strong",
        )
    elif speed_up.is_wide:
        yield Text(f"{speed_up.speedups}: {MEASURE_IT}.", "strong")
        how = how_to_measure(*(fix.name for fix in prediction.fixes))
        yield Text(f"{capitalised(how)}.")
    else:
        verb = "would" if speed_up.low >= 1.0 else "might"
        old = duration(prediction.old_step_ns.expected)
        yield Text(
            f"{capitalised(noun.one('the'))} {verb} take {duration(new.expected)} instead of {old}: "
            f"{speedup(speed_up.expected)} (range {speed_up.speedups}).",
            "strong",
        )
    if prediction.warnings:
        yield Notes(tuple(Note("warning", "no-finding", text) for text in prediction.warnings))


def _steps(prediction: Prediction, noun: StepNoun) -> Table:
    return Table(
        (Column("step", noun.word, key=True), *_TIMES, Column("source", "source", priority=2)),
        tuple(_rows(prediction, noun)),
    )


def _rows(prediction: Prediction, noun: StepNoun) -> Iterator[tuple[Value, ...]]:
    steps = (
        f"{several(prediction.steps, 'step')}, median" if noun == STEP else "from its first GPU operation to its last"
    )
    yield "as recorded", "", prediction.measured_step_ns, "", steps
    yield "replayed unchanged", "", prediction.replayed_step_ns, "", f"{prediction.error_pct:.2f} % off"
    calm = ", on a calm host" if prediction.on_calm_host else ""
    old_from = f"estimated from the events recorded{calm}" if prediction.bare_is_estimated else "timed by the run"
    yield "without the profiler", *_span(prediction.old_step_ns), old_from
    yield "with the fix", *_span(prediction.new_step_ns), f"without the profiler too{calm}"


def _span(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.low, estimate.expected, estimate.high
