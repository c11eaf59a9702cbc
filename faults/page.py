"""Writes the page about the planted faults from what was measured.

python -m faults.page > docs/faults.md
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from faults.programs import SUITES, Case
from faults.recorded import manifest_of, recorded_suites

BLIND_SCORES = Path(__file__).parent / "blind_scores.json"
BLIND_FIGURES = ("right_cause", "right_step", "right_bare_step", "high_on_healthy")

HEAD = """# Planted faults

{count} small programs, each a step with one known fault (or none), and the same work with the fault fixed. The
diagnosis is scored against them: the right cause, and the step time after the fix. They live in `faults/programs`, one
module a cause; the lines marked `# planted` are the fault. [faults/README](../faults/README.md) says how to add, record
and score them.

A fault counts only if its fix makes the step at least 1.15 times faster on a stopwatch, with no profiler attached. A
step is healthy only if the fix that suggests itself gains less than 5 % (or no more than repeats of one program differ,
as the stopwatch's own figures in `faults.json` show). For a cold start the steps are the first ones after the program
is built, and the fix is the same steps after a warm-up.

`comm` is missing: one GPU cannot show it.

## First scores

The score of each suite before anything was changed for it. It is the only one that is blind; today's score is what
`make score` prints.

{blind}
The planted suite has none: the rules were written with it. What was changed after each first score is in
[the replay's page](replay.md#predictions).
"""

SUITE_HEADS = {
    "planted": """# The planted suite

{count} cases that the rules were written with.
""",
    "held_out": """# The held-out suite

{count} cases in `faults/programs/held_out`, written without a look at the rules and recorded before any verdict on them
was known.
""",
    "field": """# The field suite

{count} cases in `faults/programs/field`, after the mistakes of real programs (adapters of language models, samplers,
recommenders, graph networks, detection, speech), written and recorded as the held-out suite was.
""",
    "harbour": """# The harbour

{count} cases in `faults/programs/harbour`, on real model code, written without a look at the rules, recorded before any
verdict on them was known, and scored once; nothing was changed with them in view. Stopwatch and profiler kept to the
same calm cores. Nine of the programs were also recorded with Python stacks and with Nsight Systems: all nine have the
same, right cause in all three recordings, and for eight the three ranges of one fix overlap. The 16 largest
recordings are not part of the checkout; `faults/scores/2026-11-16-harbour-first.json` has the answers to all.
""",
    "serving": """# The serving suite

{count} cases in `faults/programs/serving`, from inference and numerical programs, written by another author in the same
way. A nineteenth was no valid question (the stopwatch showed that its innocent was not) and was left out.
""",
    "ward": """# The ward

{count} cases in `faults/programs/ward`, on real model code, written without a look at the rules, recorded before any
verdict on them was known, and scored once; nothing but the ranges was changed with them in view. The host was 2 to 4
times slower while it recorded than while the stopwatch ran. The 12 largest recordings are not part of the checkout;
`faults/scores/2026-11-16-ward-first.json` has the answers to all.
""",
    "clinic": """# The clinic

{count} cases in `faults/programs/clinic`, on real model code (Hugging Face models with random weights, forecasting,
reinforcement learning, recommenders, graphs, speech, images), written without a look at the rules, recorded before any
verdict on them was known, and scored once; nothing but the ranges was changed with them in view. The 20 largest
recordings are not part of the checkout; `faults/scores/2026-11-16-clinic-first.json` has the answers to all.
""",
    "sealed": """# The sealed suite

{count} cases in `faults/programs/sealed`, on real model code (Hugging Face models with random weights, diffusion,
recommenders, reinforcement learning, speech, graphs), written without a look at the rules and scored once. One case was
made larger before it was scored, because its fix gained only 9 %. The 13 largest recordings are not part of the
checkout; `faults/scores/2026-11-16-sealed-first.json` has the answers to all.
""",
    "studio": """# The studio suite

{count} cases in `faults/programs/studio`, ordinary PyTorch programs, written without a look at the rules, and recorded
before any verdict on them was known.
""",
    "textbook": """# The textbook suite

{count} cases in `faults/programs/textbook`, compact programs with one fault for each rule, from transformers,
convolutional networks and numerical work. Their author knew what the tool promises, and not how it answers.
""",
    "training": """# The training suite

{count} cases in `faults/programs/training`, from programs that train and experiment, written without a look at the
rules, the other suites or the tool's answers, and recorded before any verdict on them was known.
""",
    "unseen": """# The unseen suite

{count} cases in `faults/programs/unseen`, models in plain torch in training and serving, written without a look at the
rules, recorded before any verdict on them was known, and scored once. The stopwatch contradicts two labels
"healthy": a CUDA graph gains 1.09 times, and pinned memory 1.05. One recording is not part of the checkout.
""",
    "workshop": """# The workshop suite

{count} cases in `faults/programs/workshop`, training loops, token generation and evaluations as people write them, by
another author who knew the promises only.
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
    count = sum(len(manifest["cases"]) for manifest in manifests.values())
    parts = [HEAD.format(count=count, blind=_blind_scores())]
    for suite, manifest in manifests.items():
        cases = manifest["cases"]
        parts += [
            SUITE_HEADS[suite].format(count=len(cases)),
            *_tables(cases),
            _measured(manifest),
            *_stories(SUITES[suite]),
        ]
    return "\n".join(parts)


def _blind_scores() -> str:
    columns = ("suite", "recordings", "cases", "right cause", "step within 25 %", "bare within 15 %", "high on healthy")
    rows, notes = [], []
    for first in json.loads(BLIND_SCORES.read_text(encoding="utf-8"))["scores"]:
        for recordings, counts in (("without stacks", first), ("with stacks", first.get("with_stacks"))):
            if counts:
                figures = (first["cases"], *(counts[key] for key in BLIND_FIGURES))
                rows.append((first["suite"], recordings, *map(str, figures)))
        notes += [f"\n{first['suite']}: {first['note']}\n"] if "note" in first else []
    return _table(columns, rows) + "".join(notes)


def _tables(cases: list[dict[str, Any]]) -> list[str]:
    faults = [case for case in cases if case["fix"]]
    guarded = [case for case in cases if case["innocent"]]
    return [
        "## Faults and their cures\n",
        _table(("case", "cause", "fix", "faulty ms", "cured ms", "gain", "other cures"), map(_fault_row, faults)),
        "## Healthy steps, and traps\n\n"
        "Something looks like a fault but is not: `innocent` is the fix that it suggests, which would not help.\n",
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
    sys.stdout.write(page({suite: manifest_of(suite) for suite in recorded_suites()}))
