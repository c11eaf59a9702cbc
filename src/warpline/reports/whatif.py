"""A prediction as a terminal report: the step before and after, how sure, and what was assumed."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from warpline.estimate import Estimate
from warpline.replay.whatif import Prediction
from warpline.units import duration


def render(prediction: Prediction, trace: str) -> RenderableType:
    """The whole report."""
    names = " + ".join(fix.name for fix in prediction.fixes)
    parts: list[RenderableType] = [Text(f"{trace} · {names}", style="bold blue"), _sentence(prediction)]
    parts += [Text("\nStep", style="bold"), _times(prediction)]
    for fix in prediction.fixes:
        found = f"{fix.changed:,} things changed" if fix.changed else "found nothing to change"
        parts.append(Text.assemble((f"\n{fix.name}", "bold"), f" · {found}"))
        parts.append(Text(f"  {fix.summary}"))
        parts += [Text(f"  · {assumption}", style="bright_black") for assumption in fix.assumptions]
    return Group(*parts)


def render_all(predictions: list[Prediction], trace: str) -> RenderableType:
    """Each fix alone, the best first."""
    if not predictions:
        return Text("None of the fixes would change anything in the steps in view.")
    first = predictions[0]
    head = Text(
        f"{trace} · step {duration(first.measured_step_ns)} as recorded, "
        f"{duration(first.old_step_ns.expected)} without the profiler; replay {first.error_pct:.2f} % off",
        style="bold blue",
    )
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    table.add_column("fix")
    for column in ("new step", "low", "high", "gain"):
        table.add_column(column, justify="right")
    table.add_column("what it does")
    for prediction in predictions:
        new, fix = prediction.new_step_ns, prediction.fixes[0]
        low, expected, high = _row(new)
        table.add_row(fix.name, expected, low, high, _times_faster(prediction.gain.expected), fix.summary)
    return Group(head, Text(""), table)


def _sentence(prediction: Prediction) -> Text:
    gain, new = prediction.gain, prediction.new_step_ns
    return Text(
        f"The step would take {duration(new.expected)} instead of {duration(prediction.old_step_ns.expected)}: "
        f"{_times_faster(gain.expected)} (range {_times_faster(gain.low)} to {_times_faster(gain.high)})."
    )


def _times_faster(gain: float) -> str:
    return f"{gain:.1f}×" if gain >= 10 else f"{gain:.2f}×"


def _times(prediction: Prediction) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    for _ in range(3):
        table.add_column(justify="right")
    table.add_column()
    table.add_row("", Text("low", style="bold"), Text("expected", style="bold"), Text("high", style="bold"), "")
    table.add_row("as recorded", "", duration(prediction.measured_step_ns), "", f"{prediction.steps} steps, median")
    table.add_row(
        "replayed unchanged", "", duration(prediction.replayed_step_ns), "", f"{prediction.error_pct:.2f} % off"
    )
    table.add_row("without the profiler", *_row(prediction.old_step_ns), "estimated from the events recorded")
    table.add_row("with the fix", *_row(prediction.new_step_ns), "without the profiler too")
    return table


def _row(estimate: Estimate) -> tuple[str, str, str]:
    return duration(estimate.low), duration(estimate.expected), duration(estimate.high)
