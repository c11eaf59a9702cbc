"""Cold start: the cost of the first call in a fresh process, split into its parts.

Each run is a separate process. The first only fills the page cache. The second starts with empty compile caches
(Triton's, Inductor's, the driver's) and the others with the caches it filled: the difference between their first calls
is the compilers' time. The last runs are not split: their first call is what a stopwatch around it shows.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from warpline.errors import CannotAnswer
from warpline.units import duration

CHILD = Path(__file__).with_name("cold_child.py")
MEANINGS = {
    "python": "the interpreter starts",
    "import": "import torch: libraries are loaded and modules run",
    "driver": "torch.cuda.init(): the driver enumerates its devices",
    "context": "a context on the device: memory, streams, the first synchronisation",
    "allocator": "the first allocation on the device",
    "first_kernel": "the first kernel: its module is loaded onto the device",
    "library": "the library's handle and workspace (cuBLAS)",
    "program": "the file runs, with its imports",
    "inputs": "the inputs are created; if the parts above are not split, they are included here",
    "jit": "compilers (Triton, Inductor, PTX): first call with empty caches minus first call with full ones",
    "first_call": "the first call: kernels are loaded, the algorithm is chosen",
    "second_call": "the second call",
    "steady": "a synchronised call in the steady state",
}
NOTHING_COMPILED = "compilers: nothing was compiled"
CACHES = {"TRITON_CACHE_DIR": "triton", "TORCHINDUCTOR_CACHE_DIR": "inductor", "CUDA_CACHE_PATH": "cuda"}
TIMEOUT_S = 600
ENOUGH_S = 120
"""Processes of each kind are as few as fit into this time, and at least one."""


@dataclass(frozen=True, slots=True)
class ColdPart:
    """One part of a cold start: the median over processes, and the range."""

    name: str
    median_ns: float
    low_ns: float
    high_ns: float
    meaning: str


@dataclass(frozen=True, slots=True)
class ColdStartTimes:
    """A cold start in its parts, in the order in which they happen.

    >>> {part.name: part.median_ns for part in warpline.bench.cold_start(orders).parts}
    """

    name: str
    device: str
    torch: str
    processes: int
    parts: tuple[ColdPart, ...]
    first_call_ns: float
    """What a stopwatch around the first call shows if no part was run separately before it."""
    steady_ns: float

    @property
    def ratio(self) -> float:
        """The first call as a multiple of the steady state."""
        return self.first_call_ns / self.steady_ns

    @property
    def headline(self) -> str:
        """What was measured."""
        return f"{self.name} on {self.device}: a cold start, in {self.processes} fresh processes"

    @property
    def sentence(self) -> str:
        """The first call compared with the steady state."""
        first, steady = duration(self.first_call_ns), duration(self.steady_ns)
        ratio = f"{self.ratio:,.0f}" if self.ratio >= 10 else f"{self.ratio:.2g}"
        times = f"{ratio}× less" if self.ratio > 1.05 else "no cold start"
        return f"a stopwatch around the first call shows {first}; a steady-state call takes {steady}: {times}"

    def __str__(self) -> str:
        parts = (
            f"  {part.name.replace('_', ' '):12} {duration(part.median_ns):>9}  {part.meaning}" for part in self.parts
        )
        return "\n".join([self.headline, *parts, self.sentence])

    def to_dict(self) -> dict[str, Any]:
        """The `cold` of schema `warpline.bench/1`."""
        return {**asdict(self), "ratio": self.ratio}


@dataclass(frozen=True, slots=True)
class Orders:
    """What a process calls."""

    name: str
    program: str = ""
    experiment: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    library: str = ""
    device: str = "auto"


ERROR = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b")
"""The start of the last part of a traceback; its message may have several lines."""
Runner = Callable[[Orders, bool, dict[str, str]], dict[str, Any]]


def cold_start(
    orders: Orders, *, repeats: int = 3, report: Callable[[str], None] = lambda line: None, run: Runner | None = None
) -> ColdStartTimes:
    """Measure in fresh processes, `repeats` of each kind."""
    run = run or run_child
    with tempfile.TemporaryDirectory(prefix="warpline-cold-") as folder:

        def caches(name: str) -> dict[str, str]:
            return {variable: str(Path(folder, name, place)) for variable, place in CACHES.items()}

        def one(number: int, of: int, what: str, *, split: bool, folder: str) -> dict[str, Any]:
            report(f"cold start: process {number} of {of}, {what}")
            return run(orders, split, caches(folder))

        every = 2 + 2 * repeats
        one(1, every, "which fills the file cache", split=True, folder="unused")
        began = time.monotonic()
        empty = one(2, every, "with empty compile caches", split=True, folder="used")
        took_s = time.monotonic() - began
        fitting = affordable(repeats, took_s)
        if fitting < repeats:
            every = 2 + 2 * fitting
            report(f"cold start: a process takes {took_s:.0f} s, so that {every} are started; --shape makes it smaller")
        numbers = range(3, 3 + fitting)
        split = [one(number, every, "split into parts", split=True, folder="used") for number in numbers]
        numbers = range(3 + fitting, 1 + every)
        whole = [one(number, every, "not split", split=False, folder="used") for number in numbers]
        compiled = any(path.is_file() for path in Path(folder, "used").rglob("*"))
    return assemble(orders, empty, split, whole, compiled=compiled)


def affordable(repeats: int, each_s: float) -> int:
    """How many processes of each of the two kinds fit into the time that is enough."""
    return max(1, min(repeats, int(ENOUGH_S / max(2 * each_s, 1e-9))))


def assemble(
    orders: Orders,
    empty: dict[str, Any],
    split: Sequence[dict[str, Any]],
    whole: Sequence[dict[str, Any]],
    *,
    compiled: bool,
) -> ColdStartTimes:
    """Combine the parts of all runs; a compiler that wrote nothing to its cache took no time."""
    names = [name for name in MEANINGS if name in split[0]["parts"]]
    columns = {name: [float(run["parts"][name]) for run in split] for name in names}
    longer_ns = empty["parts"]["first_call"] - statistics.median(columns["first_call"])
    columns["jit"] = [max(0.0, longer_ns) if compiled else 0.0]
    parts = tuple(
        ColdPart(
            name, statistics.median(column), min(column), max(column), meaning if any(column) else NOTHING_COMPILED
        )
        for name, meaning in MEANINGS.items()
        if (column := columns.get(name)) is not None
    )
    first_ns = statistics.median(run["parts"]["first_call"] for run in whole)
    steady_ns = statistics.median(run["parts"]["steady"] for run in (*split, *whole))
    processes = 2 + len(split) + len(whole)
    return ColdStartTimes(orders.name, split[0]["device"], split[0]["torch"], processes, parts, first_ns, steady_ns)


def run_child(orders: Orders, split: bool, environment: dict[str, str]) -> dict[str, Any]:
    """Run one fresh process."""
    with tempfile.TemporaryDirectory(prefix="warpline-cold-") as folder:
        output = Path(folder, "times.json")
        package = str(Path(__file__).parents[2])
        message = {**asdict(orders), "split": split, "path": [package], "spawned_ns": time.monotonic_ns()}
        command = [sys.executable, "-P", str(CHILD), json.dumps(message), str(output)]
        try:
            everything = {**os.environ, **environment}
            done = subprocess.run(
                command, env=everything, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise CannotAnswer("cold-timeout", f"a fresh process took more than {TIMEOUT_S} s") from error
        if done.returncode != 0 or not output.exists():
            said = done.stderr.strip().splitlines() or ["no error message"]
            reason = next((line for line in reversed(said) if ERROR.match(line)), said[-1])
            hint = "pip install torch" if "torch" in reason else "run it without --cold"
            raise CannotAnswer("cold-failed", f"a fresh process ended with {done.returncode}: {reason}", hint)
        answer: dict[str, Any] = json.loads(output.read_text())
        return answer
