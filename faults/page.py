"""Writes the page about the planted faults from what was measured.

python3 -m faults.page faults/recordings/*/faults.json > docs/lab/faults.md
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from faults.programs import SUITES, Case

HEAD = """# Planted faults

{count} small programs, each a step with one known fault (or none), and the same work cured. They are what the verdict
is tested against: the right cause, and the step time after the fix. They live in `faults/programs`, one module
a cause; a builder's lines marked `# planted` are the fault.

A fault counts only if its cure makes the step at least 1.15 times faster on a stopwatch, with no profiler attached, and
a step is healthy only if the cure that tempts gains less than 5 % (or no more than repeats of one program differ, as
the stopwatch's own figures in `faults.json` show). For a cold start the steps are the first ones after the program is
built, and the cure is the same steps after a warm-up.

To record them again (on a machine with torch and a GPU, in some minutes; nothing else is needed):

```
PYTHONPATH=src python3 -m faults.record -o faults
PYTHONPATH=src python3 -m faults.record -o held_out --suite held_out
```

and so on for the other suites.

This writes, for each case, `<case>.json.gz` (the faulty step, with Python frames unless it compiles),
`<case>.plain.json.gz` (the same without frames), `<case>.cured.json.gz`, and one `faults.json` with every time.

- Two fixes have names beside the interventions of the replay's list: `warm_up` (take loading, compiling and tuning
  out of the measured steps) and `drop_copies` (leave out copies on the device that nothing needs).
- `comm` is missing: one GPU cannot show it.
"""

SUITE_HEADS = {
    "planted": """# The planted suite

{count} cases that the rules were written with.
""",
    "field": """# The field suite

{count} cases in `faults/programs/field`, after the mistakes of real programs (adapters of language models,
samplers, recommenders, graph networks, detection, speech), written and recorded as the held-out suite was.

Their first score, before anything was changed for them: right cause 30 of 33, predicted step within 25 % of the
stopwatch's 21 of 33, bare step within 15 % 27 of 33, and no finding of high confidence on a healthy step; from profiles
with stacks 29, 21, 28 and none. What was mended then is in [the replay's page](../replay.md#predictions).
""",
    "training": """# The training suite

{count} cases in `faults/programs/training`, from programs that train and experiment, written without a look at
the rules, the other suites or the tool's answers, and recorded before any verdict on them was known.

Their first score, before anything was changed for them: right cause 16 of 18, predicted step within 25 % of the
stopwatch's 11 of 18, bare step within 15 % 15 of 18, and no finding of high confidence on a healthy step; from profiles
with stacks the same. What was mended then is in [the replay's page](../replay.md#predictions).
""",
    "studio": """# The studio suite

{count} cases in `faults/programs/studio`, ordinary PyTorch programs, written without a look at the rules, and
recorded before any verdict on them was known.

Their first score, before anything was changed for them: right cause 15 of 16, predicted step within 25 % of the
stopwatch's 12 of 16, bare step within 15 % 13 of 16, and no finding of high confidence on a healthy step; from profiles
with stacks the same.
""",
    "textbook": """# The textbook suite

{count} cases in `faults/programs/textbook`, compact programs with one fault for each rule, from transformers,
convolutional networks and numerical work. Their author played an examiner who knows what the tool promises, and not
how it answers.

Their first score: right cause 20 of 20, predicted step within 25 % of the stopwatch's 17 of 20, bare step within 15 %
18 of 20, and no finding of high confidence on a healthy step; from profiles with stacks 20, 16, 17 and none.
""",
    "workshop": """# The workshop suite

{count} cases in `faults/programs/workshop`, training loops, token generation and evaluations as people write
them, by another such examiner.

Their first score: right cause 19 of 20, predicted step within 25 % of the stopwatch's 18 of 20, bare step within 15 %
20 of 20, and no finding of high confidence on a healthy step; from profiles with stacks 19, 15, 20 and none.
""",
    "serving": """# The serving suite

{count} cases in `faults/programs/serving`, from inference and numerical programs, written by another author in
the same way. A nineteenth was no valid question (the stopwatch showed that its innocent was not) and was left out.

Their first score: right cause 17 of 18, predicted step within 25 % of the stopwatch's 8 of 18, bare step within 15 %
17 of 18, and no finding of high confidence on a healthy step.
""",
    "held_out": """# The held-out suite

{count} cases in `faults/programs/held_out`, written without a look at the rules and recorded before any verdict
on them was known.

Their first score, before anything was changed for them: right cause 26 of 29, predicted step within 25 % of the
stopwatch's 22 of 29, bare step within 15 % 22 of 29, and one finding of high confidence on a healthy step (SGD's
`fused=True`). The three misses (float64, cuFFT's plans, plain SGD) were then mended, and constants of batch norm and of
fused chains with them: [today's score](../replay.md#predictions) is no longer blind.
""",
}

MEASURED = """## How they were measured

On {device}, torch {torch}, {date}: {how}

- Recording itself costs time. Where dispatch is the cause, a recorded step took {dispatch:.1f} times the bare one
  (median); where kernels are, {kernel:.2f} times. Python frames made it another {frames:.2f} times where the CPU sets
  the pace (median over dispatch and sync; {least:.2f} to {most:.2f}, the host's unsteadiness included).
- The host was unsteady: where the CPU sets the pace, repeats of one program differ by up to {spread:.0f} % of the time
  that counts. Where kernels are the cause or the step is healthy, {calm} of {calm_of} times vary by less than 10 %.
  `faults.json` has the least and the most of each.
"""


def page(manifests: dict[str, dict[str, Any]]) -> str:
    """The whole page, from the manifest of each suite."""
    parts = [HEAD.format(count=sum(len(manifest["cases"]) for manifest in manifests.values()))]
    for suite, manifest in manifests.items():
        cases = manifest["cases"]
        parts += [
            SUITE_HEADS[suite].format(count=len(cases)),
            *_tables(cases),
            _measured(manifest),
            *_stories(SUITES[suite]),
        ]
    return "\n".join(parts)


def _tables(cases: list[dict[str, Any]]) -> list[str]:
    faults = [case for case in cases if case["fix"]]
    guarded = [case for case in cases if case["innocent"]]
    return [
        "## Faults and their cures\n",
        _table(("case", "cause", "fix", "faulty ms", "cured ms", "gain", "other cures"), map(_fault_row, faults)),
        "## Healthy steps, and traps\n\n"
        "Something looks guilty and is not: `innocent` is the cure that it suggests, and that gains nothing.\n",
        _table(("case", "cause", "innocent", "as it is, ms", "without it, ms", "gain"), map(_innocent_row, guarded)),
    ]


def _stories(cases: Sequence[Case]) -> list[str]:
    stories = (f"**`{case.name}`** ({case.cause}). {_one_paragraph(case.story)}\n" for case in cases)
    return ["## What is planted, and why the cure is right\n", *stories]


def _table(columns: Sequence[str], rows: Any) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _fault_row(case: dict[str, Any]) -> list[str]:
    faulty = case["bare_step_ns"]["faulty"]["step_ns"]
    others = [f"`{cure}` {faulty / time['step_ns']:.2f}×" for cure, time in case["other_cures"].items()]
    return [
        f"`{case['name']}`",
        case["cause"],
        f"`{case['fix']}`",
        _ms(faulty),
        _ms(case["bare_step_ns"]["cured"]["step_ns"]),
        _gain(case["gain"]),
        ", ".join(others),
    ]


def _innocent_row(case: dict[str, Any]) -> list[str]:
    faulty, without = case["bare_step_ns"]["faulty"]["step_ns"], case["innocent_step_ns"]["step_ns"]
    return [
        f"`{case['name']}`",
        case["cause"],
        f"`{case['innocent']}`",
        _ms(faulty),
        _ms(without),
        _gain(faulty / without),
    ]


def _measured(manifest: dict[str, Any]) -> str:
    cases = manifest["cases"]
    framed = [
        case["profiled_step_ns"]["faulty"] / case["profiled_step_ns"]["plain"]
        for case in cases
        if case["cause"] in ("dispatch", "sync") and "plain" in case["profiled_step_ns"]
    ]
    calm = [_spread(time) for case in cases if case["cause"] in ("kernel", "healthy") for time in _bare(case)]
    text = MEASURED.format(
        **{key: manifest[key] for key in ("device", "torch", "date", "how")},
        dispatch=_cost(cases, "dispatch"),
        kernel=_cost(cases, "kernel"),
        frames=statistics.median(framed),
        least=min(framed),
        most=max(framed),
        spread=100 * max(_spread(time) for case in cases if not case["cold"] for time in _bare(case)),
        calm=sum(spread < 0.1 for spread in calm),
        calm_of=len(calm),
    )
    return text + "".join(f"- {note}\n" for note in manifest.get("notes", ()))


def _cost(cases: list[dict[str, Any]], cause: str) -> float:
    """How many times longer a step is while it is recorded without Python frames."""
    ratios: list[float] = [
        case["profiled_step_ns"]["plain"] / case["bare_step_ns"]["faulty"]["step_ns"]
        for case in cases
        if case["cause"] == cause and "plain" in case["profiled_step_ns"]
    ]
    return statistics.median(ratios)


def _bare(case: dict[str, Any]) -> list[dict[str, int]]:
    return list(case["bare_step_ns"].values())


def _spread(time: dict[str, int]) -> float:
    return (time["max_ns"] - time["min_ns"]) / time["step_ns"]


def _one_paragraph(story: str) -> str:
    return " ".join(story.split())


def _ms(time_ns: int) -> str:
    return f"{time_ns / 1e6:.3f}"


def _gain(gain: float) -> str:
    return f"{gain:.2f}×" if gain < 100 else f"{gain:.0f}×"


if __name__ == "__main__":
    read = [json.loads(Path(path).read_text(encoding="utf-8")) for path in sys.argv[1:]]
    by_suite = {manifest["suite"]: manifest for manifest in read}
    sys.stdout.write(page({suite: by_suite[suite] for suite in SUITES if suite in by_suite}))
