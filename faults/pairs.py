"""What `warpline compare` says of every recorded pair of a program and its fix, one recording on each side.

    python -m faults.pairs [DIR…]

judges the pairs of the checkout, and those of folders that `python -m faults.record` wrote. The verdict is right if the
stopwatch says the same, open if it is inconclusive, and wrong otherwise. The largest part names the fault if it is what
the fault is made of: see `names_the_fault`. A cold start that `compare` sets aside is judged by what it says of these
steps.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from faults.jobs import FIXED
from faults.recorded import MANIFEST, RecordedCase, recorded_cases
from warpline.compare.cold_start import cold_start
from warpline.compare.comparison import Comparison, compare_measurements
from warpline.compare.counts import differing
from warpline.compare.cpu_ops import CpuOp, changed_cpu_ops
from warpline.compare.measurement import measure
from warpline.compare.parts import StepPart
from warpline.estimate import LEAST_EFFECT
from warpline.trace.open import open_trace

LAUNCHING = ("dispatch", "launch_latency")
"""Causes of idle time while the CPU launches."""
MOVES = re.compile("copy|Cat|Fill|Memcpy|Memset|[Pp]ad|flip|roll", re.ASCII)
"""Kernels that move or fill memory, and do nothing else."""
COUNTED = {"remove_sync": "syncs", "coalesce_copies": "copies"}
"""What such a fix makes fewer."""


def pairs(folders: list[Path]) -> Iterator[RecordedCase]:
    """Cases of which the faulty and the fixed program are recorded."""
    for case in recorded_cases():
        if FIXED in case.kept_variants:
            yield case
    for folder in folders:
        for entry in json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["cases"]:
            case = RecordedCase(folder.name, folder, entry)
            if all(case.recording(variant).exists() for variant in (case.scored_variant, FIXED)):
                yield case


def true_ratio(case: RecordedCase) -> float:
    """Time of a step of the fixed program over that of the faulty one, without a profiler, in calm rounds where the
    host was watched: its noise is larger than some gains."""
    timed = case.entry["bare_step_ns"]
    fixed = timed["fixed"] if case.entry["fix"] else case.entry["innocent_step_ns"]
    faulty_ns, fixed_ns = (one.get("step_ns", one["median_ns"]) for one in (timed["faulty"], fixed))
    return float(fixed_ns / faulty_ns)


def rated(verdict: str, truth: float) -> str:
    """Whether a verdict is right, by the time without a profiler. A change that is known need not be a large one."""
    if verdict in {"inconclusive", "not_comparable"}:
        return "open"
    true = "slower" if truth > 1 + LEAST_EFFECT else "faster" if truth < 1 - LEAST_EFFECT else "same"
    if verdict == true:
        return "right"
    return "right, below the least effect" if true == "same" and (verdict == "slower") == (truth > 1) else "wrong"


def names_the_fault(case: RecordedCase, found: Comparison, part: StepPart, cpu_ops: Sequence[CpuOp]) -> bool:
    """Whether the largest part is what the fault is made of: idle time of its cause; the copies; for a slow kernel, the
    kernel. Syncs and many copies make the GPU wait for launches: there the answer must say how many are gone. Where an
    op plans or tunes in every step, it must name the op, with at least half of the time."""
    cause, fix = case.entry["cause"], case.entry["fix"]
    idle = part.name if part.kind == "idle" else None
    if cause == "dispatch":
        return idle in LAUNCHING
    if cause == "cold_start" and idle in LAUNCHING:
        return any(2 * one.change_ns <= part.change_ns < 0 for one in cpu_ops)
    if fix in COUNTED and idle in (*LAUNCHING, cause):
        return COUNTED[fix] in differing(found.a.counts, found.b.counts, LEAST_EFFECT)
    if cause == "transfer":
        return part.is_copy or idle == "transfer"
    if cause == "memory" and fix != "no_empty_cache":
        return idle is None and any(map(MOVES.search, (*part.a, *part.b)))
    return idle is None if cause == "kernel" else idle == cause


def main() -> int:
    """Print what is not right, and the sums."""
    parser = argparse.ArgumentParser(description="What compare says of recorded pairs of a program and its fix")
    parser.add_argument("folders", type=Path, nargs="*", metavar="DIR", help="recordings beside those of the checkout")
    verdicts: Counter[tuple[str, str, str]] = Counter()
    named: Counter[tuple[str, str, bool]] = Counter()
    for case in pairs(parser.parse_args().folders):
        before, after = (open_trace(case.recording(variant)) for variant in (case.scored_variant, FIXED))
        a, b = measure(before), measure(after)
        found, truth = compare_measurements([a], [b]), true_ratio(case)
        cause = case.entry["cause"]
        is_healthy, is_cold = cause == "healthy", bool(case.entry["cold"])
        cold = cold_start([before], [after], LEAST_EFFECT) if is_cold else None
        verdict, ratio, part = found.verdict, found.ratio, found.parts[0]
        if cold is not None:
            verdict, ratio, part = cold.difference.verdict, cold.difference.ratio, cold.parts[0]
        judged_by = "cold start" if cold is not None else found.judged_by
        answer = rated(verdict, truth)
        verdicts[case.suite, "healthy" if is_healthy else "fault", answer] += 1
        cpu_ops = changed_cpu_ops(before, after, a.step.cpu_spans, b.step.cpu_spans)
        is_named = is_healthy or names_the_fault(case, found, part, cpu_ops)
        if not is_healthy:
            named[case.suite, cause, is_named] += 1
        if answer != "right" or judged_by not in {"step", "work"} or not is_named:
            print(
                f"{case.suite}/{case.name} ({cause}, {case.entry['fix']}): {answer}, {verdict} by "
                f"{judged_by}, ratio {ratio.expected:.2f}, true {truth:.2f}; "
                f"largest part {'names it' if is_named else 'does not name it'}: {part.kind} {part.name[:60]}",
                flush=True,
            )
    for (suite, kind, answer), count in sorted(verdicts.items()):
        print(f"{suite}: {kind}: verdict {answer}: {count}")
    for (suite, cause, is_named), count in sorted(named.items()):
        print(f"{suite}: {cause}: largest part {'names' if is_named else 'does not name'} the fault: {count}")
    faults = sum(count for (_, kind, _), count in verdicts.items() if kind == "fault")
    right = sum(count for (_, kind, answer), count in verdicts.items() if kind == "fault" and answer == "right")
    names = sum(count for (_, _, is_named), count in named.items() if is_named)
    wrong = sum(count for (_, _, answer), count in verdicts.items() if answer == "wrong")
    print(f"{sum(verdicts.values())} pairs, {wrong} wrong; {faults} faults: {right} verdicts right, {names} named")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
