"""The parts of a metric's name: what ncu puts before it, the unit, the base, and the suffixes."""

from __future__ import annotations

import re

from msgspec import Struct

ROLLUPS = ("sum", "avg", "min", "max")
PER = {
    "per_second": "per second of the kernel's time",
    "per_cycle_active": "per cycle in which the unit worked",
    "per_cycle_elapsed": "per cycle of the kernel's time",
    "per_cycle_in_region": "per cycle of the measured region",
    "per_cycle_in_frame": "per cycle of the frame",
    "pct_of_peak_sustained_active": "in percent of what the unit can sustain, over the cycles in which it worked",
    "pct_of_peak_sustained_elapsed": "in percent of what the unit can sustain, over the kernel's whole time",
    "pct_of_peak_sustained_region": "in percent of what the unit can sustain, over the measured region",
    "pct_of_peak_sustained_frame": "in percent of what the unit can sustain, over the frame",
    "peak_sustained": "the most that the unit can sustain per cycle",
    "peak_sustained_active": "the most that the unit could have done while it worked",
    "peak_sustained_active.per_second": "the most that the unit could have done per second while it worked",
    "peak_sustained_elapsed": "the most that the unit could have done in the kernel's time",
    "peak_sustained_elapsed.per_second": "the most that the unit could have done per second",
    "peak_sustained_region": "the most that the unit could have done in the region",
    "peak_sustained_region.per_second": "the most that the unit could have done per second of the region",
    "peak_sustained_frame": "the most that the unit could have done in the frame",
    "peak_sustained_frame.per_second": "the most that the unit could have done per second of the frame",
}
"""Suffixes of counters and throughputs, behind a roll-up."""
OF_RATIOS = {
    "ratio": "the ratio itself",
    "pct": "the ratio in percent of its largest value",
    "max_rate": "the ratio's largest value",
}
_ROLLUP_WORDS = {
    "sum": "summed over all instances of the unit",
    "avg": "the average over all instances of the unit",
    "min": "the smallest of all instances of the unit",
    "max": "the largest of all instances of the unit",
}
MAX_NAME_CHARS = 300
"""No metric's name has more; the patterns for names take far longer for long texts."""
_BEFORE = re.compile(r"(group|breakdown|pmsampling|regex):")
_SAMPLED = re.compile(r"(?:[A-Z]\w*\.)?Triage\w*\.")
"""Names of PM sampling begin with the pass and its kind: ``TPC.TriageCompute.``."""
_NCU_ONLY = re.compile(
    r"(?:launch|derived|profiler|numa|nvlink|c2clink|sass|tpc_id|pmsampling|group|context|nvrtc|device)__"
    r"|smsp__pcsamp_|(?:sm|smsp)__maximum_warps_|smsp__branch_targets_threads_|derived_|memory_(?:l1|l2|type|access)"
    r"|(?:thread_)?inst_executed(?:_true)?$|smsp__sass_inst_executed_memdesc_"
)


class MetricName(Struct, frozen=True):
    """A name, taken apart: ``sm__throughput.avg.pct_of_peak_sustained_elapsed``."""

    before: str
    """``group``, ``breakdown`` or ``pmsampling``, where ncu takes such a word before a name."""
    base: str
    """Without suffixes."""
    suffix: str
    """Everything behind the base."""

    @property
    def unit(self) -> str:
        """The hardware unit: the part before the two underscores."""
        return self.base.partition("__")[0] if "__" in self.base else ""


def split(name: str) -> MetricName:
    """Take a name apart."""
    text = name.strip()[:MAX_NAME_CHARS]
    before = ""
    if (found := _BEFORE.match(text)) is not None:
        before, text = found[1], text[found.end() :]
    elif (found := _SAMPLED.match(text)) is not None:
        before, text = "pmsampling", text[found.end() :]
    base, _, suffix = text.partition(".")
    return MetricName(before, base, suffix)


def is_ncu_only(name: MetricName) -> bool:
    """Whether Nsight Compute makes the metric itself, so that no list of the chip's counters has it."""
    return name.before in {"group", "breakdown", "pmsampling"} or _NCU_ONLY.match(name.base) is not None


def suffix_problem(name: MetricName, kind: str) -> str:
    """What is wrong with the suffix for a metric of that type; empty if nothing is."""
    if not name.suffix:
        return ""
    if kind == "ratio":
        return "" if name.suffix in OF_RATIOS else "it is a ratio, which takes .ratio, .pct or .max_rate"
    rollup, _, rest = name.suffix.partition(".")
    if rollup not in ROLLUPS:
        return f"it is a {kind}, which takes .sum, .avg, .min or .max first"
    if rest and rest not in PER:
        return f"there is no suffix .{rest}"
    if kind == "throughput" and not rest.startswith("pct_of_peak"):
        return "it is a throughput, which takes .avg.pct_of_peak_sustained_elapsed"
    return ""


def suffix_words(name: MetricName) -> str:
    """The suffix in words."""
    if name.suffix in OF_RATIOS:
        return OF_RATIOS[name.suffix]
    rollup, _, rest = name.suffix.partition(".")
    words = [_ROLLUP_WORDS.get(rollup, ""), PER.get(rest, "")]
    return ", ".join(word for word in words if word)


def default_suffix(kind: str) -> str:
    """The suffix that most people want for a metric of that type."""
    return {"ratio": "ratio", "throughput": "avg.pct_of_peak_sustained_elapsed"}.get(kind, "sum")
