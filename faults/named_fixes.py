"""How often `warpline compare` names the fix that was made, on all recorded pairs of a program and its fix.

    python -m faults.named_fixes [--predictions]

prints each pair that is not named rightly, and the sum. With `--predictions`, each fix is also replayed on the faulty
program, and its gain compared with the fixed one's.
"""

from __future__ import annotations

import argparse
from collections import Counter

from faults.jobs import FIXED
from faults.recorded import recorded_cases
from warpline.compare.measurement import measure
from warpline.compare.prediction import applied_fixes, contents_of, outcome
from warpline.trace.open import open_trace


def main() -> int:
    """Print the score."""
    parser = argparse.ArgumentParser(description="How often compare names the fix that was made")
    parser.add_argument("--predictions", action="store_true", help="replay the named fixes, too")
    with_predictions = parser.parse_args().predictions
    score: Counter[str] = Counter()
    for case in recorded_cases():
        if not case.is_kept or FIXED not in case.kept_variants:
            continue
        a, b = (open_trace(case.recording(variant)) for variant in (case.scored_variant, FIXED))
        step_a, step_b = measure(a).step, measure(b).step
        made = case.entry["fix"] or case.entry["innocent"]
        if with_predictions:
            found = outcome(a, b, step_a, step_b)
            named = found.fixes if found else ()
            if found is not None and found.is_within_range is not None:
                score["in range" if found.is_within_range else "outside"] += 1
                print(f"{case.name}: {found.sentence}", flush=True)
        else:
            named = applied_fixes(contents_of(a, step_a), contents_of(b, step_b))
        answer = "right" if named == (made,) else "wrong" if named else "not named"
        score[answer] += 1
        if answer != "right":
            print(f"{case.name}: {answer}, made {made}, named {' and '.join(named) or 'nothing'}", flush=True)
    print(", ".join(f"{kind}: {count}" for kind, count in sorted(score.items())))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
