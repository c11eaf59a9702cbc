"""What to ask for where a chip lacks a metric, or where the name never existed: patterns, tried in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from msgspec import Struct

from warpline.hardware.counters.names import MetricName, default_suffix, is_ncu_only, split, suffix_problem
from warpline.hardware.counters.nvprof import NVPROF
from warpline.hardware.counters.table import Catalogue

NEAR: Final = 5
_SIMILAR: Final = 0.34
"""Share of words that two names must have in common to be called near."""
_SPELT_ALIKE: Final = 0.8
"""Likeness of letters, where words are misspelt."""
_SECTORS = "in sectors of 32 bytes"
_NO_DRAM = "the chip's memory is the CPU's and has no counters; L2 misses are what goes there, in sectors of 32 bytes"
_ALL_SPACES = "of all memory spaces together"


class Replacement(Struct, frozen=True):
    """A metric to ask for instead."""

    name: str
    note: str = ""
    """How it differs."""


_RULES: Final[tuple[tuple[str, tuple[tuple[str, str], ...]], ...]] = (
    (
        r"smsp__warps_issue_stalled_(\w+?)_per_warp_active",
        (
            (
                r"smsp__average_warps_issue_stalled_\1_per_issue_active.ratio",
                "warps stalled for it per issued instruction",
            ),
            (r"smsp__warp_issue_stalled_\1_per_warp_active.pct", "share of all warp cycles"),
        ),
    ),
    (
        r"(sm|smsp)__pipe_tensor_(?:op|subpipe)_gmma_cycles_active",
        (
            (r"\1__pipe_tensor_op_hmma_type_hmma_hgmma_qgmma_cycles_active", ""),
            (r"\1__pipe_tensor_subpipe_hmma_cycles_active", ""),
            (r"\1__pipe_tensor_op_hmma_cycles_active", ""),
        ),
    ),
    (
        r"(\w+?)__((?:average_)?(?:inst_executed_)?)pipe_tensor_(?:op|subpipe)_([hid])mma\w*?(_cycles_active|_per_warp|)(?:_v2)?",
        (
            (r"\1__\2pipe_tensor_op_\3mma\4", ""),
            (r"\1__\2pipe_tensor_subpipe_\3mma\4", ""),
            (r"\1__\2pipe_tensor\4", "of all tensor instructions together"),
        ),
    ),
    (
        r"(\w+?)__(inst_executed_)?pipe_(?:tc|tensor)\w*?(_cycles_active)?",
        ((r"\1__\2pipe_tensor\3", "of all tensor instructions together"),),
    ),
    (
        r"(?:l1tex|lts)__t_(?:bytes|sectors|requests)_equiv_l1(?:sector|tag)miss(_pipe_lsu_mem_\w+|)",
        (
            (r"lts__t_bytes_equiv_l1sectormiss\1", ""),
            (r"l1tex__t_sectors\1_lookup_miss", _SECTORS),
            (r"l1tex__m_xbar2l1tex_read_bytes", "read into L1 for all reasons"),
        ),
    ),
    (
        r"(dram|fbpa)__(?:dram_)?(bytes|sectors|cycles_active)_(?:op_)?(read|write)",
        (
            (r"dram__\2_\3", ""),
            (r"dram__\2_op_\3", ""),
            (r"fbpa__dram_\3_\2", ""),
            (r"lts__t_sectors_op_\3_lookup_miss", _NO_DRAM),
        ),
    ),
    (
        r"dram__(read|write)_(?:throughput|bytes)",
        (
            (r"dram__bytes_\1.sum.per_second", ""),
            (r"dram__bytes_op_\1.sum.per_second", ""),
            (r"lts__t_sectors_op_\1_lookup_miss", _NO_DRAM),
        ),
    ),
    (
        r"(?:gpu__dram_throughput|dram__\w+|fbpa__\w+)",
        ((r"lts__t_sectors_lookup_miss.sum", _NO_DRAM),),
    ),
    (r"(\w+?)__(\w*)pipe_fp16(\w*)", ((r"\1__\2pipe_fma_type_fp16\3", ""),)),
    (r"(\w+?)__(\w*)pipe_fma_type_fp16(\w*)", ((r"\1__\2pipe_fp16\3", ""),)),
    (
        r"(\w+?)__ops_path_tensor_src_(fp16|bf16|tf32)(?:_dst_(\w+?))?(_sparsity_o\w+)?",
        (
            (r"\1__ops_path_tensor_src_\2_dst_\3", "dense and sparse together"),
            (r"\1__ops_path_tensor_src_\2", "of all result types"),
            (r"\1__ops_path_tensor_src_\2_dst_fp32", ""),
            (r"\1__ops_path_tensor_src_fp16_bf16_tf32_dst_fp32", "of fp16, bf16 and tf32 together"),
            (r"sm__ops_path_tensor_src_\2_dst_\3", "counted per SM"),
        ),
    ),
    (
        r"(\w+?)__ops_path_tensor_src_fp8(?:_dst_(\w+?))?(_sparsity_o\w+)?",
        (
            (r"\1__ops_path_tensor_src_fp8_dst_fp32", ""),
            (r"\1__ops_path_tensor_src_fp8", "of all result types"),
            (r"\1__ops_path_tensor_src_fp4_fp6_fp8_dst_fp32", "of fp4, fp6 and fp8 together"),
        ),
    ),
    (
        r"l1tex__data_bank_conflicts_pipe_lsu_mem_(global|local|lg)\w*",
        ((r"l1tex__data_bank_conflicts_pipe_lsu", _ALL_SPACES),),
    ),
    (r"lts__t_(\w+?)_aperture_sysmem(\w*)", ((r"syslts__t_\1\2", ""),)),
    (r"lts__t_(\w+?)_aperture_(?:device|peer)(\w*)", ((r"lts__t_\1\2", "of device and peer memory together"),)),
    (r"sm__active_cycles", ((r"sm__cycles_active", ""),)),
    (r"(sm|smsp)__cta_launched", ((r"\1__ctas_launched", ""), (r"sm__ctas_launched", ""))),
    (r"sm__warps_active_per_active_cycle", ((r"sm__warps_active.avg.per_cycle_active", ""),)),
    (r"(?:sm__)?occupancy|sm__achieved_occupancy", ((r"sm__warps_active.avg.pct_of_peak_sustained_active", ""),)),
    (r"(\w+)_(?:realtime|v2)", ((r"\1", ""),)),
    (r"sm__(\w+)", ((r"smsp__\1", "counted per scheduler: four per SM"),)),
    (r"smsp__(\w+)", ((r"sm__\1", "counted per SM"),)),
)
"""A pattern of the name without suffixes, and what to try; a candidate may bring its own suffix."""


def replacements(name: str, chip: str, catalogue: Catalogue) -> list[Replacement]:
    """What the chip has instead of a metric that it lacks, the closest first; empty if nothing is known."""
    asked = split(name)
    found: dict[str, Replacement] = {}
    for candidate in _candidates(asked):
        usable = _usable(candidate, asked, chip, catalogue)
        if usable is not None:
            found.setdefault(usable.name, usable)
    return list(found.values())


def _candidates(asked: MetricName) -> Iterator[Replacement]:
    known = NVPROF.get(asked.base)
    if known is not None:
        yield Replacement(*known)
    for pattern, options in _RULES:
        match = re.fullmatch(pattern, asked.base)
        if match is not None:
            for template, note in options:
                yield Replacement(match.expand(template), note)


def _usable(candidate: Replacement, asked: MetricName, chip: str, catalogue: Catalogue) -> Replacement | None:
    """The candidate with a suffix that fits; None if the chip lacks it or if it is what was asked for."""
    name = split(candidate.name)
    if is_ncu_only(name):
        return candidate
    if not catalogue.exists(name.base, chip) or name.base == asked.base:
        return None
    if candidate.note == _NO_DRAM and catalogue.exists("dram__bytes", chip):
        return None
    if name.suffix:
        return candidate
    kind = catalogue.types[name.base]
    kept = asked.suffix if asked.suffix and not suffix_problem(MetricName("", name.base, asked.suffix), kind) else ""
    return Replacement(f"{name.base}.{kept or default_suffix(kind)}", candidate.note)


def near_names(name: str, chip: str | None, catalogue: Catalogue) -> list[str]:
    """Names that share most words with a name that nobody knows, the nearest first."""
    words = _words(split(name).base)
    scored = []
    for other in catalogue.names(chip):
        if "Triage" in other:
            continue
        theirs = _words(other)
        score = len(words & theirs) / len(words | theirs)
        if score >= _SIMILAR:
            scored.append((-score, len(other), other))
    found = [other for _, _, other in sorted(scored)[:NEAR]]
    return found or get_close_matches(split(name).base, catalogue.names(chip), NEAR, _SPELT_ALIKE)


def _words(base: str) -> set[str]:
    """The words of a name, without the s of a plural."""
    return {word.rstrip("s") for word in re.split(r"_+", base) if word}
