"""Check ``ncu``: its words by the help of the ncu that is installed, else by a table, and its metrics by the chip."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from warpline.doctor.command_line import CommandOption, ParsedCommand
from warpline.doctor.failures import known_failure
from warpline.doctor.machine import Machine
from warpline.doctor.model import Check
from warpline.doctor.remark import Remark, output_remark, script_of, setting
from warpline.errors import UsageError
from warpline.hardware.counters.explain import Explanation, explain
from warpline.hardware.counters.table import catalogue, target_of
from warpline.package_data import read_table

SUGGESTED_LAUNCH_COUNT = "10"
LARGE_LAUNCH_SKIP = 1000
_LOOKS_LIKE_REGEX = re.compile(r"[*|^$\[\]+?]|\\.")
_QUERIES = (
    *("--list-sets", "--list-sections", "--list-rules", "--list-metrics", "--query-metrics", "--version", "--help"),
    "--import",
)
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]+)")
_ASK_CAPABILITY = ("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")


class _NcuWords(Struct, frozen=True):
    options: frozenset[str]
    sets: frozenset[str]
    sections: frozenset[str]
    removed: tuple[str, ...]
    renamed: dict[str, str]


@cache
def _words() -> _NcuWords:
    """The words of ncu's command line."""
    return read_table("doctor", "ncu", _NcuWords)


def ncu_remarks(command: ParsedCommand, machine: Machine) -> Iterator[Remark]:
    """All remarks about an ncu command."""
    if any(command.value(name) is not None for name in _QUERIES):
        return
    if not command.program:
        yield Remark(Check("no-program", "problem", "there is no program to run", "", ("ncu … python train.py",)))
        return
    inner = command.inner
    if inner is not None and inner.tool == "nsys":
        yield Remark(known_failure("two-cupti-clients").found("ncu runs nsys"))
        return
    if command.value("--target-processes") != "all":
        seen = "--target-processes all is not given"
        means = "An older ncu follows only the first process, but launchers and shells start a child process."
        check = known_failure("no-kernels-profiled").found(seen, "warning", means, ("--target-processes all",))
        yield Remark(check, setting("--target-processes", "all"))
    yield from _unknown_words(command, machine)
    yield from _metrics(command, machine)
    yield from _kernel_name(command)
    yield from _nvtx_filter(command)
    yield from _amount(command)
    if command.value("--clock-control") != "none":
        yield Remark(known_failure("ncu-is-no-stopwatch").found("ncu locks the clock to its base frequency by default"))
    if command.value("--profile-from-start") in ("off", "no", "0", "false"):
        script = script_of(command, machine)
        is_started = script is not None and "rofilerStart" in script
        if not is_started:
            seen = "--profile-from-start off: ncu profiles nothing until the program calls cudaProfilerStart"
            yield Remark(known_failure("no-kernels-profiled").found(seen, "note"))
    script = script_of(command, machine)
    if script is not None and re.search(r"torch\.profiler|torch\.autograd\.profiler", script):
        yield Remark(
            known_failure("two-cupti-clients").found("the script uses torch.profiler while ncu profiles", "warning")
        )
    output = output_remark(command, "--export", ".ncu-rep", machine)
    if output is not None:
        yield output


def _unknown_words(command: ParsedCommand, machine: Machine) -> Iterator[Remark]:
    """Options, sets and sections that ncu does not know."""
    known, words = _known_options(machine), _words()
    for option in command.options:
        if option.name.startswith("--") and option.name not in words.removed and not _is_known(option.name, known):
            yield _unknown_option(option, known)
    for name in command.values("--set"):
        if name and name not in words.sets and command.value("--section-folder") is None:
            yield _unknown_word("set", name, words.sets)
    if command.value("--section-folder") is None and command.value("--section-folder-recursive") is None:
        for name in command.values("--section"):
            if name and not name.startswith("regex:") and name not in words.sections:
                yield _unknown_word("section", name, words.sections)


def _known_options(machine: Machine) -> frozenset[str]:
    """What the installed ncu prints as its help; else the table."""
    path = machine.which("ncu")
    answer = machine.ask([path, "--help"]) if path else None
    listed = _OPTION.findall(answer.output) if answer and answer.status == 0 else []
    options = frozenset(f"--{name}" for name in listed)
    return options if "--kernel-name" in options else _words().options


def _is_known(name: str, known: frozenset[str]) -> bool:
    """ncu takes the beginning of an option where it can mean one option only."""
    return name in known or sum(option.startswith(name) for option in known) == 1


def _unknown_option(option: CommandOption, known: frozenset[str]) -> Remark:
    near = _words().renamed.get(option.name) or next(iter(get_close_matches(option.name, known, 1, 0.75)), "")
    seen = f"ncu has no option {option.name}"
    means = "It stops at once: unrecognised option."
    if not near:
        return Remark(Check("unknown-option", "problem", seen, means, ("ncu --help",)))
    value = "all" if option.name == "--details-all" else option.value
    text = f"{near} {value}" if value is not None else near
    return Remark(Check("unknown-option", "problem", seen, means, (text,)), _renamed(option, near, value))


def _renamed(option: CommandOption, name: str, value: str | None) -> Callable[[ParsedCommand], ParsedCommand]:
    def rename(command: ParsedCommand) -> ParsedCommand:
        words = (name,) if value is None else (name, value)
        new = CommandOption(name, value, words)
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
    return Remark(check, _renamed(CommandOption(f"--{kind}", name, ()), f"--{kind}", near) if near else None)


def _metrics(command: ParsedCommand, machine: Machine) -> Iterator[Remark]:
    """Metrics that ncu would refuse, on this machine's chip or on every chip."""
    requested = command.value("--metrics")
    if requested is None:
        return
    chip = _chip(machine)
    listed = catalogue(chip)
    better: list[str] = []
    wrong: list[Explanation] = []
    for name in [word.strip() for word in requested.split(",") if word.strip()]:
        found = explain(name, chip, listed) if not name.startswith("regex:") else None
        if found is None or found.usable:
            better.append(name)
            continue
        wrong.append(found)
        instead = _instead(found)
        if instead:
            better.append(instead)
    for found in wrong:
        yield Remark(_unknown_metric(found))
    if wrong and better:
        corrected = ",".join(dict.fromkeys(better))
        names = "metric" if len(wrong) == 1 else "metrics"
        check = Check("metrics-corrected", "note", f"{len(wrong)} {names} replaced or left out", "", ())
        yield Remark(check, setting("--metrics", corrected))


def _chip(machine: Machine) -> str | None:
    """The chip of this machine's first GPU; None without one, or where no list has it."""
    answer = machine.ask(_ASK_CAPABILITY)
    if answer is None or answer.status != 0 or not answer.output.strip():
        return None
    try:
        return target_of(answer.output.split()[0])
    except UsageError:
        return None


def _instead(found: Explanation) -> str:
    """The name to ask for; without a known chip, one that all chips have."""
    if found.state == "exists":
        return found.problem.rpartition(": ")[2]
    if found.chip is not None:
        options = found.instead.get(found.chip, ())
        return options[0].name if options else ""
    lists = [[option.name for option in options] for options in found.instead.values()]
    portable = [name for name in lists[0] if all(name in other for other in lists)] if lists else []
    return (portable or lists[0])[0] if lists else ""


def _unknown_metric(found: Explanation) -> Check:
    where = f"on {found.chip}" if found.chip else "on any chip"
    if found.state == "exists":
        return Check("unknown-metric", "problem", f"{found.name}: {found.problem}", "ncu stops: it cannot find it.")
    seen = f"{found.name} does not exist {where}"
    instead = _instead(found)
    do = (instead,) if instead else tuple(found.near[:3]) or (f"warpline metric {found.name}",)
    return Check("unknown-metric", "problem", seen, "ncu reports n/a, or stops: Failed to find metric.", do)


def _kernel_name(command: ParsedCommand) -> Iterator[Remark]:
    for old in _words().removed:
        if command.value(old) is not None:
            seen = f"{old} was removed from ncu"
            yield Remark(Check("removed-option", "problem", seen, "", ("-k regex:PATTERN",)))
    name = command.value("--kernel-name")
    if name is None:
        return
    failure = known_failure("no-kernels-profiled")
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
        yield Remark(failure.found(seen, "warning", "Use regex: to match part of a name.", (f"-k regex:{name}",)))
    if base != "function":
        return
    if re.search(r"::|<|\(|^void ", bare):
        needed = "demangled"
        seen = (
            f"-k {name} has template or namespace parts, which the default --kernel-name-base function does not match"
        )
    elif bare.startswith("_Z"):
        needed = "mangled"
        seen = f"-k {name} is a mangled name, but the default --kernel-name-base function matches the bare one"
    else:
        return
    means = "By default ncu matches only the bare function name."
    check = failure.found(seen, means=means, do=(f"--kernel-name-base {needed}",))
    yield Remark(check, setting("--kernel-name-base", needed))


def _nvtx_filter(command: ParsedCommand) -> Iterator[Remark]:
    name = command.value("--nvtx-include") or command.value("--nvtx-exclude")
    if name is None:
        return
    failure = known_failure("no-kernels-profiled")
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


def _amount(command: ParsedCommand) -> Iterator[Remark]:
    skip = command.value("--launch-skip") or "0"
    if skip.isdecimal() and int(skip) >= LARGE_LAUNCH_SKIP and command.value("--kernel-name") is not None:
        seen = f"--launch-skip {skip} with -k counts only launches of that name"
        means = "If there are fewer such launches, ncu profiles nothing."
        do = ("count them first: warpline stats TRACE -r cuda_gpu_kern_sum",)
        yield Remark(known_failure("no-kernels-profiled").found(seen, "warning", means, do))
    bounded = command.value("--launch-count") or command.value("--kernel-id") or command.value("--range-filter")
    if bounded is None:
        passes = "about forty times" if command.value("--set") == "full" else "several times"
        seen = "every launch is profiled: no --launch-count"
        means = f"ncu replays each kernel {passes}; a training run can take days."
        check = Check("unbounded", "warning", seen, means, (f"--launch-count {SUGGESTED_LAUNCH_COUNT}",))
        yield Remark(check, setting("--launch-count", SUGGESTED_LAUNCH_COUNT))
