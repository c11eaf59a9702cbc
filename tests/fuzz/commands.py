"""What is run on an input: every verb that reads a file, with its options, and the Python API."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import click

from tests.fuzz import front_door, values
from warpline.cli.main import app
from warpline.cli.verbs import VERBS
from warpline.fixes.registry import all_fixes

FILE, SEED, OUTPUT, FOLDER = "{file}", "{seed}", "{output}", "{folder}"
"""Stand for the input's path, for the file that it was made from, for a file to write, and for the folder of a run."""
OTHER, TRACE = "{other}", "{trace}"
"""Stand for a second damaged file, of the same or another kind, and for a whole trace."""
SUFFIXES = [".md", ".txt", ".json", ".html"]
REPORTS = [
    *(
        "cuda_api_sum",
        "cuda_api_trace",
        "cuda_api_gpu_sum",
        "cuda_gpu_kern_sum",
        "cuda_gpu_kern_gb_sum",
        "cuda_gpu_mem_time_sum",
    ),
    *(
        "cuda_gpu_mem_size_sum",
        "cuda_gpu_sum",
        "cuda_gpu_trace",
        "cuda_kern_exec_sum",
        "cuda_kern_exec_trace",
        "nvtx_sum",
    ),
    *("nvtx_pushpop_sum", "nvtx_startend_sum", "nvtx_gpu_proj_sum", "nvtx_kern_sum", "osrt_sum", "um_sum"),
]
QUERIES = [
    "select * from gpu",
    "select * from api order by start_ns limit 5",
    "select name, sum(end_ns - start_ns) ns from gpu group by name order by ns desc",
    "select gpu.name, api.name from gpu join api on gpu.api_id = api.id",
    "select * from ops",
    "select * from ranges",
    "select * from python",
    "select * from threads",
    "select * from steps",
    "select * from health",
    "select * from meta",
    "select * from devices",
    "select * from osrt union all select * from osrt",
    "selec",
    "select nothing from gpu",
]
ASKED = ["peak_memory_mb<=1", "peak_reserved_mb<=1", "roof_pct>=10", "ncu:gemm:sm__cycles_active.avg<=1"]
STEPS = ["0:1", "1:", "-1", ":2", "0:99", "5:1", "99999999999999999999:", "x", "1:2:3", ""]
CODES = frozenset({0, 1, 2})
"""Documented exit codes: fine, failed, usage."""
MORE_CODES = {"doctor": CODES | {4}, "compare": CODES | {4}, "gate": CODES | {3, 4}, "lint": CODES | {3}}
"""3 is a regression, 4 is inconclusive."""


@dataclass(frozen=True)
class Command:
    """One run on an input."""

    arguments: tuple[str, ...]
    codes: frozenset[int] = CODES
    stdin: bool = False
    """Whether the input comes on standard input."""
    front: bool = False
    """Whether the arguments name a function of front_door.py instead of a command line."""

    @property
    def verb(self) -> str:
        """The verb, or `python`."""
        return "python" if self.front else self.arguments[0]

    @property
    def as_json(self) -> bool:
        """Whether stdout must be JSON."""
        arguments = self.arguments
        return (
            not self.front
            and ("--json" in arguments or ("--format" in arguments and "json" in arguments))
            and OUTPUT + ".json" not in arguments
        )


Maker = Callable[[random.Random], Sequence[str]]


def _maybe(chance: random.Random, share: float, *words: str) -> Sequence[str]:
    return words if chance.random() < share else ()


def _second(chance: random.Random) -> str:
    return chance.choice([SEED, OTHER])


def _steps(chance: random.Random) -> Sequence[str]:
    if chance.random() < 0.1:
        return ["--steps", chance.choice(STEPS)]
    return (
        ["--step-range", chance.choice(["train_step", "forward", "ProfilerStep#1", "[x]", ""])]
        if chance.random() < 0.06
        else ()
    )


def _diagnose(chance: random.Random) -> Sequence[str]:
    shown = chance.choice([["-v"], ["-v"], [], ["--top", "3"]])
    if chance.random() < 0.15:
        shown = [*shown[:1], "-o", OUTPUT + chance.choice(SUFFIXES)] if shown == ["-v"] else shown
    price = _maybe(chance, 0.1, "--gpu-hour", "2.50")
    why = chance.choice([["--why"], ["--why"], ["--why"], [], ["--no-why"]])
    return [*shown, *price, *why]


def _stats(chance: random.Random) -> Sequence[str]:
    reports = [] if chance.random() < 0.2 else ["-r", ",".join(chance.sample(REPORTS, chance.randint(1, 5)))]
    return [*reports, "--format", chance.choice(["table", "csv", "json"]), *_maybe(chance, 0.4, "-v")]


def _sql(chance: random.Random) -> Sequence[str]:
    query = [chance.choice(QUERIES)] if chance.random() < 0.9 else []
    return [*query, "--format", chance.choice(["table", "csv", "json"])]


def _path(chance: random.Random) -> Sequence[str]:
    return ["--op", chance.choice([*values.NAMES[:60], "[x]"])] if chance.random() < 0.4 else []


def _memory(chance: random.Random) -> Sequence[str]:
    return [
        *_maybe(chance, 0.5, "--by", chance.choice(["op", "module", "line"])),
        *_maybe(chance, 0.3, "-v"),
        *_maybe(chance, 0.2, "--svg", OUTPUT + ".svg"),
        *_maybe(chance, 0.1, "--device", chance.choice(["cuda:0", "cpu", "x"])),
    ]


def _roofline(chance: random.Random) -> Sequence[str]:
    return [
        *_maybe(chance, 0.5, "--by", "kernel"),
        *_maybe(chance, 0.2, "--plot", OUTPUT + ".svg"),
        *_maybe(chance, 0.1, "--device", "H100-SXM"),
        *_maybe(chance, 0.1, "--shapes-from", _second(chance)),
        *_maybe(chance, 0.1, "--scale", chance.choice(["seq=2048", "64:128", "0:1", "seq=-1", "x", "64:99999999999"])),
        *_maybe(chance, 0.1, "--top", chance.choice(["1", "0", "99999999999999999999"])),
    ]


def _ops(chance: random.Random) -> Sequence[str]:
    group = ["--group", chance.choice(["shape", "module", "stack", "line"])] if chance.random() < 0.5 else []
    sort = ["--sort", chance.choice(["gpu", "cpu", "cpu-self", "calls", "roof"])] if chance.random() < 0.4 else []
    return [*group, *sort, *_maybe(chance, 0.2, "--shapes-from", _second(chance))]


def _parts(chance: random.Random) -> Sequence[str]:
    by = ["--by", chance.choice(["module", "range", "role", "class"])] if chance.random() < 0.6 else []
    return [*by, *_maybe(chance, 0.2, "--shapes-from", _second(chance))]


def _whatif(chance: random.Random) -> Sequence[str]:
    fixes = chance.sample(sorted(all_fixes()), chance.choice([0, 1, 1, 2]))
    return [word for fix in fixes for word in ("--fix", fix)]


def _budget(chance: random.Random) -> Sequence[str]:
    return _maybe(chance, 0.2, "--cpu-us", "5")


def _report(chance: random.Random) -> Sequence[str]:
    return [
        *_maybe(chance, 0.1, "--ncu", chance.choice([FILE, OTHER])),
        *_maybe(chance, 0.1, "--gpu-hour", chance.choice(["2.5", "0", "-1", "nan", "1e308"])),
    ]


def _doctor(chance: random.Random) -> Sequence[str]:
    return [*_maybe(chance, 0.2, OTHER, FILE), *_maybe(chance, 0.5, "-v")]


def _lint(chance: random.Random) -> Sequence[str]:
    return _maybe(chance, 0.2, OTHER)


def _baseline(chance: random.Random) -> Sequence[str]:
    return _maybe(chance, 0.3, _second(chance), FILE)


OPTIONS: dict[str, Maker] = {
    "diagnose": _diagnose,
    "stats": _stats,
    "sql": _sql,
    "path": _path,
    "memory": _memory,
    "roofline": _roofline,
    "ops": _ops,
    "parts": _parts,
    "whatif": _whatif,
    "budget": _budget,
    "report": _report,
    "doctor": _doctor,
    "lint": _lint,
    "baseline": _baseline,
}
"""Options of a verb, behind its sample call; `_shared` adds those that most verbs have."""


def _scrub(chance: random.Random) -> Sequence[str]:
    how = chance.choice(
        [["--check"], ["-o", OUTPUT + chance.choice([".json", ".json.gz", ".sqlite"]), "-f"], ["--in-place"]]
    )
    return ["scrub", FILE, *how, *_maybe(chance, 0.2, "--keep", "host")]


def _compare(chance: random.Random) -> Sequence[str]:
    pair = chance.choice([[FILE, SEED], [SEED, FILE], [FILE, FILE], [FILE, OTHER], [OTHER, FILE], [TRACE, FILE]])
    if chance.random() < 0.3:
        runs = [(chance.choice(["--before", "--after"]), chance.choice([FILE, SEED, OTHER])) for _ in range(4)]
        pair = ["--before", SEED, "--after", FILE, *(word for run in runs for word in run)]
    return [
        "compare",
        *pair,
        *_maybe(chance, 0.2, "-f", "-o", OUTPUT + chance.choice([".html", *SUFFIXES])),
        *_maybe(chance, 0.1, "--least-effect", chance.choice(["0", "50", "1e9", "nan", "-1"])),
        *_maybe(chance, 0.5, "-v"),
    ]


def _ladder(chance: random.Random) -> Sequence[str]:
    rungs = [FILE, *(chance.choice([FILE, SEED, OTHER, TRACE]) for _ in range(chance.randint(0, 3)))]
    return [
        "ladder",
        *rungs,
        *_maybe(chance, 0.2, "-f", "-o", OUTPUT + chance.choice([".html", *SUFFIXES])),
        *_maybe(chance, 0.2, "--svg", OUTPUT + ".svg"),
        *_maybe(chance, 0.3, "-v"),
    ]


def _dive(chance: random.Random) -> Sequence[str]:
    pairs = [["--compare", FILE, SEED], ["--compare", SEED, FILE], ["--compare", FILE, OTHER], [FILE, OTHER]]
    files = chance.choice([[FILE], [FILE], [FILE], [FILE], *pairs, [FILE, "--print"]])
    more = [*_maybe(chance, 0.1, "--top", "1"), *_maybe(chance, 0.1, "-o", OUTPUT + chance.choice(SUFFIXES))]
    return ["dive", *files, *more, *_maybe(chance, 0.5, "-v")]


def _gate(chance: random.Random) -> Sequence[str]:
    limit = chance.choice(["step_ms<=12", "syncs<=0", "idle_pct<=10", "nonsense<=1", "step_ms<=x", *ASKED])
    files = [*_maybe(chance, 0.3, "--junit", OUTPUT + ".xml"), *_maybe(chance, 0.3, "--comment", OUTPUT + ".md")]
    runs = chance.choice([[FILE], [FILE], [FILE, SEED], [FILE, OTHER], [FILE, FILE, SEED, SEED]])
    ncu = _maybe(chance, 0.1, "--ncu", chance.choice([FILE, OTHER]))
    files = [*files, *_maybe(chance, 0.2, "--metric", "busy"), *ncu, *_maybe(chance, 0.1, "--baseline", OTHER)]
    return ["gate", *runs, "--budget", limit, *files]


def _history(chance: random.Random) -> Sequence[str]:
    """The record is not an argument: it lies where WARPLINE_HISTORY says."""
    if chance.random() < 0.2:
        return ["gate", SEED, "--budget", "step_ms<=12", "--folder", f"{HISTORY}/x", "--name", "train"]
    more = [*_maybe(chance, 0.3, "--number", "launches"), *_maybe(chance, 0.3, "--svg", OUTPUT + ".svg")]
    return ["history", *_maybe(chance, 0.8, "train"), "--folder", f"{HISTORY}/x", *more]


def _export(chance: random.Random) -> Sequence[str]:
    suffix = chance.choice([".pftrace", ".perfetto.json", ".perfetto.json.gz", ".speedscope.json", ".svg", ".svg"])
    more = ["--what", chance.choice(["timeline", "time", "roofline"])] if suffix == ".svg" else []
    return ["export", FILE, "-o", OUTPUT + suffix, "-f", *more, *_maybe(chance, 0.3, "--no-why")]


def _kernel(chance: random.Random) -> Sequence[str]:
    return ["kernel", "-", *_maybe(chance, 0.3, "--device", "sm90")]


CALLS: dict[str, Maker] = {
    "scrub": _scrub,
    "compare": _compare,
    "ladder": _ladder,
    "dive": _dive,
    "gate": _gate,
    "history": _history,
    "export": _export,
    "kernel": _kernel,
}
"""Verbs whose sample call is not the only kind of call."""
LEFT_OUT = {"view": "serves until Ctrl-C the page that `report` writes; tests/ui/test_view.py attacks the server"}
"""Verbs on a profile that are not tried, and why."""
PROFILE_VERBS = tuple(
    name for name, verb in VERBS.items() if {"TRACE", "SOURCE"} & set(verb.words()) and name not in LEFT_OUT
)
"""Every verb that reads a file: a new one is tried by its sample call."""
OFTEN = {"diagnose": 18, "stats": 14, "scrub": 12, "doctor": 9, "sql": 9, "roofline": 9, "lint": 2, "baseline": 3}
"""How often a verb is drawn, where that is not `USUAL`."""
USUAL = 7
HISTORY = "/nowhere"
"""The project that the runs in a record belong to."""
NAME_VERBS = ("device", "metric", "explain")
"""Verbs that take a name instead of a file, beside `kernel`."""
FRONT_DOOR = 6
"""How often a function of the Python API is drawn instead."""


def commands_for(kind: str, chance: random.Random, count: int, only: Sequence[str] = ()) -> list[Command]:
    """Some commands for an input of that kind; with `only`, of these verbs where the kind has a choice."""
    return [_command(kind, chance, only) for _ in range(count)]


def _command(kind: str, chance: random.Random, only: Sequence[str]) -> Command:
    if kind == "baseline":
        return Command(tuple(_against(FILE, chance)), MORE_CODES["gate"])
    if kind == "history":
        return _recorded(chance)
    if kind == "source":
        return _call("lint", chance)
    if kind == "folder":
        return _of_a_run(chance, only)
    if kind not in {"document", "recording", "database", "history"} and chance.random() < 0.15:
        return _drawn(chance, only)  # a verb that is not meant for such a file
    if kind == "snapshot":
        return _call("memory", chance)
    if kind in {"ncu", "report"} and chance.random() < 0.3:
        return Command(tuple(_with_counters(chance)), MORE_CODES["gate"])
    if kind in {"ncu", "report"} and chance.random() < 0.8:
        return _call("dive", chance)
    if kind in {"ncu", "report", "log"}:
        return _call("doctor", chance)
    if kind == "names" and chance.random() < 0.2:
        name = values.text(chance).replace("\x00", "") or "H200"
        return Command((chance.choice(NAME_VERBS), name, *_maybe(chance, 0.5, "--json")))
    if kind == "names":
        return replace(_call("kernel", chance), stdin=True)
    if not only and chance.random() < 0.02:
        return _call("dive", chance)
    return _drawn(chance, only)


def _call(verb: str, chance: random.Random) -> Command:
    """A call of the verb: its own options, and those that most verbs have."""
    if verb in CALLS:
        words = [*CALLS[verb](chance)]
    else:
        sample = VERBS[verb].words(TRACE=FILE, SOURCE=FILE, OUTPUT=OUTPUT)
        words = [*sample, *(OPTIONS[verb](chance) if verb in OPTIONS else ())]
    return Command((*words, *_shared(words, chance)), MORE_CODES.get(verb, CODES))


def _shared(words: Sequence[str], chance: random.Random) -> Sequence[str]:
    command = app.get_command(click.Context(app), words[0])
    if isinstance(command, click.Group):
        command = command.commands[words[1]]
    assert command is not None
    options = {name for option in command.params for name in option.opts}
    return [
        *(_maybe(chance, 0.5, "--json") if "--json" in options else ()),
        *(_steps(chance) if "--steps" in options else ()),
        *(_maybe(chance, 0.9, "--no-cache") if "--no-cache" in options else ()),
    ]


def _against(baseline: str, chance: random.Random) -> Sequence[str]:
    """The gate with a damaged baseline, and runs that are whole or damaged."""
    runs = chance.choice([[SEED], [SEED], [TRACE, SEED], [OTHER], [SEED, OTHER]])
    more = [
        *_maybe(chance, 0.2, "--metric", "busy"),
        *_maybe(chance, 0.2, "--least-effect", chance.choice(["0", "50", "-1", "nan"])),
        *_maybe(chance, 0.2, "--junit", OUTPUT + ".xml"),
        *_maybe(chance, 0.2, "--comment", OUTPUT + ".md"),
        *_maybe(chance, 0.2, "-o", OUTPUT + chance.choice([".md", ".txt"])),
    ]
    return ["gate", *runs, "--baseline", baseline, "--no-cache", *more, *_maybe(chance, 0.5, "--json")]


def _recorded(chance: random.Random) -> Command:
    """What reads the local record, or adds to it."""
    added = [["gate", SEED, "--budget", "step_ms<=12", "--name", "train"], ["compare", SEED, TRACE], ["diagnose", SEED]]
    if chance.random() < 0.5:
        return replace(_call("history", chance), codes=MORE_CODES["gate"])
    return Command((*chance.choice(added), "--no-cache", *_maybe(chance, 0.5, "--json")), MORE_CODES["gate"])


def _with_counters(chance: random.Random) -> Sequence[str]:
    """A whole trace with a damaged report of Nsight Compute."""
    if chance.random() < 0.5:
        return ["report", TRACE, "-o", OUTPUT + ".html", "--ncu", FILE, "--no-cache", *_maybe(chance, 0.5, "--json")]
    budget = chance.choice(["ncu:gemm:sm__cycles_active.avg<=1", "ncu::gpu__time_duration.sum<=1", "ncu:x:<=1"])
    return ["gate", TRACE, "--budget", budget, "--ncu", FILE, "--no-cache", *_maybe(chance, 0.5, "--json")]


def _of_a_run(chance: random.Random, only: Sequence[str]) -> Command:
    """A command on the whole folder, or on the file that it names."""
    drawn = _drawn(chance, only)
    if drawn.front or drawn.stdin or drawn.verb in {"scrub", "lint"}:
        return drawn
    words = tuple(FOLDER if word == FILE and chance.random() < 0.8 else word for word in drawn.arguments)
    return Command(words, drawn.codes)


def _drawn(chance: random.Random, only: Sequence[str]) -> Command:
    """Any verb that reads profiles."""
    verbs = {verb: OFTEN.get(verb, USUAL) for verb in PROFILE_VERBS} | {"python": FRONT_DOOR}
    verbs = {verb: weight for verb, weight in verbs.items() if not only or verb in only}
    verb = chance.choices(list(verbs), list(verbs.values()))[0]
    if verb == "python":
        return Command((chance.choice(list(front_door.FUNCTIONS)), str(chance.randrange(1 << 30))), front=True)
    called = _call(verb, chance)
    if verb in {"scrub", "compare", "lint"} or chance.random() > 0.04:
        return called
    return replace(called, arguments=tuple("-" if word == FILE else word for word in called.arguments), stdin=True)
