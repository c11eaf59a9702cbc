"""A metric's name in words, by the grammar of its parts; for the thousands that nobody has described one by one."""

from __future__ import annotations

import re
from typing import Final

UNITS: Final = {
    "sm": "the SMs",
    "smsp": "the schedulers (four per SM)",
    "l1tex": "the L1 cache",
    "lts": "the L2 cache",
    "syslts": "the part of L2 for system memory",
    "ltc": "the L2 cache",
    "dram": "DRAM",
    "fbpa": "the DRAM interface",
    "gpc": "the clusters of SMs (GPC)",
    "tpc": "the pairs of SMs (TPC)",
    "gpu": "the GPU",
    "idc": "the constant cache of indexed constants",
    "gcc": "the cache of constants and instructions in a GPC",
    "gr": "the front end",
    "fe": "the front end",
    "sys": "the system clock domain",
    "pcie": "PCIe",
    "nvlrx": "NVLink, receiving",
    "nvltx": "NVLink, sending",
    "ctc": "the chip-to-chip link",
    "mcc": "the memory controller",
    "lrc": "the L2 request coalescer",
    "launch": "the launch",
    "derived": "other metrics",
    "device": "the device",
    "profiler": "ncu's own run",
}
_QUANTITIES: Final = (
    ("thread_inst_executed", "instructions, counted once per thread"),
    ("inst_executed", "instructions, counted once per warp"),
    ("inst_issued", "issued instructions"),
    ("data_bank_conflicts", "passes that bank conflicts add"),
    ("data_pipe_lsu_wavefronts", "passes through the data stage"),
    ("wavefronts", "passes"),
    ("sector_hit_rate", "share of 32-byte sectors found"),
    ("hit_rate", "share found"),
    ("t_sectors", "32-byte sectors"),
    ("sectors", "32-byte sectors"),
    ("t_requests", "requests"),
    ("requests", "requests"),
    ("t_tag_requests", "tag lookups"),
    ("bytes", "bytes"),
    ("cycles_active", "cycles of activity"),
    ("cycles_elapsed", "cycles"),
    ("warps_active", "resident warps"),
    ("warps_eligible", "warps that could issue"),
    ("warps_launched", "launched warps"),
    ("ctas_launched", "launched blocks"),
    ("issue_active", "cycles with an issued instruction"),
    ("ops_path_tensor", "operations of the tensor cores"),
    ("throughput", "use of the busiest part, in percent"),
    ("time_duration", "time"),
)
_PARTS: Final = (
    (r"pipe_(\w+?)(?=_|$)", "on the {} pipe"),
    (r"op_(ld|load)(?=_|$)", "by loads"),
    (r"op_(st|store)(?=_|$)", "by stores"),
    (r"op_(read)(?=_|$)", "by reads"),
    (r"op_(write)(?=_|$)", "by writes"),
    (r"op_(atom|red)\w*?(?=_|$)", "by atomics"),
    (r"op_(branch)(?=_|$)", "by branches"),
    (r"mem_(global|shared|local|texture|surface|dshared)(?=_|$)", "of {} memory"),
    (r"mem_(lg)(?=_|$)", "of local and global memory"),
    (r"lookup_(hit)", "that hit"),
    (r"lookup_(miss)", "that missed"),
    (r"srcunit_(tex|l1)(?=_|$)", "that come from L1"),
    (r"aperture_(device)", "in device memory"),
    (r"aperture_(sysmem)", "in system memory"),
    (r"aperture_(peer)", "on another GPU"),
    (r"src_([a-z0-9]+)", "with inputs in {}"),
    (r"dst_([a-z0-9]+)", "with results in {}"),
    (r"(pred_on)", "not counting threads that are masked off"),
    (r"stalled_(\w+?)(?=_per_|_not_issued|$)", "stalled: {}"),
)


def in_words(base: str) -> str:
    """What the name says: "32-byte sectors of global memory by loads that missed, in the L1 cache"."""
    unit, _, rest = base.partition("__")
    quantity = next((words for mark, words in _QUANTITIES if mark in rest), rest.replace("_", " "))
    details = []
    for pattern, words in _PARTS:
        found = re.search(pattern, rest)
        if found is not None:
            details.append(words.format(found[1]))
    place = UNITS.get(unit)
    return " ".join([quantity, *details]) + (f", in {place}" if place else "")
