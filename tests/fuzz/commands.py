"""What is run on an input: every verb that reads a file, with its options, and the Python API."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.fuzz import front_door, values
from warpline.cli.main import VERBS

FILE, SEED, OUTPUT, FOLDER = "{file}", "{seed}", "{output}", "{folder}"
"""Stand for the input's path, for the file that it was made from, for a file to write, and for the folder of a run."""
OTHER, TRACE = "{other}", "{trace}"
"""Stand for a second damaged file, of the same or another kind, and for a whole trace."""
WITHOUT_INPUT = {
    "run": "runs a program; tests/cli/test_run.py has its failures",
    "bench": "runs a program",
    "demo": "reads no file but the bundled one",
    "view": "serves until Ctrl-C the page that `report` writes; tests/ui/test_view.py attacks the server",
}
"""Verbs that are left out, and why."""
TEXT_VERBS = {"kernel", "device", "metric", "explain"}
"""Verbs that take a name instead of a file."""
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


def _cached(chance: random.Random) -> Sequence[str]:
    return _maybe(chance, 0.9, "--no-cache")


def _diagnose(chance: random.Random) -> Sequence[str]:
    shown = chance.choice([["--json"], ["--json"], ["-v"], ["-v"], [], ["--top", "3"]])
    if chance.random() < 0.15:
        suffix = chance.choice([".md", ".txt", ".json"])
        shown = [*shown[:1], "-o", OUTPUT + suffix] if shown == ["-v"] else ["-o", OUTPUT + suffix]
    price = _maybe(chance, 0.1, "--gpu-hour", "2.50")
    why = chance.choice([["--why"], ["--why"], ["--why"], [], ["--no-why"]])
    return ["diagnose", FILE, *shown, *price, *why, *_steps(chance), *_cached(chance)]


def _stats(chance: random.Random) -> Sequence[str]:
    reports = [] if chance.random() < 0.2 else ["-r", ",".join(chance.sample(REPORTS, chance.randint(1, 5)))]
    return [
        "stats",
        FILE,
        *reports,
        "--format",
        chance.choice(["table", "csv", "json"]),
        *_maybe(chance, 0.4, "-v"),
        *_cached(chance),
    ]


def _sql(chance: random.Random) -> Sequence[str]:
    query = [chance.choice(QUERIES)] if chance.random() < 0.9 else []
    return ["sql", FILE, *query, "--format", chance.choice(["table", "csv", "json"]), *_cached(chance)]


def _path(chance: random.Random) -> Sequence[str]:
    op = ["--op", chance.choice([*values.NAMES[:60], "[x]"])] if chance.random() < 0.4 else []
    return ["path", FILE, *op, *_maybe(chance, 0.5, "--json"), *_steps(chance), *_cached(chance)]


def _memory(chance: random.Random) -> Sequence[str]:
    more = [
        *_maybe(chance, 0.5, "--by", chance.choice(["op", "module", "line"])),
        *_maybe(chance, 0.3, "-v"),
        *_maybe(chance, 0.2, "--svg", OUTPUT + ".svg"),
        *_maybe(chance, 0.1, "--device", chance.choice(["cuda:0", "cpu", "x"])),
    ]
    return ["memory", FILE, *more, *_maybe(chance, 0.4, "--json"), *_steps(chance), *_cached(chance)]


def _roofline(chance: random.Random) -> Sequence[str]:
    more = [
        *_maybe(chance, 0.5, "--by", "kernel"),
        *_maybe(chance, 0.2, "--plot", OUTPUT + ".svg"),
        *_maybe(chance, 0.1, "--device", "H100-SXM"),
        *_maybe(chance, 0.1, "--shapes-from", _second(chance)),
        *_maybe(chance, 0.1, "--scale", chance.choice(["seq=2048", "64:128", "0:1", "seq=-1", "x", "64:99999999999"])),
        *_maybe(chance, 0.1, "--top", chance.choice(["1", "0", "99999999999999999999"])),
    ]
    return ["roofline", FILE, *more, *_maybe(chance, 0.5, "--json"), *_steps(chance), *_cached(chance)]


def _ops(chance: random.Random) -> Sequence[str]:
    group = ["--group", chance.choice(["shape", "module", "stack", "line"])] if chance.random() < 0.5 else []
    sort = ["--sort", chance.choice(["gpu", "cpu", "cpu-self", "calls", "roof"])] if chance.random() < 0.4 else []
    sort = [*sort, *_maybe(chance, 0.2, "--shapes-from", _second(chance))]
    return ["ops", FILE, *group, *sort, *_maybe(chance, 0.5, "--json"), *_steps(chance), *_cached(chance)]


def _parts(chance: random.Random) -> Sequence[str]:
    by = ["--by", chance.choice(["module", "range", "role", "class"])] if chance.random() < 0.6 else []
    by = [*by, *_maybe(chance, 0.2, "--shapes-from", _second(chance))]
    return ["parts", FILE, *by, *_maybe(chance, 0.5, "--json"), *_steps(chance), *_cached(chance)]


def _whatif(chance: random.Random) -> Sequence[str]:
    from warpline.fixes.registry import all_fixes  # noqa: PLC0415 - only where it is needed

    fixes = chance.sample(sorted(all_fixes()), chance.choice([0, 1, 1, 2]))
    return [
        "whatif",
        FILE,
        *(word for fix in fixes for word in ("--fix", fix)),
        *_maybe(chance, 0.5, "--json"),
        *_steps(chance),
        *_cached(chance),
    ]


def _budget(chance: random.Random) -> Sequence[str]:
    return [
        "budget",
        FILE,
        *_maybe(chance, 0.2, "--cpu-us", "5"),
        *_maybe(chance, 0.5, "--json"),
        *_steps(chance),
        *_cached(chance),
    ]


def _report(chance: random.Random) -> Sequence[str]:
    return [
        "report",
        FILE,
        "-o",
        OUTPUT + ".html",
        "-f",
        *_maybe(chance, 0.1, "--ncu", chance.choice([FILE, OTHER])),
        *_maybe(chance, 0.1, "--gpu-hour", chance.choice(["2.5", "0", "-1", "nan", "1e308"])),
        *_maybe(chance, 0.5, "--json"),
        *_steps(chance),
        *_cached(chance),
    ]


def _doctor(chance: random.Random) -> Sequence[str]:
    return [
        "doctor",
        FILE,
        *_maybe(chance, 0.2, OTHER, FILE),
        *_maybe(chance, 0.5, "-v"),
        *_maybe(chance, 0.5, "--json"),
    ]


def _scrub(chance: random.Random) -> Sequence[str]:
    how = chance.choice(
        [["--check"], ["-o", OUTPUT + chance.choice([".json", ".json.gz", ".sqlite"]), "-f"], ["--in-place"]]
    )
    return ["scrub", FILE, *how, *_maybe(chance, 0.2, "--keep", "host"), *_maybe(chance, 0.5, "--json")]


def _compare(chance: random.Random) -> Sequence[str]:
    pair = chance.choice([[FILE, SEED], [SEED, FILE], [FILE, FILE], [FILE, OTHER], [OTHER, FILE], [TRACE, FILE]])
    if chance.random() < 0.3:
        runs = [(chance.choice(["--before", "--after"]), chance.choice([FILE, SEED, OTHER])) for _ in range(4)]
        pair = ["--before", SEED, "--after", FILE, *(word for run in runs for word in run)]
    suffix = chance.choice([".html", ".html", ".md", ".txt", ".json"])
    return [
        "compare",
        *pair,
        *_maybe(chance, 0.2, "-f", "-o", OUTPUT + suffix),
        *_maybe(chance, 0.1, "--least-effect", chance.choice(["0", "50", "1e9", "nan", "-1"])),
        *_maybe(chance, 0.5, "-v"),
        *_maybe(chance, 0.5, "--json"),
        *_steps(chance),
        *_cached(chance),
    ]


def _dive(chance: random.Random) -> Sequence[str]:
    pairs = [["--compare", FILE, SEED], ["--compare", SEED, FILE], ["--compare", FILE, OTHER], [FILE, OTHER]]
    files = chance.choice([[FILE], [FILE], [FILE], [FILE], *pairs, [FILE, "--print"]])
    more = [*_maybe(chance, 0.1, "--top", "1"), *_maybe(chance, 0.1, "-o", OUTPUT + chance.choice([".md", ".txt"]))]
    return ["dive", *files, *more, *_maybe(chance, 0.5, "-v"), *_maybe(chance, 0.5, "--json")]


def _lint(chance: random.Random) -> Sequence[str]:
    return ["lint", FILE, *_maybe(chance, 0.2, OTHER), *_maybe(chance, 0.5, "--json")]


def _gate(chance: random.Random) -> Sequence[str]:
    limit = chance.choice(["step_ms<=12", "syncs<=0", "idle_pct<=10", "nonsense<=1", "step_ms<=x", *ASKED])
    files = [*_maybe(chance, 0.3, "--junit", OUTPUT + ".xml"), *_maybe(chance, 0.3, "--comment", OUTPUT + ".md")]
    runs = chance.choice([[FILE], [FILE], [FILE, SEED], [FILE, OTHER], [FILE, FILE, SEED, SEED]])
    ncu = _maybe(chance, 0.1, "--ncu", chance.choice([FILE, OTHER]))
    files = [*files, *_maybe(chance, 0.2, "--metric", "busy"), *ncu, *_maybe(chance, 0.1, "--baseline", OTHER)]
    return ["gate", *runs, "--budget", limit, *files, *_maybe(chance, 0.5, "--json"), *_steps(chance), *_cached(chance)]


def _history(chance: random.Random) -> Sequence[str]:
    """The record is not an argument: it lies where WARPLINE_HISTORY says."""
    as_json = _maybe(chance, 0.5, "--json")
    if chance.random() < 0.2:
        return ["gate", SEED, "--budget", "step_ms<=12", "--folder", f"{HISTORY}/x", "--name", "train", *as_json]
    more = [*_maybe(chance, 0.3, "--number", "launches"), *_maybe(chance, 0.3, "--svg", OUTPUT + ".svg")]
    return ["history", *_maybe(chance, 0.8, "train"), "--folder", f"{HISTORY}/x", *more, *as_json]


def _baseline(chance: random.Random) -> Sequence[str]:
    return [
        "baseline",
        "save",
        "x",
        FILE,
        *_maybe(chance, 0.3, _second(chance), FILE),
        "--folder",
        OUTPUT,
        *_steps(chance),
        *_cached(chance),
    ]


def _export(chance: random.Random) -> Sequence[str]:
    suffix = chance.choice([".pftrace", ".perfetto.json", ".perfetto.json.gz", ".speedscope.json", ".svg", ".svg"])
    more = ["--what", chance.choice(["timeline", "time", "roofline"])] if suffix == ".svg" else []
    return [
        "export",
        FILE,
        *("-o", OUTPUT + suffix, "-f"),
        *more,
        *_maybe(chance, 0.5, "--json"),
        *_maybe(chance, 0.3, "--no-why"),
        *_steps(chance),
        *_cached(chance),
    ]


MAKERS: dict[str, tuple[Maker, int]] = {
    "diagnose": (_diagnose, 18),
    "stats": (_stats, 14),
    "sql": (_sql, 9),
    "path": (_path, 8),
    "memory": (_memory, 6),
    "roofline": (_roofline, 9),
    "ops": (_ops, 8),
    "parts": (_parts, 8),
    "whatif": (_whatif, 7),
    "budget": (_budget, 5),
    "export": (_export, 7),
    "compare": (_compare, 5),
    "gate": (_gate, 4),
    "baseline": (_baseline, 3),
    "report": (_report, 8),
    "doctor": (_doctor, 9),
    "lint": (_lint, 2),
    "scrub": (_scrub, 12),
}
"""Each verb on a profile, and how often it is drawn."""
HISTORY = "/nowhere"
"""The project that the runs in a record belong to."""
OWN_KIND_VERBS = {"dive", "history"}
"""Verbs on a kind of input of their own: a report of Nsight Compute, the local record."""
FRONT_DOOR = 6
"""How often a function of the Python API is drawn instead."""


def commands_for(kind: str, chance: random.Random, count: int, only: Sequence[str] = ()) -> list[Command]:
    """Some commands for an input of that kind; with `only`, of these verbs where the kind has a choice."""
    return [_command(kind, chance, only) for _ in range(count)]


def _command(kind: str, chance: random.Random, only: Sequence[str]) -> Command:
    if kind == "baseline":
        return Command(tuple(_against(FILE, chance)), MORE_CODES["gate"])
    if kind == "history":
        return Command(tuple(_recorded(chance)), MORE_CODES["gate"])
    if kind == "source":
        return Command(tuple(_lint(chance)), MORE_CODES["lint"])
    if kind == "folder":
        return _of_a_run(chance, only)
    if kind not in {"document", "recording", "database", "history"} and chance.random() < 0.15:
        return _drawn(chance, only)  # a verb that is not meant for such a file
    if kind == "snapshot":
        return Command(tuple(_memory(chance)))
    if kind in {"ncu", "report"} and chance.random() < 0.3:
        return Command(tuple(_with_counters(chance)), MORE_CODES["gate"])
    if kind in {"ncu", "report"} and chance.random() < 0.8:
        return Command(tuple(_dive(chance)))
    if kind in {"ncu", "report"}:
        return Command(tuple(_doctor(chance)), MORE_CODES["doctor"])
    if kind == "names" and chance.random() < 0.2:
        return Command(
            (
                chance.choice([verb for verb in ("device", "metric", "explain") if verb in VERBS]),
                values.text(chance).replace("\x00", "") or "H200",
                *_maybe(chance, 0.5, "--json"),
            )
        )
    if kind == "names":
        return Command(
            ("kernel", "-", *_maybe(chance, 0.3, "--device", "sm90"), *_maybe(chance, 0.5, "--json")), stdin=True
        )
    if kind == "log":
        return Command(tuple(_doctor(chance)), MORE_CODES["doctor"])
    if not only and chance.random() < 0.02:
        return Command(tuple(_dive(chance)))
    return _drawn(chance, only)


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


def _recorded(chance: random.Random) -> Sequence[str]:
    """What reads the local record, or adds to it."""
    match chance.randrange(6):
        case 0:
            return ["gate", SEED, "--budget", "step_ms<=12", "--name", "train", "--no-cache"]
        case 1:
            return ["compare", SEED, TRACE, "--no-cache", *_maybe(chance, 0.5, "--json")]
        case 2:
            return ["diagnose", SEED, "--no-cache", *_maybe(chance, 0.5, "--json")]
        case _:
            return _history(chance)


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
    verbs = {**{verb: weight for verb, (_, weight) in MAKERS.items()}, "python": FRONT_DOOR}
    verbs = {verb: weight for verb, weight in verbs.items() if not only or verb in only}
    verb = chance.choices(list(verbs), list(verbs.values()))[0]
    if verb == "python":
        return Command((chance.choice(list(front_door.FUNCTIONS)), str(chance.randrange(1 << 30))), front=True)
    arguments = MAKERS[verb][0](chance)
    codes = MORE_CODES.get(verb, CODES)
    piped = verb not in {"scrub", "compare", "lint"} and chance.random() < 0.04
    return Command(tuple("-" if piped and word == FILE else word for word in arguments), codes, stdin=piped)
