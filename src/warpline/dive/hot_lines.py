"""The source lines where warps wait most, from the samples of the source counters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from warpline.dive.metrics import NO_WAIT, STALL_WORDS
from warpline.dive.model import HotLine
from warpline.sources.ncu.model import Instruction, KernelReport

PREFIX = "smsp__pcsamp_warps_issue_stalled_"
SAMPLES = "smsp__pcsamp_sample_count"
ALIASES = {"warpgroup_arrive": "gmma", "no_instructions": "no_instruction"}
"""The sampler calls two stalls otherwise."""
SHOWN = 3


def _by_stall(counters: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in counters.items():
        if name.startswith(PREFIX) and not name.endswith("_not_issued"):
            word = name.removeprefix(PREFIX)
            found[ALIASES.get(word, word)] = value
    return found


def hot_lines(kernel: KernelReport) -> tuple[HotLine, ...]:
    """The lines with most samples, longest first; empty where the report has no samples or no lines."""
    if kernel.source is None:
        return ()
    stalls: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    worst: dict[tuple[str, int], tuple[float, Instruction]] = {}
    for instruction in kernel.source.instructions:
        at = (instruction.file, instruction.line)
        here = _by_stall(instruction.counters)
        total = sum(here.values()) or instruction.counters.get(SAMPLES, 0.0)
        if not instruction.line or not total:
            continue
        for word, value in (here or {"misc": total}).items():
            stalls[at][word] += value
        if at not in worst or total > worst[at][0]:
            worst[at] = (total, instruction)
    whole = sum(
        sum(_by_stall(one.counters).values()) or one.counters.get(SAMPLES, 0.0) for one in kernel.source.instructions
    )
    order = sorted(stalls, key=lambda at: -sum(stalls[at].values()))
    found = []
    for file, line in order[:SHOWN]:
        by_word = stalls[file, line]
        waits = {key: value for key, value in by_word.items() if key not in NO_WAIT} or by_word
        word = max(waits, key=lambda key: waits[key])
        text = _line(kernel.source.files.get(file, ""), line)
        share = sum(by_word.values()) / whole
        found.append(HotLine(file, line, text, share, STALL_WORDS.get(word, word), worst[file, line][1].sass))
    return tuple(found)


def _line(text: str, line: int) -> str:
    lines = text.splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
