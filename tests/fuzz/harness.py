"""Fuzzing for minutes or hours: workers try inputs, are watched, and are replaced when an input kills or holds one.

python -m tests.fuzz --minutes 60 --jobs 2
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import tarfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.execute import Failure
from tests.fuzz.inputs import build, recipe_of
from tests.fuzz.worker import chosen_commands, work, write

CHUNK = 400
"""Inputs of one worker process; then a new one begins, so that nothing adds up."""
CPU_LIMIT_S = 20.0
ASLEEP_LIMIT_S = 60.0
"""A command that computes or sleeps for longer hangs."""
GRACE_S = 20.0
"""After the last minute, a failing input may still be made small for so long."""
POLL_S = 0.5
KINDS = {
    "internal-error": "internal errors",
    "crash": "crashes",
    "hang": "hangs",
    "control-character": "control characters",
    "invalid-json": "invalid JSON",
    "memory": "over 1 GiB",
}
"""Kinds of failures that the summary always names."""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Tally:
    """What was run and found."""

    inputs: int = 0
    commands: collections.Counter[str] = field(default_factory=collections.Counter)
    codes: collections.Counter[int] = field(default_factory=collections.Counter)
    failures: collections.Counter[str] = field(default_factory=collections.Counter)
    slowest: list[tuple[float, int, str]] = field(default_factory=list)
    peak_bytes: int = 0
    cpu_s: float = 0.0

    def add(self, number: int, verb: str, cpu_s: float, peak: int, code: int, found: list[list[str]]) -> None:
        """One run."""
        self.commands[verb] += 1
        self.codes[code] += 1
        self.failures.update(signature for signature, _ in found)
        self.slowest = sorted([*self.slowest, (round(cpu_s, 2), number, verb)], reverse=True)[:5]
        self.peak_bytes = max(self.peak_bytes, peak)
        self.cpu_s += cpu_s

    def report(self) -> str:
        """The tally as text."""
        verbs = ", ".join(f"{verb} {count:,}" for verb, count in self.commands.most_common())
        slow = ", ".join(f"{cpu:.1f} s ({verb}, input {number})" for cpu, number, verb in self.slowest[:3])
        kinds = collections.Counter[str]()
        for signature, count in self.failures.items():
            kinds[KINDS.get(signature.split()[0], "others")] += count
        named = ", ".join(f"{kinds[kind]:,} {kind}" for kind in [*KINDS.values(), "others"])
        lines = [
            f"{self.inputs:,} inputs, {self.commands.total():,} commands ({verbs})",
            f"exit codes: {dict(sorted(self.codes.items()))}; CPU {self.cpu_s:,.0f} s; slowest: {slow}; peak memory {self.peak_bytes / 2**20:,.0f} MiB",
            f"{self.failures.total():,} failures with {len(self.failures)} signatures: {named}",
        ]
        return "\n".join([*lines, *(f"{count:6,}  {signature}" for signature, count in self.failures.most_common())])


class Campaign:
    """One run of the fuzzer."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.tally = Tally()
        self._lock = threading.Lock()
        self._next = options.first
        self._stop_at = time.monotonic() + options.minutes * 60 if options.minutes else None

    def run(self) -> Tally:
        """All jobs to their end."""
        jobs = [threading.Thread(target=self._job, daemon=True) for _ in range(self.options.jobs)]
        for job in jobs:
            job.start()
        said = time.monotonic()
        while any(job.is_alive() for job in jobs):
            time.sleep(POLL_S)
            if time.monotonic() - said > 60:
                said = time.monotonic()
                print(
                    f"… {self.tally.inputs:,} inputs, {self.tally.failures.total():,} failures",
                    file=sys.stderr,
                    flush=True,
                )
        return self.tally

    def _job(self) -> None:
        while True:
            with self._lock:
                first, last = self._next, self.options.first + self.options.count
                count = min(CHUNK, last - first)
                self._next += max(count, 0)
            if count <= 0 or self._over():
                return
            while count > 0:
                reached = self._chunk(first, count)
                count -= reached - first
                first = reached

    def _over(self, grace_s: float = 0.0) -> bool:
        return self._stop_at is not None and time.monotonic() > self._stop_at + grace_s

    def _chunk(self, first: int, count: int) -> int:
        """Watch one worker; gives the first input that it did not get to."""
        options = self.options
        arguments = [
            "--worker",
            str(first),
            str(count),
            "--seed",
            str(options.seed),
            "--commands",
            str(options.commands),
            *(["--only", *options.only] if options.only else []),
        ]
        with (options.output / f"worker-{threading.get_ident()}.log").open(
            "w+", encoding="utf-8", errors="replace"
        ) as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz", *arguments, "--output", str(options.output)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "POLARS_MAX_THREADS": "1"},
            )
            try:
                running, why, reached = self._watch(process, first)
            finally:
                process.kill()
                process.wait()
            if running is None:
                return first + count if self._over() else max(reached, first + 1)
            log.seek(0)
            self._died(running, why or f"crash {process.returncode}", log.read())
            return running[0] + 1

    def _watch(self, process: subprocess.Popen[str], reached: int) -> tuple[list[Any] | None, str, int]:
        """Read what the worker says; gives the run in progress when it died or was held, why, and the next input."""
        running: list[Any] | None = None
        patience = Patience()
        assert process.stdout is not None
        waiting = selectors.DefaultSelector()
        waiting.register(process.stdout, selectors.EVENT_READ)
        while not self._over(GRACE_S):
            if waiting.select(POLL_S):
                line = process.stdout.readline()
                if not line:
                    return running, "", reached
                said = json.loads(line)
                if "begin" in said:
                    running, patience = said["begin"], Patience.begin(process.pid)
                else:
                    self._took(said["end"])
                    running = None  # it may make a failing input small, which takes time
                    reached = said["end"][0] + 1
                    if self._over() and said["end"][1] == self.options.commands - 1:
                        return None, "", reached
            elif running and patience.look(process.pid):
                process.send_signal(signal.SIGUSR1)
                time.sleep(1)
                return running, "hang", reached
        return None, "", reached

    def _took(self, run: list[Any]) -> None:
        number, place, verb, cpu_s, peak, code, found = run
        with self._lock:
            self.tally.add(number, verb, cpu_s, peak, code, found)
            self.tally.inputs += place == 0

    def _died(self, running: list[Any], why: str, log: str) -> None:
        number, place, verb = running
        frames = [line.strip() for line in log.splitlines() if "/warpline/" in line and "File" in line]
        where = frames[0].rpartition("/warpline/")[2].replace('", line ', ":") if frames else verb
        with self._lock:
            self.tally.add(number, verb, CPU_LIMIT_S if why == "hang" else 0.0, 0, -1, [[f"{why} {where}", why]])
            self.tally.inputs += place == 0
        recipe = recipe_of(self.options.seed, number)
        command = chosen_commands(self.options.seed, number, recipe, self.options.commands, self.options.only)[place]
        folder = self.options.output / f"{why}-{number}-{place}".replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        write(
            folder,
            build(recipe),
            command,
            Failure(why, where).signature,
            f"{self.options.seed} {number} {place}",
            recipe,
        )
        (folder / "stacks.txt").write_text(log[-20_000:], encoding="utf-8")


@dataclass
class Patience:
    """How long a command has computed and slept. A moment in which it could run, but others had the CPU, is neither."""

    cpu_s: float = 0.0
    asleep_s: float = 0.0
    _began_s: float = 0.0

    @classmethod
    def begin(cls, process: int) -> Patience:
        """From now on."""
        return cls(_began_s=cpu_seconds(process))

    def look(self, process: int) -> bool:
        """Look again after POLL_S; whether the command hangs."""
        cpu_s = cpu_seconds(process) - self._began_s
        if cpu_s == self.cpu_s and not can_run(process):
            self.asleep_s += POLL_S
        self.cpu_s = cpu_s
        return self.cpu_s > CPU_LIMIT_S or self.asleep_s > ASLEEP_LIMIT_S


def cpu_seconds(process: int) -> float:
    """CPU time so far of a process and its finished children."""
    with contextlib.suppress(OSError, ValueError):
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / TICKS
    return 0.0


def can_run(process: int) -> bool:
    """Whether a thread of the process, or of a child, runs or is ready to."""
    for task in Path(f"/proc/{process}/task").glob("*"):
        with contextlib.suppress(OSError, IndexError):
            state = (task / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            children = (task / "children").read_text(encoding="ascii").split()
            if state in {"R", "D"} or any(can_run(int(child)) for child in children):
                return True
    return False


def main() -> int:
    """The command line; exit code 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Run warpline on mutated profiles.")
    parser.add_argument("--seed", default=str(secrets.randbelow(10**9)), help="repeat a run; default: a new one")
    parser.add_argument("--count", type=int, default=10**9, help="stop after this many inputs")
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after this time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="worker processes")
    parser.add_argument("--commands", type=int, default=2, help="commands for each input")
    parser.add_argument("--only", nargs="+", default=[], metavar="VERB", help="run only these verbs")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--output", type=Path, default=Path("fuzz-failures"), help="folder for inputs that fail")
    parser.add_argument("--archive", type=Path, metavar="FILE.tar.gz", help="pack that folder into one file at the end")
    parser.add_argument("--worker", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.output = options.output.absolute()
    if options.worker:
        work(options.seed, *options.worker, options.commands, options.only, options.output)
        return 0
    options.output.mkdir(parents=True, exist_ok=True)
    print(f"seed {options.seed}; failing inputs go to {options.output}", flush=True)
    report = (tally := Campaign(options).run()).report()
    print(report)
    for log in options.output.glob("worker-*.log"):
        log.unlink()  # what killed a worker is kept beside its input
    (options.output / "summary.txt").write_text(f"seed {options.seed}\n{report}\n", encoding="utf-8")
    if options.archive:
        with tarfile.open(options.archive, "w:gz") as archive:
            archive.add(options.output, options.output.name)
    return 1 if tally.failures else 0
