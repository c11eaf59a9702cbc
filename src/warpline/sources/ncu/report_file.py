"""``.ncu-rep`` to kernels: the blocks say what must be there, a child process with NVIDIA's reader says what is."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from warpline.errors import UnreadableFile, WarplineError
from warpline.sources.health import HealthEntry
from warpline.sources.kinds import NCU_MAGIC
from warpline.sources.ncu.child import MISSING_MODULE
from warpline.sources.ncu.container import Container, read_container
from warpline.sources.ncu.csv_file import read_csv
from warpline.sources.ncu.launch_metrics import chip, device_name, dimensions
from warpline.sources.ncu.model import InstructionCounters, KernelReport, NcuReport, Reading, SourceCounters
from warpline.sources.ncu.numbers import base_unit
from warpline.sources.stdin import as_shell_word
from warpline.sources.unpack import Unpacked
from warpline.units import several

CHILD = Path(__file__).with_name("child.py")
_AGAIN = "copy it again, or record it again"
_INSTALL = "pip install ncu-report, or give its CSV: ncu --import REPORT.ncu-rep --csv --page raw > REPORT.csv"
_WAIT_S = 900
_CLOCKS_LEFT = re.compile(r"--clock-control[= ]none")


class _Answer(Struct, frozen=True):
    """What the child process said."""

    kernels: list[dict[str, Any]]
    code: int
    complaint: str


def read_report_file(path: Path) -> NcuReport:
    """Read an ``.ncu-rep``, plain, gzipped or xz; a damaged file is read up to its damage, with a health entry."""
    with _plain(path) as (file, damage):
        container = _checked(file, path)
        answer = _ask_child(file)
        if answer.code == MISSING_MODULE:
            return _through_ncu(file, path, container)
    health = list(_health(container, answer, damage))
    if not answer.kernels:
        if container.results or answer.code:
            why = _ending(answer) or "its blocks are damaged"
            held = several(container.results, "kernel")
            raise UnreadableFile("damaged-file", f"{path} holds {held}, but none can be read: {why}", _AGAIN)
        if container.truncated or damage:
            raise UnreadableFile("damaged-file", f"{path} is cut short before the end of its first kernel", _AGAIN)
        hint = f"ask why: warpline doctor {as_shell_word(path)}"
        raise UnreadableFile("no-kernels", f"{path} holds no profiled kernel", hint)
    kernels = tuple(_kernel(number, plain) for number, plain in enumerate(answer.kernels))
    return NcuReport(path, "ncu-rep", container.tool_version, kernels, tuple(health))


@contextmanager
def _plain(path: Path) -> Iterator[tuple[Path, str]]:
    """The file itself, or an unpacked copy, and what was wrong with its packing."""
    with path.open("rb") as file:
        if file.read(len(NCU_MAGIC)) == NCU_MAGIC:
            yield path, ""
            return
    unpacked = Unpacked(path)
    with tempfile.TemporaryDirectory(prefix="warpline-") as folder:
        copy = Path(folder) / "report.ncu-rep"
        with copy.open("wb") as target:
            for piece in unpacked:
                target.write(piece)
        yield copy, unpacked.damage


def _checked(file: Path, path: Path) -> Container:
    with file.open("rb") as opened:
        head = opened.read(len(NCU_MAGIC))
        if head != NCU_MAGIC:
            raise UnreadableFile("not-an-ncu-report", f"{path} is not a report of Nsight Compute", _AGAIN)
        return read_container(opened)


def _ask_child(file: Path) -> _Answer:
    # -P keeps the child's folder off the module path, where our `numbers` would hide the standard library's.
    command = [sys.executable, "-P", str(CHILD), str(file)]
    with tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, stdin=subprocess.DEVNULL)
        try:
            kernels = [json.loads(line) for line in child.stdout or () if line.endswith(b"\n")]
            code = child.wait(_WAIT_S)
        finally:
            child.kill()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()
        complaints.seek(0)
        said = complaints.read(1 << 16).decode(errors="replace").strip()
    return _Answer(kernels, code, said.rpartition("\n")[2])


def _through_ncu(file: Path, path: Path, container: Container) -> NcuReport:
    """The raw page, printed by ncu itself, where the package is missing; without counters per instruction."""
    ncu = shutil.which(os.environ.get("WARPLINE_NCU", "") or "ncu")
    if ncu is None:
        raise WarplineError("ncu-report-missing", f"reading {path.name} needs NVIDIA's ncu-report package", _INSTALL)
    with tempfile.TemporaryDirectory(prefix="warpline-") as folder:
        page = Path(folder) / "raw.csv"
        with page.open("wb") as target:
            command = [ncu, "--import", str(file), "--csv", "--page", "raw", "--print-units", "base"]
            subprocess.run(command, stdout=target, stdin=subprocess.DEVNULL, timeout=_WAIT_S, check=False)
        found = read_csv(page)
    message = "read through ncu's CSV: counters per instruction need pip install ncu-report"
    health = (*found.health, HealthEntry("no-instruction-counters", "info", f"The report was {message}."))
    return replace(found, path=path, tool_version=container.tool_version, health=health)


def _ending(answer: _Answer) -> str:
    """Why the child process ended before the end of the file; empty if it did not."""
    if answer.code < 0:
        return f"NVIDIA's reader ended by {signal.Signals(-answer.code).name}"
    return f"NVIDIA's reader failed ({answer.complaint or answer.code})" if answer.code else ""


def _health(container: Container, answer: _Answer, damage: str) -> Iterator[HealthEntry]:
    read, expected = len(answer.kernels), container.results
    if damage:
        yield HealthEntry("truncated-file", "error", damage)
    elif container.truncated:
        message = f"The report ends within a block: it was cut short after {several(expected, 'kernel')}."
        yield HealthEntry("truncated-file", "error", message)
    ending = _ending(answer)
    if ending or read < expected:
        message = f"{read} of {several(expected, 'kernel')} could be read" + (f": {ending}." if ending else ".")
        yield HealthEntry("damaged-report", "error", message)
    if container.command and not _CLOCKS_LEFT.search(container.command):
        message = "ncu locked the clocks to their base frequency: durations are longer than in production."
        yield HealthEntry("clocks-locked", "info", message)


def _kernel(number: int, plain: dict[str, Any]) -> KernelReport:
    metrics: dict[str, Reading] = {}
    for name, value, printed in plain["metrics"]:
        unit, factor = base_unit(printed)
        metrics[name] = Reading(value * factor if isinstance(value, float) else value, unit)
    duration = metrics.get("gpu__time_duration.sum")
    return KernelReport(
        name=plain["name"] or plain["function"],
        function=plain["function"],
        launch=number,
        device=device_name(metrics),
        chip=chip(metrics),
        grid=dimensions(metrics, "launch__grid_dim_"),
        block=dimensions(metrics, "launch__block_dim_"),
        duration_ns=duration.value if duration is not None and isinstance(duration.value, float) else None,
        metrics=metrics,
        kind=plain["kind"],
        breakdowns=plain["breakdowns"],
        nvtx=tuple(plain["nvtx"]),
        source=_source(plain),
    )


def _source(plain: dict[str, Any]) -> SourceCounters | None:
    if not plain["instructions"]:
        return None
    return SourceCounters(tuple(InstructionCounters(*row) for row in plain["instructions"]), plain["files"])
