"""Names and labels: the bare function of a kernel's name, and the metric behind a label of the details page."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from warpline.package_data import read_table

_UNNAMED = ("(anonymous namespace)::", "<unnamed>::")
"""Namespaces with the marks that end a function's name."""
_WORD = re.compile(r"[\w.:]++")
_METRIC = re.compile(r"\w__[\w.:]")
"""What a word has that is the name of a metric."""

_MEMORY_THROUGHPUT = {
    True: "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    False: "dram__bytes.sum.per_second",
}
"""Two sections have a metric of this label: a share of the peak in one, bytes per second in the other."""


@lru_cache(maxsize=10_000)
def metric_of(label: str, unit: str) -> str:
    """The metric that a line of the details page shows; the label itself where it is not known."""
    for word in _WORD.findall(label):
        if _METRIC.search(word):  # ncu --print-metric-name name, or label-name
            return str(word)
    plain = _without_unit(label)
    if plain == "Memory Throughput":
        return _MEMORY_THROUGHPUT[unit == "%"]
    return _labels().get(plain, label)


@cache
def _labels() -> dict[str, str]:
    return read_table("sources", "ncu_labels", dict[str, str])


def _without_unit(label: str) -> str:
    """The label without a unit in brackets at its end."""
    opened = label.find("[", label.rfind("]", 0, -1) + 1)
    return label[:opened].rstrip() if opened >= 0 and label.endswith("]") else label


@lru_cache(maxsize=10_000)
def function_of(name: str) -> str:
    """The bare function of a demangled name, without return type, namespaces, template and call arguments."""
    plain = name
    for namespace in _UNNAMED:
        plain = plain.replace(namespace, "")
    head = re.split(r"[<(]", plain, maxsplit=1)[0].strip()
    return head.rpartition(" ")[2].rpartition("::")[2] or name
