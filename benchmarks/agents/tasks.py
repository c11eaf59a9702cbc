"""The same twelve for any agent: a folder for each, and the grades of the answers that it leaves.

python -m benchmarks.agents.tasks make DIR      # DIR/NAME/: TASK.md, before.json.gz, after.json.gz, program.py
python -m benchmarks.agents.tasks grade DIR     # reads DIR/NAME/answer.json
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from benchmarks.agents.cases import CAUSES, Case, cases, grade
from warpline.fixes.registry import all_fixes

TASK = """# Why is this program slow, and did the change help?

`before.json.gz` is a torch.profiler recording of a slow step on an NVIDIA H200. `after.json.gz` is a recording of the
same step after somebody has fixed it.

Write `answer.json`:

    {{"cause": "...", "fix": "...", "gain": {{"low": 1.0, "high": 1.0}}, "verdict": "..."}}

- `cause`: what the step of `before` waits for. One of: {causes}.
- `fix`: what to do first. One of: {fixes}.
- `gain`: how many times as fast the step becomes with that fix, without a profiler; a range that you expect to hold.
- `verdict`: is the program of `after` `faster`, `slower` or the `same`?
"""


def make(folder: Path) -> None:
    """Write the tasks."""
    for number, case in enumerate(cases(), 1):
        place = folder / f"{number:02}"
        place.mkdir(parents=True)
        shutil.copy(case.before, place / "before.json.gz")
        shutil.copy(case.after, place / "after.json.gz")
        text = TASK.format(causes=", ".join(CAUSES), fixes=", ".join(sorted(all_fixes())))
        (place / "TASK.md").write_text(text, encoding="utf-8")


def points(answer_file: Path, case: Case) -> int:
    """Of four; an answer that is missing or no JSON has none."""
    try:
        answer = json.loads(answer_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0
    return grade(case, answer).points if isinstance(answer, dict) else 0


def main() -> None:
    """Make or grade."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "grade"])
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    if asked.what == "make":
        make(asked.folder)
        return
    found = {
        case.name: points(asked.folder / f"{number:02}" / "answer.json", case) for number, case in enumerate(cases(), 1)
    }
    for name, got in found.items():
        print(f"{got} of 4  {name}")
    print(f"{sum(found.values())} of {4 * len(found)}")


if __name__ == "__main__":
    main()
