"""Records some steps of a training loop that somebody else's code runs, and explains them: what every callback uses.

A failure here never ends the training: it is one line on stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from warpline.capture.plan import Plan
from warpline.capture.profile import profile
from warpline.errors import WarplineError

if TYPE_CHECKING:
    from warpline.findings.diagnosis import Diagnosis

REPORT, SUMMARY = "report.html", "diagnosis.md"


class Recorded(Struct, frozen=True):
    """What was recorded, and the answer."""

    folder: Path
    trace: Path
    diagnosis: Diagnosis
    report: Path
    """One HTML file with the diagnosis and the timeline."""
    summary: Path
    """The diagnosis in Markdown."""

    @property
    def numbers(self) -> dict[str, float]:
        """Numbers for an experiment tracker."""
        found: dict[str, float] = {}
        if len(self.diagnosis.steps) and self.diagnosis.step_ns is not None:
            found["warpline/step_ms"] = self.diagnosis.step_ns.expected / 1e6
        if self.diagnosis.devices:
            device = self.diagnosis.shown.busiest[0]
            found["warpline/gpu_busy_pct"] = 100 * device.busy_ns / max(device.window_ns, 1)
        return found


Sink = Callable[[Recorded], None]
"""Takes the answer elsewhere, for example to W&B."""


class StepRecorder:
    """Records `steps` steps after the first `start` ones. A callback calls `begin`, `step` and `finish`."""

    def __init__(
        self,
        *,
        start: int = 10,
        steps: int = 5,
        stacks: bool = False,
        output: str | Path | None = None,
        sinks: Sequence[Sink] = (),
    ) -> None:
        self._profile = profile("training", steps=steps, skip=start, stacks=stacks, output=output)
        self._sinks = tuple(sinks)
        self._left = start + Plan.warmup + steps + 1
        """Steps until everything is recorded; one more, so that the last step has an end."""
        self._is_open = False
        self.recorded: Recorded | None = None
        """The answer, as soon as the steps are recorded."""

    def begin(self) -> None:
        """The training begins."""
        if self._is_open or self.recorded is not None:
            return
        try:
            self._profile.__enter__()
            self._is_open = True
        except (WarplineError, OSError, RuntimeError) as error:
            _say(error)

    def step(self) -> None:
        """A step has ended."""
        if not self._is_open:
            return
        self._profile.step()
        self._left -= 1
        if self._left <= 0:
            self.finish()

    def finish(self) -> None:
        """The training ends, or all steps are recorded."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._profile.__exit__(None, None, None)
            if self._profile.trace is not None and self._profile.folder is not None:
                self.recorded = explained(self._profile.folder, self._profile.trace)
        except (WarplineError, OSError, RuntimeError) as error:
            _say(error)
        if self.recorded is None:
            return
        for sink in self._sinks:
            try:
                sink(self.recorded)
            except Exception as error:  # a tracker that is offline must not end a training
                _say(error)


def explained(folder: Path, trace: Path) -> Recorded:
    """Diagnose a recording, and write the report and the summary beside it."""
    from warpline.front.functions import diagnose  # noqa: PLC0415 - polars loads when the steps are recorded
    from warpline.reports import markdown  # noqa: PLC0415
    from warpline.reports.diagnosis import report  # noqa: PLC0415
    from warpline.reports.page.document import page  # noqa: PLC0415

    diagnosis = diagnose(trace)
    (folder / REPORT).write_text(page(diagnosis).html, encoding="utf-8")
    (folder / SUMMARY).write_text(markdown.render(report(diagnosis)), encoding="utf-8")
    return Recorded(folder, trace, diagnosis, folder / REPORT, folder / SUMMARY)


def _say(error: Exception) -> None:
    line = error.line() if isinstance(error, WarplineError) else f"{type(error).__name__}: {error}"
    print(f"warpline: the steps are not explained: {' '.join(line.split())}", file=sys.stderr)
