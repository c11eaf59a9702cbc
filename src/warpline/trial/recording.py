"""A recording of the program: its command, and what is predicted from it for each fix."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from warpline.capture.run_folder import read_manifest
from warpline.compare.prediction import Outcome, remember_runs
from warpline.errors import UsageError
from warpline.findings.fix_table import every_fix
from warpline.replay.whatif import Prediction
from warpline.trace.trace import Trace
from warpline.trial.answer import TrialAnswer

HIDDEN = "…"
"""What the manifest of a run has in the place of a secret."""


class RecordedProgram(Struct, frozen=True):
    """What a recording says of the program."""

    trace: Trace
    predictions: Mapping[str, Prediction]
    """By the fix's name."""

    @classmethod
    def of(cls, trace: Trace) -> RecordedProgram:
        """Replay the trace with each fix."""
        return cls(trace, {one.fixes[0].name: one for one in every_fix(trace)})

    def remember(self, path: Path, answer: TrialAnswer) -> None:
        """Append each prediction that met a measurement to the local record."""
        for row in answer.tries:
            prediction = self.predictions.get(row.fix or "")
            if prediction is None or row.predicted is None or row.gain is None or row.name != row.fix or row.is_bound:
                continue
            if row.verdict != "inconclusive":
                a = f"{self.trace.file.name} {self.trace.window.length_ns}"
                b = f"try {datetime.now(UTC).isoformat(timespec='seconds')}"
                gain = row.gain.expected
                outcome = Outcome(
                    fixes=(row.name,),
                    predicted=prediction.gain,
                    measured=gain,
                    timed=True,
                    recorded=gain,
                    spread=prediction.spread,
                )
                remember_runs(path, (a, b), outcome)


def recorded_command(folder: Path) -> tuple[str, ...]:
    """The command that `warpline run` recorded into this folder."""
    words = read_manifest(folder).get("command")
    if not isinstance(words, list) or not words:
        hint = "warpline try RUN -- python train.py"
        raise UsageError("no-program", f"{folder.name} does not say which program it recorded", hint)
    command = tuple(
        str(word).replace("~", str(Path.home()), 1) if str(word).startswith("~") else str(word) for word in words
    )
    if any(HIDDEN in word for word in command):
        hint = "give the program: warpline try RUN -- python train.py"
        raise UsageError("no-program", f"the command of {folder.name} was stored without its secrets", hint)
    return command
