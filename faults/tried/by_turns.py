"""Times a program under `warpline try`, changed by hand, and with nothing but a stopwatch, in the same rounds.

    python -m faults.tried.by_turns td3.py try try plain plain --after "actor_opt.step()"
    python -m faults.tried.by_turns passes.py try try larger_micro_batch by_hand.py

Each word is one process: `try` is the program with warpline's agent, `plain` the program with a stopwatch in its source
after the line of `--after` instead, a fix the program with that fix made from outside, and a file another program, with
the agent. Programs are sought in the folder of the first one.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev

from faults.tried.stopwatch_in_source import SETTINGS
from warpline.trial import look
from warpline.trial.candidates import candidates
from warpline.trial.first_look import look_at_program
from warpline.trial.groups import VariantGroups
from warpline.trial.process import VariantProcess
from warpline.trial.rows import timed_rounds
from warpline.trial.variants import SeenProgram, Variant, VariantProcesses

ARGUMENT = "1000000"
"""The programs take their number of steps, and should not end before they are measured."""
START_S = 180.0
TRY, PLAIN = "try", "plain"


def start(
    words: list[str], path: Path, after: str, program: SeenProgram, own: VariantProcesses, scratch: Path
) -> Iterator[VariantProcess]:
    """One process for each word."""
    for number, word in enumerate(words):
        if word == PLAIN:
            yield _plain(path, after, program, scratch / str(number))
        elif word.endswith(".py"):
            other = VariantProcesses(_command(path.parent / word), path.parent, own.budget_s)
            yield other.start(Variant(), program, len(words))
        else:
            yield own.start(Variant(() if word == TRY else tuple(candidates([word]))), program, len(words))


def _command(path: Path) -> tuple[str, ...]:
    return sys.executable, str(path), ARGUMENT


def _plain(path: Path, after: str, program: SeenProgram, folder: Path) -> VariantProcess:
    """The program with a stopwatch in its source."""
    folder.mkdir()
    lines = path.read_text().splitlines()
    places = [number for number, line in enumerate(lines) if line.strip() == after]
    if len(places) != 1:
        raise SystemExit(f"{path.name} has {len(places)} lines {after!r}")
    lines[places[0]] += "; STEP()"
    copy = folder / path.name
    first_import = next(number for number, line in enumerate(lines) if line.startswith(("import ", "from ")))
    lines.insert(first_import, "from faults.tried.stopwatch_in_source import stopwatch; STEP = stopwatch()")
    copy.write_text("\n".join(lines))
    steps = program.steps.skip, program.steps.settle, program.steps.per_window
    settings = {"folder": str(folder), "starter": os.getpid(), "steps": steps}
    search = os.pathsep.join((str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])))
    environment = {**os.environ, SETTINGS: json.dumps(settings), "PYTHONHASHSEED": "0", "PYTHONPATH": search}
    process = VariantProcess(PLAIN, folder, _command(copy), environment, path.parent)
    process.limit_s = START_S
    return process


def check(group: list[VariantProcess]) -> None:
    """None may have failed."""
    for process in group:
        if process.is_over:
            process.fail_by_itself()
            raise SystemExit(f"{process.name}: {process.error or 'the program ended'}")


def mean_logarithms(group: list[VariantProcess], per_round: int) -> list[float]:
    """Of each process's seconds of a step, over the rounds in which none compiled anything."""
    rounds = zip(*(timed_rounds(process.windows, per_round) for process in group), strict=True)
    known = [[math.log(step_s) for step_s in one if step_s is not None] for one in rounds]
    whole = [one for one in known if len(one) == len(group)]
    if not whole:
        raise SystemExit("something was compiled in every round")
    return [fmean(some) for some in zip(*whole, strict=True)]


def main() -> None:
    """Print each process's step, and each kind's over the first kind's with the standard error over processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("words", nargs="+")
    parser.add_argument("--after", default="")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--window", type=float, default=look.WINDOW_S)
    given = parser.parse_args()
    look.WINDOW_S = given.window
    path = given.program.resolve()
    own, group = VariantProcesses(_command(path), path.parent, 10 * START_S), []
    try:
        with tempfile.TemporaryDirectory() as scratch:
            program = look_at_program(own, [], None, print)
            group = list(start(given.words, path, given.after, program, own, Path(scratch)))
            turns = VariantGroups(own, program, print, lambda rows: None)
            turns.until_ready(group)
            check(group)
            began, rounds = time.monotonic(), 0
            while time.monotonic() < began + given.seconds or rounds < 2:
                turns.run_round(group)
                check(group)
                rounds += 1
            means = mean_logarithms(group, program.steps.per_round)
    finally:
        for process in group:
            process.end()
        own.end_all()
    print(f"{rounds} rounds of {program.steps.per_round} windows of {program.steps.per_window} steps")
    for word in dict.fromkeys(given.words):
        some = [mean for mean, other in zip(means, given.words, strict=True) if other == word]
        first = [mean for mean, other in zip(means, given.words, strict=True) if other == given.words[0]]
        ratio = f"{math.exp(fmean(some) - fmean(first)):.3f}"
        if min(len(some), len(first)) > 1:
            ratio += f" ± {math.sqrt(sum(stdev(one) ** 2 / len(one) for one in (some, first))):.3f}"
        print(f"{word}: {', '.join(f'{1e3 * math.exp(mean):.2f}' for mean in some)} ms; {ratio} of {given.words[0]}")


if __name__ == "__main__":
    main()
