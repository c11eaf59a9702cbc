"""Memory and copies: pageable and pinned memory, copies beside compute, the allocator, and a growing cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from warpline.lab.model import LabColumn, LabExperiment, LabTable, LabValue, Observation
from warpline.lab.workbench import Workbench
from warpline.units import duration, size, speedup

COPY_COLUMNS = (
    LabColumn("way", "way"),
    LabColumn("time_ns", "time", "ns"),
    LabColumn("rate", "rate", "bytes_per_second"),
    LabColumn("why", "why"),
)
TIME_COLUMNS = (LabColumn("way", "way"), LabColumn("time_ns", "time", "ns"), LabColumn("why", "why"))


def run(lab: Workbench) -> Observation:
    """The tables of the three questions; copies between host and device only on a GPU."""
    tables = []
    with lab.torch.no_grad():
        if lab.has_gpu:
            tables += [_copies(lab), _overlap(lab), _allocator(lab)]
        tables.append(_cache(lab))
    return Observation(_seen({table.name: table for table in tables}), WHY, tuple(tables))


def _copies(lab: Workbench) -> LabTable:
    torch, count = lab.torch, 64 << 20
    there, pageable = lab.random(count), torch.randn(count)
    pinned = pageable.pin_memory()
    other = torch.empty_like(there)
    moved = 4.0 * count
    ways = (
        ("host to device, pageable", lambda: there.copy_(pageable), "the driver copies through a small pinned buffer"),
        ("host to device, pinned", lambda: there.copy_(pinned, non_blocking=True), "the copy engine reads it directly"),
        ("device to host, pageable", lambda: pageable.copy_(there), "the driver copies through a small pinned buffer"),
        (
            "device to host, pinned",
            lambda: pinned.copy_(there, non_blocking=True),
            "the copy engine writes it directly",
        ),
        ("within the device", lambda: other.copy_(there), "read and written: it moves twice the bytes"),
    )
    rows: list[tuple[LabValue, ...]] = []
    for name, call, why in ways:
        time = lab.loop(call, name, with_gpu=False)
        rows.append((name, time.step_ns, moved / time.step_ns * 1e9, why))
    return LabTable("copies", f"Copies of {size(moved)}", COPY_COLUMNS, tuple(rows))


def _overlap(lab: Workbench) -> LabTable:
    """A batch copied before its matmuls, or beside the matmuls of the batch before."""
    torch, width = lab.torch, 4096
    weight = lab.random(width, width, dtype="bfloat16", scale=width**-0.5)
    batches = [torch.randn(2048, width).to(torch.bfloat16) for _ in range(2)]
    pinned = [batch.pin_memory() for batch in batches]
    there = [torch.empty(2048, width, dtype=torch.bfloat16, device=lab.device) for _ in range(2)]
    side, ready, used = torch.cuda.Stream(), *([torch.cuda.Event() for _ in range(2)] for _ in range(2))
    turn = 0

    def compute(x: Any) -> None:
        for _ in range(6):
            x = x @ weight

    def one_after_the_other(sources: list[Any]) -> None:
        nonlocal turn
        turn += 1
        place = turn % 2
        there[place].copy_(sources[place], non_blocking=True)
        compute(there[place])

    def side_by_side() -> None:
        nonlocal turn
        turn += 1
        now, following = turn % 2, (turn + 1) % 2
        here = torch.cuda.current_stream()
        here.wait_event(ready[now])
        compute(there[now])
        used[now].record()
        with torch.cuda.stream(side):
            side.wait_event(used[following])
            there[following].copy_(pinned[following], non_blocking=True)
            ready[following].record()

    ways = (
        ("matmuls alone", lambda: compute(there[0]), "the data is there already"),
        ("pageable, then matmuls", lambda: one_after_the_other(batches), "the CPU waits for the copy"),
        (
            "pinned, then matmuls",
            lambda: one_after_the_other(pinned),
            "the copy is faster, but the matmuls wait for it",
        ),
        ("pinned, on a second stream", side_by_side, "the next batch is copied while this one is computed"),
    )
    return _timed(lab, "overlap", f"Batches of {size(2.0 * 2048 * width)}, each with six matmuls", ways)


def _allocator(lab: Workbench) -> LabTable:
    torch, count = lab.torch, 16 << 20

    def cached() -> None:
        torch.empty(count, device=lab.device)

    def uncached() -> None:
        torch.empty(count, device=lab.device)
        torch.cuda.empty_cache()

    ways = (
        ("torch.empty from the cache", cached, "a list in the process, no call of the driver"),
        ("torch.empty after empty_cache()", uncached, "cudaMalloc and cudaFree, which wait for the GPU"),
    )
    return _timed(lab, "allocator", f"Memory for {size(4.0 * count)}", ways)


def _cache(lab: Workbench) -> LabTable:
    """One decode step's keys, joined to all before them or written into a buffer."""
    torch, length, width = lab.torch, lab.sized(4096, 256), lab.sized(4096, 256)
    heads, batch = 32, lab.sized(8, 1)
    shape = (batch, heads, length, width // heads)
    past = lab.random(*shape, dtype="bfloat16")
    new = lab.random(batch, heads, 1, width // heads, dtype="bfloat16")
    buffer = lab.random(batch, heads, length + 1, width // heads, dtype="bfloat16")

    def joined() -> None:
        torch.cat([past, new], dim=2)

    def written() -> None:
        buffer[:, :, length : length + 1].copy_(new)

    ways = (
        ("torch.cat with the past", joined, "reads and writes the whole cache for one new token"),
        ("written into a buffer", written, "moves the new token only"),
    )
    return _timed(lab, "kv cache", f"Keys of {length:,} tokens, batch {batch}", ways)


def _timed(lab: Workbench, name: str, title: str, ways: Sequence[tuple[str, Callable[[], None], str]]) -> LabTable:
    """A row for each way of doing the same."""
    rows = tuple((way, lab.loop(call, way, with_gpu=False).step_ns, why) for way, call, why in ways)
    return LabTable(name, title, TIME_COLUMNS, rows)


def _seen(tables: dict[str, LabTable]) -> str:
    sentences = []
    if "copies" in tables:
        rates = {str(row[0]): float(row[2]) for row in tables["copies"].rows if isinstance(row[2], float)}
        pinned, pageable = rates["host to device, pinned"], rates["host to device, pageable"]
        sentences.append(f"Pinned memory is copied {speedup(pinned / pageable)} as fast as pageable memory.")
    if "overlap" in tables:
        times = {str(row[0]): float(row[1]) for row in tables["overlap"].rows if isinstance(row[1], float)}
        sentences.append(
            f"A step of {duration(times['pageable, then matmuls'])} becomes {duration(times['pinned, then matmuls'])} "
            f"with pinned memory, and {duration(times['pinned, on a second stream'])} with the copy beside the "
            f"matmuls, which alone take {duration(times['matmuls alone'])}."
        )
    joined, written = (float(row[1]) for row in tables["kv cache"].rows if isinstance(row[1], float))
    sentences.append(f"Joining a cache costs {speedup(joined / written)} as much as writing into one.")
    return " ".join(sentences)


WHY = (
    "The copy engine needs memory whose pages stay in place; pageable data goes through a buffer of the driver first, "
    "while the CPU waits. Copies run beside kernels only from pinned memory and on another stream."
)
EXPERIMENT = LabExperiment("memory-and-copies", "What do copies, allocations and a growing cache cost?", run)
