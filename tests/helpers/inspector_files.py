"""Tiny logs of NCCL Inspector, one line for each collective. Times are in microseconds, as NCCL writes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WORLD = "0x7f8c496ae9f661"


def line(
    rank: int,
    sequence: int,
    time_us: int,
    *,
    group: str = WORLD,
    size: int = 3,
    coll: str = "AllReduce",
    message_bytes: int = 1_000_000,
    source: str = "kernel_gpu",
    process: int | None = None,
) -> dict[str, Any]:
    """One collective of one rank."""
    return {
        "header": {"id": group, "comm_name": "unknown", "rank": rank, "n_ranks": size, "nnodes": 1},
        "metadata": {
            **{"inspector_output_format_version": "v4.0", "git_rev": "", "rec_mechanism": "nccl_profiler_interface"},
            **{"dump_timestamp_us": 1_748_030_377_748_202, "hostname": "node", "pid": process or 100 + rank},
        },
        "coll_perf": {
            **{"coll": coll, "coll_sn": sequence, "coll_msg_size_bytes": message_bytes, "coll_exec_time_us": time_us},
            **{"coll_timing_source": source, "coll_algobw_gbs": 1.0, "coll_busbw_gbs": 1.0},
        },
    }


def write_log(path: Path, lines: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


def small(folder: Path) -> Path:
    """Three ranks, three all-reduces of 1 MB. Rank 2 comes last twice (200 of 1,000 µs, 100 of 400), all come together
    in the third (100 µs)."""
    folder.mkdir()
    times = {0: (1_000, 400, 100), 1: (900, 300, 100), 2: (200, 100, 100)}
    for rank, own in times.items():
        lines = [line(rank, number, time) for number, time in enumerate(own, 1)]
        write_log(folder / f"node-pid{100 + rank}.log", lines)
    return folder
