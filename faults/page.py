"""The page about the planted faults, from what was measured; `make docs` builds it into the site."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from faults.programs import SUITES, Case
from faults.recorded import manifest_of, recorded_suites

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

How often the diagnosis is right: [predictions](replay.md#predictions). The first score of each suite, before anything
was changed for it: [the log](../faults/LOG.md).
"""

SUITE_HEADS = {
    "planted": """## The planted suite

{count} cases, written together with the rules.
""",
    "held_out": """## The held-out suite

{count} cases in `faults/programs/held_out`.
""",
    "field": """## The field suite

{count} cases in `faults/programs/field`, after the mistakes of real programs: adapters of language models, samplers,
recommenders, graph networks, detection, speech.
""",
    "harbour": """## The harbour suite

{count} cases in `faults/programs/harbour`, on real model code. Stopwatch and profiler ran on the same calm cores. Nine
of the programs were also recorded with Python stacks and with Nsight Systems.
""",
    "serving": """## The serving suite

{count} cases in `faults/programs/serving`, from inference and numerical programs.
""",
    "ward": """## The ward suite

{count} cases in `faults/programs/ward`, on real model code. The host was 2 to 4 times slower while it recorded than
while the stopwatch ran.
""",
    "clinic": """## The clinic suite

{count} cases in `faults/programs/clinic`, on real model code: Hugging Face models with random weights, forecasting,
reinforcement learning, recommenders, graphs, speech, images.
""",
    "sealed": """## The sealed suite

{count} cases in `faults/programs/sealed`, on real model code: Hugging Face models with random weights, diffusion,
recommenders, reinforcement learning, speech, graphs.
""",
    "studio": """## The studio suite

{count} cases in `faults/programs/studio`, ordinary PyTorch programs.
""",
    "textbook": """## The textbook suite

{count} cases in `faults/programs/textbook`, compact programs with one fault for each rule, from transformers,
convolutional networks and numerical work.
""",
    "training": """## The training suite

{count} cases in `faults/programs/training`, from programs that train and experiment.
""",
    "unseen": """## The unseen suite

{count} cases in `faults/programs/unseen`, models in plain torch in training and serving. The stopwatch contradicts two
labels "healthy": a CUDA graph gains 1.09 times, and pinned memory 1.05.
""",
    "workshop": """## The workshop suite

{count} cases in `faults/programs/workshop`, training loops, token generation and evaluations.
""",
}

MEASURED = """### How they were measured

On {device}, torch {torch}, {date}: {how}

- Recording itself costs time. Where dispatch is the cause, a recorded step took {dispatch:.1f} times the bare one
  (median); where kernels are, {kernel:.2f} times. Python frames made it another {frames:.2f} times where the CPU sets
  the pace (median over dispatch and sync; {least:.2f} to {most:.2f}, the host's unsteadiness included).
- The host was unsteady: where the CPU sets the pace, repeats of one program differ by up to {spread:.0f} % of the time
  that counts. Where kernels are the cause or the step is healthy, {calm} of {calm_of} times vary by less than 10 %.
  `faults.json` has the least and the most of each.
"""


def page() -> str:
    """The whole page, from the manifest of each suite."""
    manifests = {suite: manifest_of(suite) for suite in recorded_suites()}
    count = sum(len(manifest["cases"]) for manifest in manifests.values())
    parts = [HEAD.format(count=count)]
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
        "### Faults and their fixes\n",
        _table(("case", "cause", "fix", "faulty ms", "fixed ms", "gain", "other fixes"), map(_fault_row, faults)),
        "### Healthy steps, and traps\n\n"
        "Something looks like a fault but is not: `innocent` is the fix that it suggests, which would not help.\n",
        _table(("case", "cause", "innocent", "as it is, ms", "without it, ms", "gain"), map(_innocent_row, guarded)),
    ]


def _stories(cases: Sequence[Case]) -> list[str]:
    stories = (f"**`{case.name}`** ({case.cause}). {_one_paragraph(case.story)}\n" for case in cases)
    return ["### What is planted, and why the fix is right\n", *stories]


def _table(columns: Sequence[str], rows: Any) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _fault_row(case: dict[str, Any]) -> list[str]:
    faulty = case["bare_step_ns"]["faulty"]["step_ns"]
    others = [f"`{fix}` {faulty / time['step_ns']:.2f}×" for fix, time in case["other_fixes"].items()]
    return [
        f"`{case['name']}`",
        case["cause"],
        f"`{case['fix']}`",
        _ms(faulty),
        _ms(case["bare_step_ns"]["fixed"]["step_ns"]),
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
