"""The verdict on a program without GPU work: what most of its time on the CPU goes to, and what to do about it.

The account of `cpu_time` decides: the cause is the group of kinds with the most time. Small ops and the short gaps
between them are one group, since both are what it costs to call an op at all. Ops count with their usual time: on a
busy machine other programs interrupt some of them for long, and which ones is chance. Where these interruptions take
more than any cause, there is no verdict.

Large ops that usually take longer than one slow core would need do not compute most of the time: each waits until all
of its threads had a core. More threads make that worse, so fewer are advised.

Where even an op that only makes a view takes long, the recording takes the time: an older profiler with stacks costs
0.1 ms and more an op, which it counts as the time of the op around it.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.analyses.cpu_time import NEW_WORKERS, CpuKind, CpuPart, CpuTime, shown_by
from warpline.analyses.idle.host_activity import LONGEST_PYTHON_NS
from warpline.analyses.op_calls import OpCalls
from warpline.estimate import Estimate
from warpline.findings.model import Verdict
from warpline.fixes.claim import CAUSES, Cause
from warpline.fixes.words import listed
from warpline.replay.costs.host import SLOW_CORE_WORK_PER_NS, SMALL_CPU_OP_NS
from warpline.replay.patterns.iterations import VIEWS
from warpline.replay.patterns.loading import LOADER_RANGE, WORKERS
from warpline.trace.trace import Trace
from warpline.units import capitalised, count, duration, share, uncapitalised
from warpline.work.collective import kind_of

CAUSE_OF: dict[CpuKind, Cause] = {
    "input": "input",
    "comm": "comm",
    "op": "compute",
    "python": "python",
    "sleep": "wait",
    "wait": "wait",
}
"""Kinds that say what the time goes to; the others (gaps, the inside of ranges, calls, the profiler) do not."""
ALLOCATIONS = ("aten::empty", "aten::empty_like", "aten::empty_strided")
"""Ops that compute nothing: where one takes long, it asks for memory, or starts a GPU that was not recorded."""
MIN_BEYOND = 0.1
"""From this share of the time on, interruptions are told."""
AS_GOOD = 0.9
"""A second cause with this share of the first one's time is as good an answer."""
FEWEST_CALLS = 10
"""The median of fewer calls may be that of a first call, or of a moment in which another program ran."""
MOST_LINES = 3
"""Lines of the program that a sentence names."""
NEW_TENSOR = "aten::lift_fresh"
"""The op that torch.tensor() calls once for each tensor; with it come two to six others."""
MIN_NEW_TENSORS = 0.05
"""From this share of all ops on, making tensors one by one is most of what small ops do, or near it."""

AVERAGING = {"all_reduce", "reduce_scatter"}
"""Collectives that average gradients: what is accumulated needs fewer of them. A pipeline only sends and receives."""

UNKNOWN_SIZES = (
    "Small ops are slower on many threads, and without record_shapes=True their sizes are unknown: measure several "
    "numbers (torch.set_num_threads, OMP_NUM_THREADS)"
)
ALL_PARAMETERS = (
    "Most of these ops update the parameters one by one: update all at once, with fused=True in an optimizer of "
    "torch.optim, or with torch._foreach_ ops in your own"
)
DOUBLE = (
    "These ops compute in float64, as numpy does by default. Where float32 is enough (tensor.float()), "
    "it moves half of the bytes, and a vector instruction does twice as many numbers"
)
OWN_CODE = (
    "Move this code out of the loop, or into DataLoader workers or a thread; record with Python stacks to see which "
    "functions take the time"
)
KEEP_WORKERS = (
    "The DataLoader starts its workers anew at every epoch: persistent_workers=True keeps them, and the next epoch's "
    "batches are loaded ahead."
)
_ADVICE: dict[Cause, tuple[str, ...]] = {
    "input": (
        "Load in the background: DataLoader(dataset, batch_size=…, num_workers=N, prefetch_factor=4, "
        "persistent_workers=True), with N up to the number of CPU cores",
    ),
    "dispatch": (
        "Compile the model (torch.compile), which fuses small ops into few",
        "use a larger batch, so that each op does more",
    ),
    "compute": (
        "Let PyTorch use all physical cores (torch.set_num_threads; OMP_NUM_THREADS sets it from outside)",
        "compile the model (torch.compile)",
        "use bf16 (torch.autocast('cpu', torch.bfloat16)) on a CPU with AMX or AVX512-BF16",
    ),
    "python": (
        "Move this code out of the loop, cache its result, or replace it by ops on whole tensors",
        "compile it (torch.compile) if it mostly calls ops; run it in DataLoader workers if it prepares data",
    ),
    "comm": (
        "The files of all ranks show who is late (warpline diagnose FOLDER)",
        "communicate less often (gradient accumulation under model.no_sync()) or less (bf16 gradients)",
    ),
    "wait": (
        "Record what other threads do (torch.profiler with with_stack=True, and "
        "_ExperimentalConfig(profile_all_threads=True) for their ops)",
        "prepare the next result while this one is used",
    ),
}


class _Group(Struct, frozen=True):
    """The parts of one cause, the longest first."""

    cause: Cause
    parts: tuple[CpuPart, ...]

    @property
    def time_ns(self) -> int:
        return sum(part.usual_ns for part in self.parts)


def _as_recorded(group: _Group) -> _Group:
    """The same with the times of the account, where no op is interrupted for long: one time for one thing."""
    return _Group(group.cause, tuple(replace(part, usual_ns=part.self_ns) for part in group.parts))


def cpu_verdict(trace: Trace, cpu: CpuTime) -> Verdict:
    """The verdict on where the CPU's time goes."""
    groups = _groups(cpu)
    if not groups:
        return _verdict("unclear", f"{CAUSES['unclear']}: nothing that ran on the CPU is in the trace.", cpu)
    errors = ", ".join(entry.code for entry in trace.health_entries if entry.severity == "error")
    if errors:
        said = f"no GPU work was recorded ({errors}); on the CPU, {_what(_as_recorded(groups[0]), cpu)}"
        return _verdict("unclear", f"{CAUSES['unclear']}: {said}.", cpu)
    slow_view = next((part for part in cpu.parts if part.name in VIEWS and _is_slow(part)), None)
    if slow_view is not None:
        each_ns = slow_view.usual_ns / slow_view.count
        said = (
            f"{CAUSES['unclear']}: {slow_view.name} takes {duration(each_ns)} each time, and computes nothing: "
            "recording slows every op down, and what the program takes without it is not known. Record without "
            "with_stack=True, record_shapes=True and profile_memory=True."
        )
        return _verdict("unclear", said, cpu)
    first = groups[0]
    beyond = _beyond(groups, cpu)
    if sum(group.time_ns for group in groups) + first.time_ns < cpu.window_ns:
        said = f"{beyond} Of the rest, {_what(first, cpu)}."
        sentences = (f"{CAUSES['unclear']}: {said}", _optimizer(cpu), "Record again while the machine is quiet.")
        return _verdict("unclear", " ".join(filter(None, sentences)), cpu)
    also = next((group for group in groups[1:] if group.time_ns >= AS_GOOD * first.time_ns), None)
    how = _advice(trace, first, cpu)
    named = [group if beyond else _as_recorded(group) for group in (first, also) if group is not None]
    basis = "by the usual time of each op, " if beyond else ""
    sentence, *others = (f"{_what(group, cpu)}." for group in named)
    sentence = " ".join([f"{CAUSES[first.cause]}: {basis}{sentence}", *map(capitalised, others)])
    said = " ".join(filter(None, (sentence, beyond, _optimizer(cpu), _limit(named[0], cpu), how)))
    return _verdict(first.cause, said, cpu, also.cause if also else None)


def _is_slow(part: CpuPart) -> bool:
    """Whether an op takes more each time than calling it and recording it usually do."""
    return part.count >= FEWEST_CALLS and part.usual_ns >= part.count * SMALL_CPU_OP_NS


def _verdict(cause: Cause, sentence: str, cpu: CpuTime, also: Cause | None = None) -> Verdict:
    """A verdict without a replay: nothing is predicted."""
    step = round(cpu.step_ns)
    return Verdict(cause, None, sentence, Estimate(1.0, 1.0, 1.0), Estimate(step, step, step), also=also)


def _groups(cpu: CpuTime) -> list[_Group]:
    """The causes with their parts, the most time first."""
    found: dict[Cause, list[CpuPart]] = {}
    for part in cpu.parts:
        found.setdefault(_cause(part), []).append(part)
    if "dispatch" in found and not any(part.kind == "op" for part in found["dispatch"]):
        found.setdefault("unclear", []).extend(found.pop("dispatch"))
    groups = [_Group(cause, tuple(parts)) for cause, parts in found.items()]
    return sorted(groups, key=lambda group: -group.time_ns)


def _cause(part: CpuPart) -> Cause:
    each_ns = part.usual_ns / max(part.count, 1)
    if (
        part.kind == "framework"
        or (part.kind == "op" and each_ns < SMALL_CPU_OP_NS)
        or (part.kind in ("gap", "range") and each_ns < LONGEST_PYTHON_NS)
    ):
        return "dispatch"
    if part.name in ALLOCATIONS:
        return "unclear"
    return CAUSE_OF.get(part.kind, "unclear")


def _what(group: _Group, cpu: CpuTime) -> str:
    """What takes the time, and where most of it goes."""
    time = f"{duration(group.time_ns / cpu.steps)} of {_whole(cpu)} ({share(group.time_ns, cpu.window_ns)})"
    part = group.parts[0]
    own_ns, place = _largest(group)
    alone = "" if len(group.parts) == 1 else f"{duration(own_ns / cpu.steps)} of it "
    where = f"{time}, {alone}in {place}" if part.summed == 1 else time
    match group.cause:
        case "input":
            return f"loading data takes {where}"
        case "comm":
            return f"communication, with waiting for other ranks, takes {where}"
        case "dispatch":
            ops = sum(part.count for part in group.parts if part.kind == "op") / cpu.steps
            return f"calling {count(ops)} small ops takes {time}"
        case "compute":
            return f"large ops take {where}"
        case "python":
            return f"Python code takes {where}"
        case "wait":
            doing = "sleeps" if part.kind == "sleep" else "waits for another thread or process"
            return f"the program {doing} for {where}"
    if part.kind == "call":
        return f"calls of the driver or the operating system, and what is not recorded, take {where}"
    inside = f"inside {part.name}" if part.kind == "range" else part.name
    lines = _own_lines(group)
    if lines:
        named = listed(f"{duration(time_ns / cpu.steps)} in {spot}" for spot, time_ns in lines[:MOST_LINES])
        return f"for {time} no op runs, but Python, I/O or a wait of the program's own: {named}"
    most = f", most of it {inside}" if part.summed == 1 else ""
    return f"for {time} nothing is recorded that says what runs{most}"


def _own_lines(group: _Group) -> list[tuple[str, int]]:
    """The lines of the program on which no op runs, with their time, the longest first; empty where the line is unknown
    for most of the time."""
    times: Counter[tuple[str | None, int | None]] = Counter()
    spots: dict[tuple[str | None, int | None], str] = {}
    for part in group.parts:
        if part.kind == "gap" and part.spot:
            line = (part.file, part.line)
            times[line] += part.usual_ns
            spots[line] = min(spots.get(line, part.spot), part.spot, key=len)
    if 2 * times.total() < group.time_ns:
        return []
    return [(spots[line], time_ns) for line, time_ns in times.most_common()]


def _largest(group: _Group) -> tuple[int, str]:
    """The function of the user's in which most of the time goes to Python code; of other causes, the largest part."""
    part = group.parts[0]
    if group.cause != "python" or not part.spot:
        return part.usual_ns, _place(part)
    by_spot: dict[str, list[CpuPart]] = {}
    for one in group.parts:
        if one.spot:
            by_spot.setdefault(one.spot, []).append(one)
    own = max(by_spot.values(), key=lambda parts: sum(one.usual_ns for one in parts))
    is_all = len(own) == 1 or own[0].name.endswith(f": {own[0].function}")
    place = _place(own[0]) if is_all else f"{own[0].spot} (most in {own[0].name})"
    return sum(one.usual_ns for one in own), place


def _place(part: CpuPart) -> str:
    """Where a part runs: the user's function, and what it calls; without stacks, what runs."""
    if part.elsewhere:
        return f"{part.name} on other threads"
    if not part.spot:
        return part.name
    return part.spot if part.name.endswith(f": {part.function}") else f"{part.spot} ({part.name})"


def _beyond(groups: list[_Group], cpu: CpuTime) -> str:
    """What a step takes beyond the usual time of what it runs, if that is much."""
    beyond_ns = cpu.window_ns - sum(group.time_ns for group in groups)
    if beyond_ns < MIN_BEYOND * cpu.window_ns:
        return ""
    time = f"{duration(beyond_ns / cpu.steps)} of {_whole(cpu)} ({share(beyond_ns, cpu.window_ns)})"
    return f"{time} are beyond the usual time of the same ops, as where other programs use the CPU."


def _optimizer(cpu: CpuTime) -> str:
    """How long optimizer.step() takes, if that is much: the ops in it are counted by themselves."""
    if cpu.optimizer_ns < MIN_BEYOND * cpu.window_ns:
        return ""
    time = f"{duration(cpu.optimizer_ns / cpu.steps)} of {_whole(cpu)} ({share(cpu.optimizer_ns, cpu.window_ns)})"
    return f"optimizer.step() takes {time} in all."


def _limit(group: _Group, cpu: CpuTime) -> str:
    """The step if that took no time, where it could be hidden."""
    hidden = {"input": "data were always ready", "comm": "communication took no time"}.get(group.cause)
    if hidden is None:
        return ""
    rest = duration((cpu.window_ns - group.time_ns) / cpu.steps)
    return f"If {hidden}, the {'step' if cpu.has_steps else 'recording'} would take {rest}."


def _advice(trace: Trace, group: _Group, cpu: CpuTime) -> str:
    match group.cause:
        case "input":
            return _loading_advice(trace, group)
        case "compute":
            return _advice_on_large_ops(trace, group)
        case "dispatch":
            return _advice_on_small_ops(trace, group, cpu)
        case "comm" if not _averages_gradients(trace):
            return f"{_ADVICE['comm'][0]}."
        case "wait" if group.parts[0].kind == "sleep":
            return "Remove the sleep, or wait for the event that it stands for."
        case "unclear":
            return f"{OWN_CODE}." if _own_lines(group) else f"{shown_by(cpu.source)} to see what runs there."
    return f"{'; '.join(_ADVICE[group.cause])}."


def _advice_on_large_ops(trace: Trace, group: _Group) -> str:
    threads, compiling, half = _ADVICE["compute"]
    if _is_slower_than_one_core(trace, group):
        return (
            "One slow core would need less time for these ops: their threads wait for each other, or for cores that "
            "others use or that a container may not use. Use fewer threads: OMP_NUM_THREADS=1, or "
            "torch.set_num_threads(1), and measure which number is fastest."
        )
    if _is_double(trace, group):
        return f"{DOUBLE}; {compiling}."  # autocast leaves float64 as it is
    if trace.source == "kineto" and not any(trace.ops.shapes.present()):
        threads = UNKNOWN_SIZES
    return f"{threads}; {compiling}; {half}."


def _advice_on_small_ops(trace: Trace, group: _Group, cpu: CpuTime) -> str:
    if np.mean(trace.ops.name.equal(NEW_TENSOR)) >= MIN_NEW_TENSORS:
        return (
            "Many ops make small tensors one by one: make one of all values, torch.from_numpy(numpy.stack(values)) "
            "instead of torch.tensor(value) for each."
        )
    if 2 * cpu.optimizer_ns >= group.time_ns:
        return f"{'; '.join((ALL_PARAMETERS, *map(uncapitalised, _ADVICE['dispatch'])))}."
    return f"{'; '.join(_ADVICE['dispatch'])}."


def _is_slower_than_one_core(trace: Trace, group: _Group) -> bool:
    """Whether at least half of the time goes to ops that usually take longer than one slow core would."""
    calls = trace.once(OpCalls)
    # Types of 16 bits and fewer ("c10::Half") are slow on many CPUs for another reason.
    is_fp32 = trace.ops.dtypes.like('"float"') & ~trace.ops.dtypes.like("Half|Float")
    slow_ns = 0
    for part in group.parts:
        rows = np.flatnonzero(trace.ops.name.equal(part.name) & is_fp32)
        _, firsts = np.unique(calls.numbers_of(rows), return_index=True)
        works = [calls.work(int(row), ()) for row in rows[firsts]]
        need_ns = [SMALL_CPU_OP_NS + (one.total_flops + one.bytes) / SLOW_CORE_WORK_PER_NS for one in works if one]
        if need_ns and len(need_ns) == len(works) and part.usual_ns > max(need_ns) * part.count:
            slow_ns += part.usual_ns
    return 2 * slow_ns >= group.time_ns


def _is_double(trace: Trace, group: _Group) -> bool:
    """Whether at least half of the time goes to ops that take float64."""
    doubles = trace.ops.dtypes.like('"double"')
    slow = {name for name in np.unique(trace.ops.name[doubles].texts) if name is not None}
    return 2 * sum(part.usual_ns for part in group.parts if part.name in slow) >= group.time_ns


def _averages_gradients(trace: Trace) -> bool:
    names = (name for table in (trace.ops, trace.ranges) for name in table.name.present())
    return any(kind_of(name) in AVERAGING for name in names)


def _loading_advice(trace: Trace, group: _Group) -> str:
    """What to change, by whether the program has a DataLoader, and that has workers, which it may start anew."""
    starting_ns = sum(part.usual_ns for part in group.parts if part.name == NEW_WORKERS)
    if 2 * starting_ns >= group.time_ns:
        return KEEP_WORKERS
    names = trace.ops.name, trace.ranges.name, trace.python.name
    if any(one.like(WORKERS).any() for one in names):
        return "The DataLoader has too few workers, or they are too slow: add workers or make each sample cheaper."
    now = "The DataLoader has no workers. " if any(one.like(LOADER_RANGE).any() for one in names) else ""
    return f"{now}{'; '.join(_ADVICE['input'])}."


def _whole(cpu: CpuTime) -> str:
    return f"each {duration(cpu.step_ns)} step" if cpu.has_steps else f"{duration(cpu.window_ns)}"
