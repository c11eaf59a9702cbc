"""Inputs that are lines of text: kernel names, what nsys and ncu print, and the CSV pages of ncu."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.fuzz import source_mutators, values

Mutation = Callable[[list[str], random.Random], None]
MUTATIONS: dict[str, Mutation] = {}
NAMES = 8
LOGS = {
    "nsys": """Collecting data...
Generating '/tmp/nsys-report-1.qdstrm'
[1/8] [========================100%] report1.nsys-rep
The target application terminated. One or more process it created re-parented.
WARNING: CPU IP/backtrace sampling not supported, disabling.
SKIPPED: /tmp/report1.sqlite does not contain CUDA trace data.
""",
    "ncu": """==PROF== Connected to process 4321 (/usr/bin/python3.11)
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0.
==WARNING== No kernels were profiled.
==PROF== Disconnected from process 4321
""",
    "csv": """"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","4321","python","box","gemm","1","7","(128, 1, 1)","(2, 1, 1)","0","9.0","GPU Speed Of Light Throughput","Duration","us","12.3"
"0","4321","python","box","gemm","1","7","(128, 1, 1)","(2, 1, 1)","0","9.0","Occupancy","Achieved Occupancy","%","31.5"
""",
}


SOURCES = {
    "train": """import time
import torch
from torch.utils.data import DataLoader

loader = DataLoader(data, batch_size=8, num_workers=0)
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    begin = time.time()
    for batch, label in loader:
        batch = batch.to("cuda")
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(model(batch), label.cuda())
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.3f} {time.time() - begin}")  # warpline: ignore[sync]
        torch.cuda.empty_cache()
        if torch.isnan(loss): break
    losses = [float(one.cpu()) for one in kept]
""",
    "odd": """# -*- coding: latin-1 -*-
class A(B, metaclass=C):
    @property
    async def f(self, *, a: int = (lambda x: x)(1), **k) -> "[x]":
        match k:
            case {"a": [1, *rest], **other} if (n := len(rest)) > 1:
                return await torch.cuda.synchronize()
            case _: yield from (x for x in y if not x async for x in z)
        try:
            del a[1:2, ...], k.b
        except* ValueError as error:
            raise error from None
        while 1: x.item(); x = x.cpu().numpy()
""",
}


_PLACE = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC"'
_ROW = '"{launch}","4321","python","box","{name}","1","7","(128, 1, 1)","(2, 66, 1)","0","9.0"'
_METRICS = {
    "gpu__time_duration.sum": ("us", "12.34"),
    "dram__bytes.sum.per_second": ("Gbyte/s", "1,234.5"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "31.5"),
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "81.5"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("%", "14.68"),
    "launch__registers_per_thread": ("register/thread", "64"),
    "launch__waves_per_multiprocessor": ("", "0.5"),
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": ("inst", "8.1"),
}


def _raw_page() -> str:
    """ncu's raw page: a column for each metric."""
    names_, units = ",".join(f'"{name}"' for name in _METRICS), ",".join(f'"{unit}"' for unit, _ in _METRICS.values())
    head = [f"{_PLACE},{names_}", ",".join(['""'] * 11) + f",{units}"]
    cells = ",".join(f'"{value}"' for _, value in _METRICS.values())
    return "\n".join(
        [
            "==PROF== Connected to process 4321",
            *head,
            *(f"{_ROW.format(launch=launch, name=values.NAMES[-launch - 1])},{cells}" for launch in range(4)),
        ]
    )


PAGES = {"raw": _raw_page(), "details": LOGS["csv"]}


def names(seed: str) -> str:
    """A few names of kernels, ops and calls."""
    return "\n".join(random.Random(seed).sample(values.NAMES, NAMES))


def mutated(text: str, chosen: list[tuple[str, random.Random]]) -> bytes:
    """The changed lines, as bytes."""
    lines = text.splitlines()
    for name, chance in chosen:
        {**source_mutators.MUTATIONS, **MUTATIONS}[name](lines, chance)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def mutation(function: Mutation) -> Mutation:
    """Registers a mutation under its name."""
    MUTATIONS[function.__name__] = function
    return function


@mutation
def spliced(lines: list[str], chance: random.Random) -> None:
    """An odd text within a line."""
    if lines:
        at = chance.randrange(len(lines))
        where = chance.randint(0, len(lines[at]))
        lines[at] = lines[at][:where] + values.text(chance) + lines[at][where:]


@mutation
def crossed(lines: list[str], chance: random.Random) -> None:
    """The beginning of one line and the end of another."""
    if len(lines) > 1:
        one, other = chance.sample(lines, 2)
        lines.append(one[: chance.randint(0, len(one))] + other[chance.randint(0, len(other)) :])


@mutation
def repeated(lines: list[str], chance: random.Random) -> None:
    """A piece of a line many times."""
    if lines:
        at = chance.randrange(len(lines))
        begin = chance.randint(0, len(lines[at]))
        end = begin + chance.randint(1, 8)
        lines[at] = (lines[at][:begin] + lines[at][begin:end] * chance.choice([2, 50, 700]) + lines[at][end:])[:20_000]


@mutation
def long_text(lines: list[str], chance: random.Random) -> None:
    """A cell or a line that is one piece, very often."""
    if lines:
        at = chance.randrange(len(lines))
        cells = lines[at].split('","')
        cells[chance.randrange(len(cells))] = values.long_text(chance).replace("\n", " ")
        lines[at] = '","'.join(cells)


@mutation
def letters(lines: list[str], chance: random.Random) -> None:
    """Single characters changed."""
    for _ in range(chance.choice([1, 5, 40])):
        if lines and (line := lines[at := chance.randrange(len(lines))]):
            where = chance.randrange(len(line))
            lines[at] = line[:where] + chance.choice("<>(),:_0189-&*[]{}\x00\x1b\u202e \"'\\") + line[where + 1 :]


@mutation
def cells(lines: list[str], chance: random.Random) -> None:
    """Cells of a table with odd content, gone, or one too many."""
    if not lines:
        return
    for _ in range(chance.choice([1, 3, 20])):
        at = chance.randrange(len(lines))
        parts = lines[at].split('","')
        where = chance.randrange(len(parts))
        match chance.randrange(4):
            case 0:
                del parts[where]
            case 1:
                parts.insert(where, "x")
            case 2:
                parts[where] = str(values.number(chance)) if chance.random() < 0.95 else "9" * 5_000
            case _:
                parts[where] = values.text(chance)
        lines[at] = '","'.join(parts)


@mutation
def lost(lines: list[str], chance: random.Random) -> None:
    """Few lines are left."""
    del lines[chance.randint(0, len(lines)) :]
