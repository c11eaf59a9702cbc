"""Check the words of an ncu command line: options, sets and sections, by the tool's own help where it is installed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches

from msgspec.structs import replace

from warpline.doctor.command_line import Command, Option
from warpline.doctor.machine import Machine
from warpline.doctor.model import Check
from warpline.doctor.remark import Remark

OPTIONS = frozenset(
    f"--{name}"
    for name in (
        *("help", "version", "mode", "port", "max-connections", "config-file", "config-file-path", "check-exit-code"),
        *("injection-path-32", "injection-path-64", "preload-library", "call-stack", "call-stack-type", "nvtx"),
        *("target-processes", "target-processes-filter", "support-32bit", "null-stdin", "hostname", "kill"),
        *("replay-mode", "app-replay-buffer", "app-replay-match", "app-replay-mode", "graph-profiling"),
        *("range-replay-options", "list-sets", "set", "list-sections", "section-folder", "section-folder-recursive"),
        *("section-folder-restore", "list-rules", "apply-rules", "rule", "import-source", "import-sass"),
        *("source-folders", "list-metrics", "query-metrics", "query-metrics-mode", "query-metrics-collection"),
        *("list-chips", "chips", "profile-from-start", "disable-profiler-start-stop", "quiet", "verbose"),
        *("cache-control", "clock-control", "pipeline-boost-state", "devices", "filter-mode", "kernel-id"),
        *("kernel-name", "kernel-name-base", "rename-kernels", "rename-kernels-export", "rename-kernels-path"),
        *("launch-count", "launch-skip", "launch-skip-before-match", "section", "metrics", "disable-extra-suffixes"),
        *("nvtx-include", "nvtx-exclude", "range-filter", "nvtx-push-pop-scope", "native-include", "native-exclude"),
        *("python-include", "python-exclude", "pm-sampling-interval", "pm-sampling-buffer-size"),
        *("pm-sampling-max-passes", "warp-sampling-interval", "warp-sampling-max-passes", "warp-sampling-buffer-size"),
        *("sampling-interval", "sampling-max-passes", "sampling-buffer-size", "log-file", "export"),
        *("force-overwrite", "import", "open-in-ui", "csv", "page", "print-source", "resolve-source-file"),
        *("print-details", "print-metric-name", "print-units", "print-metric-attribution", "print-fp"),
        *("print-kernel-base", "print-metric-instances", "print-nvtx-rename", "print-rule-details", "print-summary"),
        *("communicator", "communicator-num-peers", "communicator-tcp-num-peers", "communicator-shmem-num-peers"),
        *("lockstep-kernel-launch", "lockstep-nvtx-include", "lockstep-nvtx-exclude", "profile-cc-mode"),
    )
)
"""The options of ncu 2020.1 to 2025.4."""
SETS = frozenset({"basic", "detailed", "full", "nvlink", "pmsampling", "roofline", "source", "default"})
SECTIONS = frozenset(
    {
        *("C2CLink", "ComputeWorkloadAnalysis", "InstructionStats", "LaunchStats", "MemoryWorkloadAnalysis"),
        *("MemoryWorkloadAnalysis_Chart", "MemoryWorkloadAnalysis_Tables", "MemoryWorkloadAnalysis_Deprecated"),
        *("NumaAffinity", "Nvlink", "Nvlink_Tables", "Nvlink_Topology", "Occupancy", "PmSampling"),
        *("PmSampling_WarpStates", "SchedulerStats", "SourceCounters", "SpeedOfLight", "SpeedOfLight_RooflineChart"),
        *("SpeedOfLight_HierarchicalDoubleRooflineChart", "SpeedOfLight_HierarchicalHalfRooflineChart"),
        *("SpeedOfLight_HierarchicalSingleRooflineChart", "SpeedOfLight_HierarchicalTensorRooflineChart"),
        *("WarpStateStats", "WorkloadDistribution", "Tile"),
    }
)
_RENAMED = {
    "--output": "--export",
    "--out": "--export",
    "--output-file": "--export",
    "--metric": "--metrics",
    "--sections": "--section",
    "--kernel": "--kernel-name",
    "--kernels": "--kernel-name",
    "--chip": "--chips",
    "--force": "--force-overwrite",
    "--target-process": "--target-processes",
    "--clock": "--clock-control",
    "--device": "--devices",
    "--details-all": "--print-details",
    "--units": "--print-units",
    "--fp": "--print-fp",
    "--summary": "--print-summary",
}
"""What people type: nsys's names, singular for plural, and names of 2019 and 2020."""
REMOVED = ("--kernel-regex", "--kernel-regex-base")
_NAME = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]+)")


def option_remarks(command: Command, machine: Machine) -> Iterator[Remark]:
    """Options, sets and sections that ncu does not know."""
    known = _known_options(machine)
    for option in command.options:
        if option.name.startswith("--") and option.name not in REMOVED and not _is_known(option.name, known):
            yield _unknown_option(option, known)
    for name in command.values("--set"):
        if name and name not in SETS and command.value("--section-folder") is None:
            yield _unknown_word("set", name, SETS)
    if command.value("--section-folder") is None and command.value("--section-folder-recursive") is None:
        for name in command.values("--section"):
            if name and not name.startswith("regex:") and name not in SECTIONS:
                yield _unknown_word("section", name, SECTIONS)


def _known_options(machine: Machine) -> frozenset[str]:
    """What the installed ncu prints as its help; else the table."""
    path = machine.which("ncu")
    answer = machine.ask([path, "--help"]) if path else None
    listed = frozenset(f"--{name}" for name in _NAME.findall(answer.output)) if answer and answer.status == 0 else None
    return listed if listed and "--kernel-name" in listed else OPTIONS


def _is_known(name: str, known: frozenset[str]) -> bool:
    """ncu takes the beginning of an option where it can mean one option only."""
    return name in known or sum(option.startswith(name) for option in known) == 1


def _unknown_option(option: Option, known: frozenset[str]) -> Remark:
    near = _RENAMED.get(option.name) or next(iter(get_close_matches(option.name, known, 1, 0.75)), "")
    seen = f"ncu has no option {option.name}"
    means = "It stops at once: unrecognised option."
    if not near:
        return Remark(Check("unknown-option", "problem", seen, means, ("ncu --help",)))
    value = "all" if option.name == "--details-all" else option.value
    text = f"{near} {value}" if value is not None else near
    return Remark(Check("unknown-option", "problem", seen, means, (text,)), _renamed(option, near, value))


def _renamed(option: Option, name: str, value: str | None) -> Callable[[Command], Command]:
    def rename(command: Command) -> Command:
        words = (name,) if value is None else (name, value)
        new = Option(name, value, words)
        same = (option.name, option.value)
        options = tuple(new if (one.name, one.value) == same else one for one in command.options)
        return replace(command, options=options)

    return rename


def _unknown_word(kind: str, name: str, known: frozenset[str]) -> Remark:
    by_case = {word.lower(): word for word in known}
    near = by_case.get(name.lower()) or next(iter(get_close_matches(name, known, 1, 0.6)), "")
    seen = f"ncu has no {kind} {name}"
    means = f"Its {kind}s: {', '.join(sorted(known))}." if kind == "set" else "It stops at once."
    check = Check(f"unknown-{kind}", "problem", seen, means, (f"--{kind} {near}" if near else f"ncu --list-{kind}s",))
    return Remark(check, _renamed(Option(f"--{kind}", name, ()), f"--{kind}", near) if near else None)
