"""Profiles whose every text field tries to take over a terminal, a spreadsheet, a page or the renderer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kineto_files import MAIN, PROCESS, annotation, call, copy, frame, kernel, op, write
from nsys_files import GLOBAL_PID, GLOBAL_TID, Export

EVIL = (
    "\x1b[5;7mSGR",
    "\x1b]0;title\x07",
    "\x1b]52;c;Y2xpcA==\x1b\\",
    "\x9b2J",
    "\x1b[2J\x1b[H",
    "\rover",
    "bell\x07\x08\x7f",
    "nul\x00",
    "two\nlines\ttab\x0b\x0c",
    "next\x85line\u2028\u2029",
    "\u202ertl\u202c\u2066\u200f",
    "zero\u200bwidth\u2060\ufeff\u3164\U000e0041",
    "zalgo" + "\u0301" * 9,
    "[red]markup[/] [/bold] [link=x:y]",
    ":smile: [bold",
    "=cmd|'/c calc'!A1",
    "<img src=x onerror=alert(1)>",
    "| a | `b` | https://evil.example ![x](y)",
)
"""What a kernel's name can hold."""


def evil(number: int, name: str = "") -> str:
    """One of them, with a name that warpline looks for before it."""
    return f"{name}{EVIL[number % len(EVIL)]}"


def hostile_kineto(folder: Path) -> Path:
    """A training loop of four steps, with such a text in every field of every kind of event."""
    events: list[dict[str, Any]] = []
    for step in range(4):
        begin, number = 3000.0 * step, 40 * step
        events += [
            annotation(f"ProfilerStep#{step}{evil(step, ' ')}", begin, 2900),
            annotation(evil(step), begin + 1, 2000),
            frame(f"{evil(step)}.py({step}): {evil(step + 1)}", begin, 2890, 2 * step, None),
            frame(f"nn.Module: {evil(step + 2)}", begin + 1, 2880, 2 * step + 1, 2 * step),
        ]
        for place, name in enumerate(("aten::mm", "", "aten::copy_", "aten::item", "aten::add", "")):
            at, correlation = begin + 10 + 300 * place, number + place + 1
            arguments = {
                "Input Dims": [[64, 64], evil(place)],
                "Input type": ["float", evil(place)],
                "Concrete Inputs": [evil(place), ""],
                "Call stack": evil(place, "train.py(1): f;"),
                evil(place): evil(place + 1),
            }
            events.append(op(name or evil(number + place), at, 60, external=correlation, **arguments))
            events.append(call("cudaLaunchKernel" if place != 2 else "cudaMemcpyAsync", at + 5, 10, correlation))
            if place == 2:
                events.append(copy(evil(place, "Memcpy HtoD (Pageable -> Device)"), at + 30, 200, correlation, 1 << 20))
            else:
                events.append(kernel(evil(number + place), at + 30, 150, correlation, grid=[9, 1, 1], block=[64, 1, 1]))
        events.append(call("cudaDeviceSynchronize", begin + 1900, 60, number + 30))
        events.append(call(evil(step, "cuda"), begin + 2000, 6, number + 31))
        events.append(kernel(evil(step), begin + 2010, 6, number + 31) | {"cat": evil(step)})
    for name in ("thread_name", "process_name", "process_labels"):
        events.append(
            {"ph": "M", "name": name, "pid": PROCESS, "tid": MAIN, "args": {"name": evil(0), "labels": evil(1)}}
        )
    devices = [{"id": 0, "name": evil(0, "NVIDIA H200"), "numSms": 132, "computeMajor": 9, "computeMinor": 0}]
    world = {"backend": evil(1), "rank": evil(2), "world_size": evil(3)}
    return write(
        folder, events, deviceProperties=devices, distributedInfo=world, with_stack=evil(4), **{evil(5): evil(6)}
    )


def hostile_nsys(folder: Path) -> Path:
    """The same as an nsys export."""
    export = Export()
    for number in range(len(EVIL)):
        at = 1_000_000 * number
        export.kernel(at + 50_000, at + 400_000, evil(number), correlation=number + 1)
        export.call(at + 10_000, at + 20_000, evil(number, "cudaLaunchKernel"), correlation=number + 1)
        export.range(at, at + 900_000, evil(number), domainId=number % 3)
        export.add("OSRT_API", start=at, end=at + 5000, nameId=export.string(evil(number)), globalTid=GLOBAL_TID)
        export.remark(evil(number), severity=2)
        export.option(evil(number), evil(number)).system(evil(number), evil(number))
    export.range(0, None, evil(2), kind=75, domainId=1)
    export.add("ThreadNames", nameId=export.string(evil(1)), priority=1, globalTid=GLOBAL_TID)
    export.add("PROCESSES", globalPid=GLOBAL_PID, pid=1, name=evil(0))
    export.add("TARGET_INFO_GPU", id=0, name=evil(0, "NVIDIA H200"), cuDevice=0, smCount=132)
    export.option("PROCESS_0:COMMAND", evil(1)).option("CAPTURE_EVENT_TYPE", evil(2))
    export.system("NvDriverVersion", evil(1)).system("OsDescription", evil(2)).error_output(evil(0, "Error: "))
    return export.write(folder / "report.sqlite")
