"""Check ``ncu``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpline.doctor import failures
from warpline.doctor.command_line import Command
from warpline.doctor.machine import Machine
from warpline.doctor.model import Check
from warpline.doctor.ncu_metrics import metric_remarks
from warpline.doctor.ncu_options import REMOVED, option_remarks
from warpline.doctor.remark import Remark, output_remark, script_of, setting

SUGGESTED_LAUNCH_COUNT = "10"
LARGE_LAUNCH_SKIP = 1000
_LOOKS_LIKE_REGEX = re.compile(r"[*|^$\[\]+?]|\\.")
_QUERIES = (
    *("--list-sets", "--list-sections", "--list-rules", "--list-metrics", "--query-metrics", "--version", "--help"),
    "--import",
)


def ncu_remarks(command: Command, machine: Machine) -> Iterator[Remark]:
    """All remarks about an ncu command."""
    if any(command.value(name) is not None for name in _QUERIES):
        return
    if not command.program:
        yield Remark(Check("no-program", "problem", "there is no program to run", "", ("ncu … python train.py",)))
        return
    inner = command.inner
    if inner is not None and inner.tool == "nsys":
        yield Remark(failures.TWO_CUPTI_CLIENTS.found("ncu runs nsys"))
        return
    if command.value("--target-processes") != "all":
        seen = "--target-processes all is not given"
        means = "An older ncu follows only the first process, but launchers and shells start a child process."
        check = failures.NO_KERNELS_PROFILED.found(seen, "warning", means, ("--target-processes all",))
        yield Remark(check, setting("--target-processes", "all"))
    yield from option_remarks(command, machine)
    yield from metric_remarks(command, machine)
    yield from _kernel_name(command)
    yield from _nvtx_filter(command)
    yield from _amount(command)
    if command.value("--clock-control") != "none":
        yield Remark(failures.NCU_IS_NO_STOPWATCH.found("ncu locks the clock to its base frequency by default"))
    if command.value("--profile-from-start") in ("off", "no", "0", "false"):
        script = script_of(command, machine)
        begun = script is not None and "rofilerStart" in script
        if not begun:
            seen = "--profile-from-start off: ncu profiles nothing until the program calls cudaProfilerStart"
            yield Remark(failures.NO_KERNELS_PROFILED.found(seen, "note"))
    script = script_of(command, machine)
    if script is not None and re.search(r"torch\.profiler|torch\.autograd\.profiler", script):
        yield Remark(failures.TWO_CUPTI_CLIENTS.found("the script uses torch.profiler while ncu profiles", "warning"))
    output = output_remark(command, "--export", ".ncu-rep", machine)
    if output is not None:
        yield output


def _kernel_name(command: Command) -> Iterator[Remark]:
    for old in REMOVED:
        if command.value(old) is not None:
            seen = f"{old} was removed from ncu"
            yield Remark(Check("removed-option", "problem", seen, "", ("-k regex:PATTERN",)))
    name = command.value("--kernel-name")
    if name is None:
        return
    failure = failures.NO_KERNELS_PROFILED
    bare = name.removeprefix("regex:")
    base = command.value("--kernel-name-base") or "function"
    if not name.startswith("regex:") and _LOOKS_LIKE_REGEX.search(name):
        seen = f"-k {name} matches literally, not as a pattern"
        yield Remark(
            failure.found(seen, means="ncu treats a name as a pattern only after regex:.", do=(f"-k regex:{name}",)),
            setting("--kernel-name", f"regex:{name}"),
        )
    elif not name.startswith("regex:") and base == "function" and re.fullmatch(r"\w+", name):
        seen = f"-k {name} matches only kernels whose full name is {name}"
        yield Remark(failure.found(seen, "note", "Use regex: to match part of a name.", (f"-k regex:{name}",)))
    if base == "function" and re.search(r"::|<|\(|^void ", bare):
        seen = (
            f"-k {name} has template or namespace parts, which the default --kernel-name-base function does not match"
        )
        yield Remark(
            failure.found(
                seen, means="By default ncu matches only the bare function name.", do=("--kernel-name-base demangled",)
            ),
            setting("--kernel-name-base", "demangled"),
        )
    elif base == "function" and bare.startswith("_Z"):
        seen = f"-k {name} is a mangled name, but the default --kernel-name-base function matches the bare one"
        yield Remark(
            failure.found(
                seen, means="By default ncu matches only the bare function name.", do=("--kernel-name-base mangled",)
            ),
            setting("--kernel-name-base", "mangled"),
        )


def _nvtx_filter(command: Command) -> Iterator[Remark]:
    name = command.value("--nvtx-include") or command.value("--nvtx-exclude")
    if name is None:
        return
    failure = failures.NO_KERNELS_PROFILED
    if command.value("--nvtx") is None:
        seen = "a filter by NVTX range without --nvtx"
        yield Remark(
            failure.found(seen, means="ncu uses NVTX only with --nvtx.", do=("--nvtx",)), setting("--nvtx", None)
        )
    if "/" not in name and command.value("--nvtx-include") is not None:
        seen = f"--nvtx-include {name} selects start/end ranges"
        means = "torch.cuda.nvtx and nvtx.annotate use push/pop ranges, which need a trailing slash."
        yield Remark(
            failure.found(seen, "warning", means, (f'--nvtx-include "{name}/"',)), setting("--nvtx-include", f"{name}/")
        )


def _amount(command: Command) -> Iterator[Remark]:
    skip = command.value("--launch-skip") or "0"
    if skip.isdecimal() and int(skip) >= LARGE_LAUNCH_SKIP and command.value("--kernel-name") is not None:
        seen = f"--launch-skip {skip} with -k counts only launches of that name"
        means = "If there are fewer such launches, ncu profiles nothing."
        do = ("count them first: warpline stats TRACE -r cuda_gpu_kern_sum",)
        yield Remark(failures.NO_KERNELS_PROFILED.found(seen, "warning", means, do))
    bounded = command.value("--launch-count") or command.value("--kernel-id") or command.value("--range-filter")
    if bounded is None:
        passes = "about forty times" if command.value("--set") == "full" else "several times"
        seen = "every launch is profiled: no --launch-count"
        means = f"ncu replays each kernel {passes}; a training run can take days."
        check = Check("unbounded", "warning", seen, means, (f"--launch-count {SUGGESTED_LAUNCH_COUNT}",))
        yield Remark(check, setting("--launch-count", SUGGESTED_LAUNCH_COUNT))
