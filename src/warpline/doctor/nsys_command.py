"""Check ``nsys profile``; the words of -t by the help of the nsys that is installed, else by a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache, partial

from msgspec import Struct
from msgspec.structs import replace

from warpline.doctor.command_line import NSYS_VERBS, CommandOption, ParsedCommand
from warpline.doctor.failures import known_failure
from warpline.doctor.machine import Machine
from warpline.doctor.model import Check
from warpline.doctor.remark import Remark, output_remark, script_of, setting
from warpline.package_data import read_table

REGISTER_ONLY = "NSYS_NVTX_PROFILER_REGISTER_ONLY"
RECORDING_VERBS = ("profile", "launch", "start", "")
_DEFAULT_TRACES = "cuda,opengl,nvtx,osrt"
_GRAPHS = re.compile(
    r"cuda[-_]?graph|torch[-_.]?compile|--compile\b|reduce-overhead|\bvllm\b|\bsglang\b|trtllm|tensorrt", re.I
)
_FORKS = re.compile(r"\bvllm\b|\bsglang\b|\bray\b|num[-_]workers[ =][1-9]|multiprocessing", re.I)
_PYTHON = re.compile(r"^(?:python[\d.]*|torchrun|accelerate|deepspeed|vllm|uv|poetry|ipython)$")
_RANK_LAUNCHERS = {"torchrun", "mpirun", "mpiexec", "srun"}
_TORCH_PROFILER = re.compile(r"torch\.profiler|torch\.autograd\.profiler|from torch\.profiler|kineto")
_OWN_PROFILER = re.compile(r"--(?:torch[-_])?profile(?:r)?\b(?!r?[-_]?(?:range|start))|TORCH_PROFILER|\bwarpline run\b")
_TABLE_VERSION = "nsys (up to 2025.3)"
_VERSION = re.compile(r"(\d{4})\.(\d+)")


class _Instead(Struct, frozen=True):
    traces: str = ""
    why: str = ""


class _NsysWords(Struct, frozen=True):
    traces: frozenset[str]
    options: tuple[str, ...]
    """Of nsys profile, launch and start."""
    instead: dict[str, _Instead]


@cache
def _words() -> _NsysWords:
    """The words of ``nsys profile -t``."""
    return read_table("doctor", "nsys", _NsysWords)


def nsys_remarks(command: ParsedCommand, machine: Machine, environment: dict[str, str]) -> Iterator[Remark]:
    """All remarks about an nsys command."""
    if command.verb and command.verb not in NSYS_VERBS:
        meant = get_close_matches(command.verb, NSYS_VERBS, 1, 0)[0]
        seen = f"nsys has no command {command.verb}"
        check = Check("unknown-command", "problem", seen, "It stops at once.", (f"nsys {meant} …",))
        yield Remark(check, lambda given: replace(given, verb=meant))
        command = replace(command, verb=meant)
    if command.verb not in RECORDING_VERBS:
        return
    if not command.verb:
        if not command.program:
            return
        check = Check("no-verb", "problem", "nsys without a verb runs nothing", "", ("nsys profile …",))
        yield Remark(check, lambda given: replace(given, verb="profile"))
        command = replace(command, verb="profile")
    yield from _program(command)
    yield from _misspelt_options(command)
    yield from _given_twice(command)
    yield from _trace_words(command, machine)
    yield from _what_is_traced(command)
    yield from _capture_range(command, machine, environment)
    yield from _bounds(command)
    yield from _processes(command, environment)
    yield from _other_profilers(command, machine, environment)
    output = output_remark(command, "--output", ".nsys-rep", machine)
    if output is not None:
        yield output


def _program(command: ParsedCommand) -> Iterator[Remark]:
    if not command.program and command.verb == "profile":
        seen = "there is no program to run"
        yield Remark(Check("no-program", "problem", seen, "", ("nsys profile … python train.py",)))


def _misspelt_options(command: ParsedCommand) -> Iterator[Remark]:
    """Options that are nearly one of nsys, or lack a dash; others may be of a newer nsys than the table."""
    known = {f"--{name}" for name in _words().options}
    for option in command.options:
        if option.name.startswith("--"):
            near = get_close_matches(option.name, known, 1, 0.8)
        else:
            near = [f"-{option.name}"] if f"-{option.name}" in known else []
        if option.name in known or not near:
            continue
        seen = f"nsys {command.verb} has no option {option.name}"
        check = Check("unknown-option", "problem", seen, "It stops at once.", (near[0],))
        words = tuple(word.replace(option.name, near[0], 1) for word in option.words)
        better = CommandOption(near[0], option.value, words)
        yield Remark(check, partial(_with_option_replaced, option=option, better=better))


def _with_option_replaced(command: ParsedCommand, option: CommandOption, better: CommandOption) -> ParsedCommand:
    return replace(command, options=tuple(better if one == option else one for one in command.options))


def _traced(command: ParsedCommand) -> list[str]:
    return (",".join(command.values("--trace")) or _DEFAULT_TRACES).split(",")


def _given_twice(command: ParsedCommand) -> Iterator[Remark]:
    """-t takes one list of words."""
    if len(given := command.values("--trace")) > 1:
        together = ",".join(dict.fromkeys(word for value in given for word in value.split(",") if word))
        seen = f"-t is given {len(given)} times: {', '.join(given)}"
        check = Check("trace-given-twice", "problem", seen, "nsys takes one list of words.", (f"-t {together}",))
        yield Remark(check, setting("--trace", together))


def _trace_words(command: ParsedCommand, machine: Machine) -> Iterator[Remark]:
    """Words of -t that this nsys does not know."""
    words = [word.strip() for value in command.values("--trace") for word in value.split(",") if word.strip()]
    if not words:
        return
    known, version = _known_words(machine)
    better: list[str] = []
    for word in words:
        if word in known:
            better.append(word)
            continue
        near = next(iter(get_close_matches(word, known, 1, 0.7)), "")
        instead = _words().instead.get(word, _Instead(near))
        seen = f"{version} does not know -t {word}"
        means = instead.why or "It stops at once."
        do = (f"-t {instead.traces}",) if instead.traces else (f"one of: {', '.join(sorted(known))}",)
        better += instead.traces.split(",") if instead.traces else []
        yield Remark(Check("unknown-trace", "problem", seen, means, do))
    if better != words:
        check = Check("traces-corrected", "note", "words of -t replaced or left out")
        yield Remark(check, setting("--trace", ",".join(dict.fromkeys(better)) or "cuda,nvtx"))


def _known_words(machine: Machine) -> tuple[frozenset[str], str]:
    """The words of the installed nsys, from its help; else those of the table. And whose words they are."""
    path = machine.which("nsys")
    if path is None:
        return _words().traces, _TABLE_VERSION
    help_text = machine.ask([path, "profile", "--help"])
    output = help_text.output if help_text is not None and help_text.status == 0 else ""
    values = output.partition("-t, --trace=")[2].partition("Possible values are ")[2]
    listed = frozenset(re.findall(r"'([a-z0-9-]++)'", re.split(r"\.\s", values, maxsplit=1)[0]))
    if "cuda" not in listed:
        return _words().traces, _TABLE_VERSION
    version = _VERSION.search(path)
    return listed, f"nsys {version[0]}" if version else "this nsys"


def _what_is_traced(command: ParsedCommand) -> Iterator[Remark]:
    traced = _traced(command)
    if not any(name.startswith("cuda") for name in traced):
        check = Check(
            "cuda-not-traced",
            "problem",
            f"--trace={','.join(traced)} records no GPU activity",
            "",
            ("-t cuda,nvtx",),
        )
        yield Remark(check, setting("--trace", ",".join(["cuda", *(name for name in traced if name != "none")])))
    elif command.value("--trace") is None:
        means = "By default, nsys also records OpenGL and every OS runtime call, which slows Python down."
        seen = f"no -t: nsys records {_DEFAULT_TRACES}"
        check = Check("default-traces", "warning", seen, means, ("-t cuda,nvtx",), known_failure("too-large").number)
        yield Remark(check, setting("--trace", "cuda,nvtx"))
    if command.value("--sample") not in ("none",):
        means = "nsys samples the CPU by default: gigabytes within seconds for a Python program, and slower steps."
        check = Check(
            "cpu-sampling",
            "warning",
            "CPU sampling is on",
            means,
            ("--sample=none",),
            known_failure("too-large").number,
        )
        yield Remark(check, setting("--sample", "none"))
    if command.value("--cpuctxsw") not in ("none",):
        means = "nsys records every context switch by default, which needs permissions and disk space."
        yield Remark(
            Check("context-switches", "note", "context switches are recorded", means, ("--cpuctxsw=none",), 19),
            setting("--cpuctxsw", "none"),
        )
    about = " ".join(command.program)
    if _GRAPHS.search(about) and command.value("--cuda-graph-trace") not in ("node",):
        seen = "the program seems to use CUDA graphs, but --cuda-graph-trace=node is not given"
        yield Remark(known_failure("graph-as-one-bar").found(seen), setting("--cuda-graph-trace", "node"))


def _capture_range(command: ParsedCommand, machine: Machine, environment: dict[str, str]) -> Iterator[Remark]:
    chosen = (command.value("--capture-range") or "none").lower()
    if chosen == "nvtx":
        yield from _nvtx_range(command, machine, environment)
    elif chosen == "cudaprofilerapi":
        script = script_of(command, machine)
        if script is not None and not re.search(r"cudaProfilerStart|profiler\.start\(\)|profiler_start", script):
            seen = "--capture-range=cudaProfilerApi, but the script does not call cudaProfilerStart"
            means = "Nothing is recorded unless an imported module calls it."
            do = ("torch.cuda.cudart().cudaProfilerStart() … torch.cuda.cudart().cudaProfilerStop()",)
            yield Remark(Check("range-never-begun", "warning", seen, means, do))
    if chosen != "none" and command.value("--capture-range-end") is None:
        seen = f"--capture-range={command.value('--capture-range')} without --capture-range-end"
        means = "nsys then ends its session after the first range, and may terminate the program."
        do = ("--capture-range-end=stop   (or repeat:3 for three ranges)",)
        yield Remark(Check("range-end", "warning", seen, means, do), setting("--capture-range-end", "stop"))
    if chosen == "none" and command.value("--capture-range-end") is not None:
        seen = "--capture-range-end has no effect without --capture-range"
        yield Remark(Check("range-end", "note", seen, "", ("--capture-range=cudaProfilerApi",)))


def _nvtx_range(command: ParsedCommand, machine: Machine, environment: dict[str, str]) -> Iterator[Remark]:
    if command.value("--nvtx-capture") is None:
        seen = "--capture-range=nvtx without --nvtx-capture"
        means = "nsys needs the name of the range that starts the recording."
        do = ("--nvtx-capture=NAME   (the name that the program pushes)",)
        yield Remark(Check("nvtx-range-unnamed", "problem", seen, means, do), setting("--nvtx-capture", "NAME"))
    if "nvtx" not in _traced(command):
        seen = f"--capture-range=nvtx, but nvtx is not in --trace={','.join(_traced(command))}"
        yield Remark(
            Check("nvtx-not-traced", "problem", seen, "nsys records no ranges.", ("-t cuda,nvtx",)),
            setting("--trace", ",".join([*_traced(command), "nvtx"])),
        )
    given = {**machine.environment, **environment, **command.environment}
    if given.get(REGISTER_ONLY) == "0":
        return
    script = script_of(command, machine)
    if script is not None and re.search(r"register_string|RegisterString|nvtx\.Domain|get_domain", script):
        return
    first = command.program[0].rpartition("/")[2] if command.program else ""
    seen = f"--capture-range=nvtx, but {REGISTER_ONLY}=0 is not set"
    yield Remark(
        known_failure("nvtx-range-unregistered").found(seen, "problem" if _PYTHON.match(first) else "warning"),
        lambda given: given.with_before(f"{REGISTER_ONLY}=0"),
    )


def _bounds(command: ParsedCommand) -> Iterator[Remark]:
    limited = command.value("--duration") is not None
    if limited and command.value("--kill") not in ("none",):
        killed = command.value("--kill") or "sigterm"
        seen = f"--duration={command.value('--duration')}, after which nsys terminates the program with {killed}"
        means = "A terminated program may lose its last GPU events and writes no results."
        check = known_failure("recording-cut-short").found(seen, "warning", means, ("--kill=none",))
        yield Remark(check, setting("--kill", "none"))
    elif command.value("--kill") in ("sigkill", "9"):
        seen = "--kill=sigkill ends the program before CUPTI delivers its buffers"
        yield Remark(
            known_failure("recording-cut-short").found(seen, "warning", do=("--kill=none",)), setting("--kill", "none")
        )
    if not limited and command.value("--capture-range") is None and command.verb == "profile":
        seen = "the whole run is recorded: no --duration and no --capture-range"
        means = "This is fine for a run of seconds; a long run produces a report that is too large to open."
        do = ("--capture-range=cudaProfilerApi --capture-range-end=stop", "--delay=60 --duration=10 --kill=none")
        yield Remark(Check("whole-run", "note", seen, means, do, known_failure("too-large").number))


def _processes(command: ParsedCommand, environment: dict[str, str]) -> Iterator[Remark]:
    about = " ".join(command.program)
    forked = _FORKS.search(about) and command.value("--trace-fork-before-exec") != "true"
    spawned = {**environment, **command.environment}.get("VLLM_WORKER_MULTIPROC_METHOD") == "spawn"
    if forked and not spawned:
        seen = "the program starts workers, but --trace-fork-before-exec=true is not given"
        yield Remark(
            known_failure("forked-workers").found(seen, "warning"), setting("--trace-fork-before-exec", "true")
        )
    launcher = next((word for word in command.before if word.rpartition("/")[2] in _RANK_LAUNCHERS), "")
    output = command.value("--output") or ""
    if launcher and "%" not in output and "$" not in output:
        variable = {"mpirun": "OMPI_COMM_WORLD_RANK", "mpiexec": "PMI_RANK", "srun": "SLURM_PROCID"}.get(
            launcher, "RANK"
        )
        seen = f"{launcher} starts one nsys per rank, and all write to {output or 'the same name'}"
        wanted = f"{output or 'report'}.%q{{{variable}}}"
        check = Check("one-report-for-all-ranks", "problem", seen, "Ranks overwrite each other.", (f"-o {wanted}",))
        yield Remark(check, setting("--output", wanted))


def _other_profilers(command: ParsedCommand, machine: Machine, environment: dict[str, str]) -> Iterator[Remark]:
    inner = command.inner
    if inner is not None and inner.tool == "ncu":
        yield Remark(known_failure("two-cupti-clients").found("nsys runs ncu"))
        return
    words = " ".join([*command.program, *environment, *command.environment])
    script = script_of(command, machine)
    if _OWN_PROFILER.search(words):
        yield Remark(
            known_failure("two-cupti-clients").found("the program profiles itself while nsys records", "warning")
        )
    elif script is not None and _TORCH_PROFILER.search(script):
        yield Remark(
            known_failure("two-cupti-clients").found("the script uses torch.profiler while nsys records", "warning")
        )
