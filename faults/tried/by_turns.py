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
from warpline.trial.process import VariantProcess
from warpline.trial.variants import SeenProgram, Variant, VariantProcesses

ARGUMENT = "1000000"
"""The programs take their number of steps, and should not end before they are measured."""
START_S, POLL_S = 180.0, 0.001
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
    return VariantProcess(PLAIN, folder, _command(copy), environment, path.parent)


def until_ready(group: list[VariantProcess], words: list[str]) -> None:
    """Wait until all stand before their first window."""
    until = time.monotonic() + START_S
    waiting = dict(zip(range(len(group)), group, strict=True))
    while waiting:
        for number, process in list(waiting.items()):
            if process.is_over:
                process.fail_by_itself()
            if process.is_over or time.monotonic() > until:
                raise SystemExit(f"{words[number]}: {process.error or 'not ready'}")
            if process.is_ready():
                process.pause()
                del waiting[number]
        time.sleep(POLL_S)


def one_round(group: list[VariantProcess], windows: int) -> list[float]:
    """So many windows of each, by turns: seconds of a step, the logarithm."""
    for _ in range(windows):
        turn = len(group[0].windows)
        places = group[:: -1 if turn % 2 else 1]
        first = turn // 2 % len(group)
        for process in places[first:] + places[:first]:
            process.run_window()
            while not process.has_window():
                if process.is_over:
                    raise SystemExit(f"{process.name} ended")
                time.sleep(POLL_S)
            process.pause()
    return [math.log(fmean(one.step_s for one in process.windows[-windows:])) for process in group]


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
            until_ready(group, given.words)
            began = time.monotonic()
            rounds: list[list[float]] = []
            while time.monotonic() < began + given.seconds or len(rounds) < 2:
                rounds.append(one_round(group, program.steps.per_round))
    finally:
        for process in group:
            process.end()
        own.end_all()
    means = [fmean(some) for some in zip(*rounds, strict=True)]
    print(f"{len(rounds)} rounds of {program.steps.per_round} windows of {program.steps.per_window} steps")
    for word in dict.fromkeys(given.words):
        some = [mean for mean, other in zip(means, given.words, strict=True) if other == word]
        first = [mean for mean, other in zip(means, given.words, strict=True) if other == given.words[0]]
        ratio = f"{math.exp(fmean(some) - fmean(first)):.3f}"
        if min(len(some), len(first)) > 1:
            ratio += f" ± {math.sqrt(sum(stdev(one) ** 2 / len(one) for one in (some, first))):.3f}"
        print(f"{word}: {', '.join(f'{1e3 * math.exp(mean):.2f}' for mean in some)} ms; {ratio} of {given.words[0]}")


if __name__ == "__main__":
    main()
