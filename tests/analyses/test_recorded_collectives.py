"""What is known of a collective, where only the ranges around its launch name it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nsys_files import Export

from warpline.analyses.recorded_collectives import recorded_collectives
from warpline.trace.open import open_trace

GENERIC = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


@pytest.mark.parametrize(
    ("kernel", "ranges", "kind", "peer"),
    [
        (GENERIC, ["ncclAllReduce"], "all_reduce", None),
        (GENERIC, ["nccl:_reduce_scatter_base", "ncclReduceScatter"], "reduce_scatter", None),
        (GENERIC, ["nccl:broadcast, op_id = 12"], "broadcast", None),
        (GENERIC, ["nccl:coalesced"], "", None),
        (GENERIC, [], "", None),
        (SEND_RECV, ["nccl:all_to_all, op_id = 994196", "ncclGroupEnd"], "all_to_all", None),
        (SEND_RECV, ["nccl:send 0->3", "ncclGroupEnd"], "send", 3),
        (SEND_RECV, ["nccl:recv 3<-0", "ncclGroupEnd"], "recv", 0),
        (SEND_RECV, ["ncclGroupEnd"], "all_to_all", None),
    ],
)
def test_the_range_around_a_launch_names_the_collective(
    tmp_path: Path, kernel: str, ranges: list[str], kind: str, peer: int | None
) -> None:
    export = Export()
    export.range(500, 900, "ncclBroadcast")  # over before the launch
    for depth, name in enumerate(ranges):
        export.range(1_000 + depth, 3_000 - depth, name)
    export.call(2_000, 2_100, "cudaLaunchKernel", 1).kernel(4_000, 5_000, kernel, 1)
    trace = open_trace(export.write(tmp_path / "one.sqlite"), cache=False)
    (found,) = recorded_collectives(trace, np.array([0])).values()
    assert (found.kind, found.peer) == (kind, peer)
