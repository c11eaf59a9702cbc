"""The scoreboard: the answers on some cases counted, printed as a table, and held against an earlier score."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

STEP_TOLERANCE = 0.25
"""A predicted step is right within this share of the stopwatch's."""
BARE_TOLERANCE = 0.15
"""The step without a profiler likewise."""
FEWEST_OF_A_FIX = 8
"""Ranges of a fix are counted apart from so many timed cases on."""
WHOLE = "all suites"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the diagnosis said of one case, and what is true. An error is a share: 0.1 is 10 % too long."""

    suite: str
    case: str
    cause: str
    said_cause: str | None
    fix: str | None
    said_fix: str | None
    gain: float
    """The stopwatch's, of the fix that the case was written for."""
    said_gain: float | None
    step_error: float | None
    """Of the predicted step, against the stopwatch's with the fix that was named, or with the case's where that was
    not timed; for a healthy case against the step as it is."""
    bare_error: float | None
    replay_error_pct: float | None
    gain_in_range: bool | None
    """Whether the printed range held the stopwatch's value; None where no fix was named, or that one was not timed."""
    step_in_range: bool | None
    bare_in_range: bool | None
    high_on_healthy: bool
    """Whether a finding of high confidence was made on a healthy case."""

    @property
    def right_cause(self) -> bool:
        """Whether the verdict names the true cause."""
        return self.said_cause == self.cause

    @property
    def right_step(self) -> bool:
        """Whether the predicted step is near the stopwatch's."""
        return self.step_error is not None and abs(self.step_error) <= STEP_TOLERANCE

    @property
    def right_bare_step(self) -> bool:
        """Whether the step without a profiler is near the stopwatch's."""
        return self.bare_error is not None and abs(self.bare_error) <= BARE_TOLERANCE

    def line(self) -> str:
        """The answer as one line of text."""
        marks = f"{'ok ' if self.right_cause else 'BAD'} {'ok ' if self.right_step else 'far'}"
        truth = f"{self.suite:8} {self.case:44} {self.cause:10} {self.fix or '-':18}"
        said = f"said {self.said_cause!s:10} {self.said_fix!s:18} gain {self.gain:7.2f} said {self.said_gain or 0:7.2f}"
        return f"{marks} {truth} {said} step {_signed(self.step_error)} bare {_signed(self.bare_error)}"


@dataclass(frozen=True, slots=True)
class Score:
    """How often the answers on some cases were right."""

    cases: int
    right_cause: int
    right_step: int
    right_bare_step: int
    high_on_healthy: int
    gain_in_range: int
    step_in_range: int
    ranges: int
    """Answers whose ranges can be held against the stopwatch: they name a fix, and that fix was timed."""
    bare_in_range: int
    median_step_error: float
    """Median of the absolute errors."""
    median_bare_error: float

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> Score:
        """Counts the answers."""
        return cls(
            cases=len(answers),
            right_cause=sum(answer.right_cause for answer in answers),
            right_step=sum(answer.right_step for answer in answers),
            right_bare_step=sum(answer.right_bare_step for answer in answers),
            high_on_healthy=sum(answer.high_on_healthy for answer in answers),
            gain_in_range=sum(answer.gain_in_range is True for answer in answers),
            step_in_range=sum(answer.step_in_range is True for answer in answers),
            ranges=sum(answer.step_in_range is not None for answer in answers),
            bare_in_range=sum(answer.bare_in_range is True for answer in answers),
            median_step_error=_median(answer.step_error for answer in answers),
            median_bare_error=_median(answer.bare_error for answer in answers),
        )


def scores(answers: Sequence[Answer]) -> dict[str, Score]:
    """The score of each suite, and of the whole."""
    suites = dict.fromkeys(answer.suite for answer in answers)
    by_suite = {suite: Score.of([answer for answer in answers if answer.suite == suite]) for suite in suites}
    return {**by_suite, WHOLE: Score.of(answers)}


COLUMNS: tuple[tuple[str, Callable[[Score], str]], ...] = (
    ("cases", lambda score: str(score.cases)),
    ("right cause", lambda score: str(score.right_cause)),
    ("step within 25 %", lambda score: str(score.right_step)),
    ("median error", lambda score: f"{100 * score.median_step_error:.1f} %"),
    ("bare within 15 %", lambda score: str(score.right_bare_step)),
    ("median error", lambda score: f"{100 * score.median_bare_error:.1f} %"),
    ("high on healthy", lambda score: str(score.high_on_healthy)),
    ("gain in range", lambda score: f"{score.gain_in_range}/{score.ranges}"),
    ("step in range", lambda score: f"{score.step_in_range}/{score.ranges}"),
    ("bare in range", lambda score: f"{score.bare_in_range}/{score.cases}"),
)


def table(by_suite: dict[str, Score]) -> str:
    """The scores as a table of Markdown, one suite a line."""
    return _table((suite, [cell(score) for _, cell in COLUMNS]) for suite, score in by_suite.items())


def ranges_by_fix(answers: Sequence[Answer]) -> str:
    """How often the ranges of each named fix held the stopwatch's values, for fixes with enough timed cases."""
    timed = [answer for answer in answers if answer.step_in_range is not None]
    named = sorted({answer.said_fix or "" for answer in timed})
    own = {fix: [answer for answer in timed if answer.said_fix == fix] for fix in named}
    return "".join(
        f"{fix}: gain in range {sum(answer.gain_in_range is True for answer in answers)}/{len(answers)}, "
        f"step in range {sum(answer.step_in_range is True for answer in answers)}/{len(answers)}\n"
        for fix, answers in own.items()
        if len(answers) >= FEWEST_OF_A_FIX
    )


def comparison(before: Sequence[Answer], after: Sequence[Answer]) -> str:
    """Both scores over the cases that both have, and the cases on which they differ."""
    shared = {answer.case for answer in before} & {answer.case for answer in after}
    old = {answer.case: answer for answer in before if answer.case in shared}
    new = {answer.case: answer for answer in after if answer.case in shared}
    old_scores, new_scores = scores(list(old.values())), scores(list(new.values()))
    rows = ((suite, _changes(old_scores[suite], new_scores[suite])) for suite in new_scores)
    lines = [_table(rows)]
    for title, judge in (("cause", _right_cause), ("step within 25 %", _right_step), ("bare within 15 %", _right_bare)):
        lost = [case for case in new if judge(old[case]) and not judge(new[case])]
        won = [case for case in new if judge(new[case]) and not judge(old[case])]
        lines += [f"{title}: lost {', '.join(lost) or 'none'}; won {', '.join(won) or 'none'}\n"]
    return "".join(lines)


def to_dict(answers: Sequence[Answer], *, stacks: bool, date: str) -> dict[str, Any]:
    """The scores and the answers as a JSON object."""
    return {
        "schema": "warpline.score/1",
        "date": date,
        "stacks": stacks,
        "scores": {suite: asdict(score) for suite, score in scores(answers).items()},
        "answers": [asdict(answer) for answer in answers],
    }


def from_dict(document: dict[str, Any]) -> list[Answer]:
    """The answers of a score that was written as JSON."""
    return [Answer(**answer) for answer in document["answers"]]


def _changes(old: Score, new: Score) -> list[str]:
    pairs = ((cell(old), cell(new)) for _, cell in COLUMNS)
    return [before if before == after else f"{before} → {after}" for before, after in pairs]


def _table(rows: Iterable[tuple[str, list[str]]]) -> str:
    lines = [["suite", *(title for title, _ in COLUMNS)], *([suite, *cells] for suite, cells in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    padded.insert(1, ["-" * width for width in widths])
    return "".join(f"| {' | '.join(line)} |\n" for line in padded)


def _median(errors: Iterable[float | None]) -> float:
    known = [abs(error) for error in errors if error is not None]
    return statistics.median(known) if known else float("nan")


def _signed(error: float | None) -> str:
    return "     ?" if error is None else f"{100 * error:+5.0f} %"


def _right_cause(answer: Answer) -> bool:
    return answer.right_cause


def _right_step(answer: Answer) -> bool:
    return answer.right_step


def _right_bare(answer: Answer) -> bool:
    return answer.right_bare_step
