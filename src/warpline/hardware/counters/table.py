"""The names of all metrics per chip: from the libnvperf_host that is installed, else from a table in the package.

``python -m warpline.hardware.counters.table OUTPUT SOURCE LIBRARY…`` writes that table; a later library overrides an
earlier one, and SOURCE says in words where they are from.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from warpline.errors import UsageError
from warpline.hardware.counters.nvperf import TYPES

CHIPS: Final = {
    "sm_70": "GV100",
    "sm_72": "GV11B",
    "sm_75": "TU102",
    "sm_80": "GA100",
    "sm_86": "GA102",
    "sm_87": "GA10B",
    "sm_89": "AD102",
    "sm_90": "GH100",
    "sm_100": "GB100",
    "sm_103": "GB110",
    "sm_110": "GB10B",
    "sm_120": "GB202",
    "sm_121": "GB20B",
}
"""Each compute capability and the chip that stands for it in NVIDIA's library. GB10 (DGX Spark) is sm_121, GB20B."""
_TABLE: Final = "metrics.tsv"
_LIBRARY: Final = "libnvperf_host.so"
_HOLDERS: Final = ("nvidia", "ncu_report")
"""Packages in whose folders pip puts the library: nvidia-cuda-cupti (both names of it) and ncu-report."""
_CHILD_SECONDS: Final = 60


class MetricCatalogue(Struct, frozen=True):
    """Metric names without suffixes, their types, and the chips that have them."""

    source: str
    """Where the names are from, in words."""
    types: Mapping[str, str]
    """``counter``, ``ratio`` or ``throughput``."""
    chips: Mapping[str, frozenset[str]]
    """By name: the targets (``sm_90``) that have it."""

    def exists(self, name: str, chip: str) -> bool:
        """Whether a chip has the metric of that name, given without suffixes."""
        return chip in self.chips.get(name, ())

    def names(self, chip: str | None = None) -> list[str]:
        """All names, or those of a chip."""
        return [name for name, having in self.chips.items() if chip is None or chip in having]


def target_of(text: str) -> str:
    """A chip as the user names it (``sm_90``, ``90``, ``9.0``, ``cc90``, ``GH100``) as a target (``sm_90``)."""
    plain = text.strip().lower()
    for target, name in CHIPS.items():
        digits = target.removeprefix("sm_")
        dotted = f"{digits[:-1]}.{digits[-1]}"
        if plain in {target, f"{target}a", f"{target}f", digits, dotted, f"sm{digits}", f"cc{digits}", name.lower()}:
            return target
    raise UsageError("unknown-chip", f"there is no list of metrics for {text!r}", f"one of: {', '.join(CHIPS)}")


@cache
def package_catalogue() -> MetricCatalogue:
    """The table in the package: where its names are from, a header, then a line for each name."""
    text = files("warpline.hardware.counters").joinpath("data", _TABLE).read_text("ascii")
    source, _, *lines = text.splitlines()
    types: dict[str, str] = {}
    chips: dict[str, frozenset[str]] = {}
    for line in lines:
        name, types[name], having = line.split("\t")
        chips[name] = frozenset(having.split())
    return MetricCatalogue(f"the table in warpline, made from {source.removeprefix('# ')}", types, chips)


def catalogue(chip: str | None = None) -> MetricCatalogue:
    """What is known about metrics: the table in the package, with what an installed library says about the chip."""
    table = package_catalogue()
    library = installed_library()
    if chip is None or library is None:
        return table
    listed = list_metrics(library, [CHIPS[chip]])
    if not listed:
        return table
    types, chips = dict(table.types), dict(table.chips)
    found = {name: kind for kind in TYPES for name in listed[0][kind]}
    for name in [name for name, having in chips.items() if chip in having and name not in found]:
        chips[name] = chips[name] - {chip}
    for name, kind in found.items():
        types[name] = kind
        chips[name] = chips.get(name, frozenset()) | {chip}
    return MetricCatalogue(f"{library.name} in {library.parent}", types, chips)


def installed_library() -> Path | None:
    """The libnvperf_host of an installed package; None where there is none."""
    for holder in _HOLDERS:
        spec = find_spec(holder)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            found = sorted(Path(folder).glob(f"**/{_LIBRARY}"))
            if found:
                return max(found, key=_release)
    return None


def _release(library: Path) -> int:
    """The CUDA release in the folder's name (cu13); a newer library knows more chips."""
    return max((int(number) for number in re.findall(r"cu(\d+)", str(library))), default=0)


def list_metrics(library: Path, chips: Sequence[str]) -> list[dict[str, Any]]:
    """Ask the library in a process of its own; an empty list where it cannot answer."""
    command = [sys.executable, str(Path(__file__).with_name("nvperf.py")), str(library), *chips]
    try:
        finished = subprocess.run(command, capture_output=True, timeout=_CHILD_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [json.loads(line) for line in finished.stdout.splitlines()] if finished.returncode == 0 else []


def table_of(listed: Iterable[dict[str, Any]], source: str) -> str:
    """The table of the package."""
    by_chip = {chip["chip"]: chip for chip in listed}
    having: dict[tuple[str, str], list[str]] = {}
    for target, chip in CHIPS.items():
        for kind in TYPES:
            for name in by_chip.get(chip, {}).get(kind, ()):
                having.setdefault((name, kind), []).append(target)
    rows = (f"{name}\t{kind}\t{' '.join(targets)}" for (name, kind), targets in sorted(having.items()))
    return "\n".join([f"# {source}", "name\ttype\tchips", *rows, ""])


if __name__ == "__main__":
    by_chip: dict[str, dict[str, Any]] = {}
    for one in sys.argv[3:]:
        by_chip.update({chip["chip"]: chip for chip in list_metrics(Path(one), [])})
    Path(sys.argv[1]).write_text(table_of(by_chip.values(), sys.argv[2]), "ascii")
