"""How often diagnose names the right cause of a planted fault, and how well it predicts the cure.

    python faults/score.py [FOLDER] [--stacks] [--all]

Reads the recorded cases (faults/recordings/planted by default), judges each faulty trace, and holds the verdict against
the true cause, the bare step against the stopwatch's, and the predicted step against the stopwatch's of the cured
program.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from warpline.findings.diagnosis import diagnose
from warpline.trace.open import open_trace

DEFAULT = Path(__file__).parent / "recordings" / "planted"
CLOSE = 0.25
BARE_CLOSE = 0.15


def score(case: dict[str, Any], folder: Path, stacks: bool) -> dict[str, Any]:
    plain = folder / f"{case['name']}.plain.json.gz"
    path = plain if plain.exists() and not stacks else folder / f"{case['name']}.json.gz"
    began = time.perf_counter()
    answer = diagnose(open_trace(path, cache=False), why=True).to_dict()
    verdict, replay = answer["verdict"], answer["replay"]
    bare, cured = (case["bare_step_ns"][which]["step_ns"] for which in ("faulty", "cured"))
    healthy = case["cause"] == "healthy"
    after = verdict["new_step_ns"]["expected"] if verdict else None
    cures = {case["fix"]: cured, **{fix: row["step_ns"] for fix, row in (case.get("other_cures") or {}).items()}}
    target = bare if healthy else cures.get(verdict["fix"], cured) if verdict else cured
    return {
        "case": case["name"],
        "cause": case["cause"],
        "said": verdict["cause"] if verdict else None,
        "fix": case["fix"],
        "said_fix": verdict["fix"] if verdict else None,
        "right": bool(verdict) and verdict["cause"] == case["cause"],
        "bare_error": replay["bare_step_ns"] / bare - 1 if replay else None,
        "after_error": after / target - 1 if after else None,
        "replay_error_pct": replay["error_pct"] if replay else None,
        "gain": case["gain"],
        "said_gain": verdict["gain"]["expected"] if verdict else None,
        "high_on_healthy": healthy and any(finding["confidence"] == "high" for finding in answer["findings"]),
        "seconds": time.perf_counter() - began,
    }


def _line(row: dict[str, Any], close: bool) -> str:
    marks = f"{'ok ' if row['right'] else 'BAD'} {'ok ' if close else 'far'}"
    truth = f"{row['case']:36} {row['cause']:10} {row['fix'] or '-':18}"
    said = f"said {row['said']!s:10} {row['said_fix']!s:18} gain {row['gain']:8.2f} said {row['said_gain'] or 0:8.2f}"
    errors = f"after {100 * (row['after_error'] or 0):+6.0f} % bare {100 * (row['bare_error'] or 0):+5.0f} %"
    return f"{marks} {truth} {said} {errors} {row['seconds']:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=DEFAULT)
    parser.add_argument("--stacks", action="store_true", help="judge the traces that have Python stacks")
    parser.add_argument("--all", action="store_true", help="list every case, not only the misses")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    cases = json.loads((arguments.folder / "faults.json").read_text())["cases"]
    rows = [score(case, arguments.folder, arguments.stacks) for case in cases]
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        close = row["after_error"] is not None and abs(row["after_error"]) <= CLOSE
        if arguments.all or not row["right"] or not close:
            print(_line(row, close))
    count = len(rows)
    right = sum(row["right"] for row in rows)
    close = sum(row["after_error"] is not None and abs(row["after_error"]) <= CLOSE for row in rows)
    bare = sum(row["bare_error"] is not None and abs(row["bare_error"]) <= BARE_CLOSE for row in rows)
    print(
        f"right cause {right}/{count}; predicted step within 25 % {close}/{count}; bare step within 15 % {bare}/{count}"
    )
    print(f"high confidence on healthy: {sum(row['high_on_healthy'] for row in rows)}")


if __name__ == "__main__":
    main()
