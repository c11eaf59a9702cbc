"""What one rank recorded about each of its collectives: operation, group, size, sequence number and peer.

torch writes the arguments on the NCCL kernel, or only on the op `record_param_comms`, or nowhere. Then the range around
the launch names the operation: NCCL's own NVTX range (`ncclAllReduce`), or torch's (`nccl:send 0->1`).
The name of a group is a counter of each process, so a group is known by its ranks: from the header, where lists are
complete, else from the arguments, where lists of more than 30 ranks are shortened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from warpline.analyses.recorded_arguments import recorded_arguments
from warpline.kernels import identify
from warpline.trace.arrays import NONE, Int64s
from warpline.trace.nesting import nest, order_for_nesting
from warpline.trace.trace import Trace
from warpline.work.collective import kind_of
from warpline.work.dtypes import COLLECTIVE_TYPES, SIZES

COMMUNICATION_OP = "record_param_comms"
"""The op that torch records around each collective."""
NAMING_RANGE = r"^(nccl:[a-z_]|ncclAll|ncclReduce|ncclBroadcast|ncclGather|ncclScatter)"
"""Ranges around the launch of a collective that name it. NCCL's `ncclSend` is over before the launch."""


class RecordedCollective(Struct, frozen=True):
    """One collective as one rank recorded it; None stands for what it did not record."""

    kind: str
    """`all_reduce`, `all_gather`, …, `send`, `recv`; empty if unknown."""
    group: str | None
    """The ranks of the group, as `0,1,2`; `name:N` if only its name is known; `stream:N` for the N-th stream with
    collectives, if nothing is."""
    message_bytes: int | None
    sequence: int | None
    peer: int | None
    """The other rank of a send or recv."""


def recorded_collectives(trace: Trace, rows: Int64s) -> dict[int, RecordedCollective]:
    """What is known about the collectives in these rows of `gpu`, by row."""
    groups = _groups(trace)
    streams = list(dict.fromkeys(trace.gpu.stream[rows].tolist()))
    arguments = _arguments(trace, rows)
    return {
        row: _recorded(given, groups, trace.gpu.name.text(row) or "", streams.index(int(trace.gpu.stream[row])))
        for row, given in zip(rows.tolist(), arguments, strict=True)
    }


def _groups(trace: Trace) -> dict[str, list[int]]:
    try:
        return {name: ranks for name, ranks in json.loads(trace.facts.get("process_groups", "{}")).items() if ranks}
    except ValueError:
        return {}


def _arguments(trace: Trace, rows: Int64s) -> list[dict[str, Any]]:
    """The arguments of each collective: the kernel's own and, where they lack the collective, its op's; else what the
    range around its launch says."""
    recorded = _arguments_of_file(trace, rows)
    if all("Collective name" in one for one in recorded):
        return recorded
    named = [_arguments_of_range(name or "") for name in _naming_ranges(trace, rows)]
    return [{**by_range, **one} for by_range, one in zip(named, recorded, strict=True)]


def _naming_ranges(trace: Trace, rows: Int64s) -> list[str | None]:
    """For each row of `gpu` the innermost range around its launch that names a collective."""
    ranges, api, calls = trace.ranges, trace.api, trace.gpu.api_id[rows]
    chosen = np.flatnonzero(ranges.name.like(NAMING_RANGE) & (ranges.end_ns != NONE) & ~ranges.style.equal("gpu"))
    chosen = chosen[order_for_nesting(ranges.thread[chosen], ranges.start_ns[chosen], ranges.end_ns[chosen])]
    nested = nest(ranges.thread[chosen], ranges.start_ns[chosen], ranges.end_ns[chosen])
    around = nested.innermost(np.append(api.thread, NONE)[calls], np.append(api.start_ns, NONE)[calls])
    found = np.append(chosen, NONE)[np.where(calls == NONE, NONE, around)]
    return ranges.name.at(found).texts.tolist()


def _arguments_of_range(name: str) -> dict[str, Any]:
    """`nccl:all_to_all, op_id = 7`, `ncclAllReduce`, `nccl:send 0->1` or `nccl:recv 1<-0` as arguments."""
    plain = name.removeprefix("nccl:").removeprefix("nccl").partition(",")[0]
    pair = re.fullmatch(r"(send|recv) \d{1,6}(?:->|<-)(\d{1,6})", plain)
    if pair is not None:
        return {"Collective name": pair[1], "Dst Rank" if pair[1] == "send" else "Src Rank": int(pair[2])}
    return {"Collective name": plain} if kind_of(plain) not in {"", "send"} else {}


def _arguments_of_file(trace: Trace, rows: Int64s) -> list[dict[str, Any]]:
    """The arguments that Kineto writes."""
    gpu, ops = trace.gpu, trace.ops
    op = communication_ops(trace, rows)
    offsets = np.concatenate([gpu.args_offset[rows], np.append(ops.args_offset, NONE)[op]])
    lengths = np.concatenate([gpu.args_length[rows], np.append(ops.args_length, NONE)[op]])
    read = recorded_arguments(trace, offsets, lengths)  # in one pass: a packed file is unpacked from its start
    pairs = zip(read[: len(rows)], read[len(rows) :], strict=True)
    return [kernel if "Collective name" in kernel else {**kernel, **around} for kernel, around in pairs]


def communication_ops(trace: Trace, rows: Int64s) -> Int64s:
    """For each row of `gpu` the op `record_param_comms` that launched it, NONE if there is none."""
    ops = trace.ops
    is_communication = np.append(ops.name.equal(COMMUNICATION_OP), False)
    found = np.full(len(rows), NONE, np.int64)
    around = trace.gpu.op_id[rows]
    parents = np.append(ops.parent, NONE)
    while (around != NONE).any():
        found = np.where((found == NONE) & is_communication[around], around, found)
        around = np.where(found == NONE, parents[around], NONE)
    return found


def _recorded(
    arguments: Mapping[str, Any], groups: Mapping[str, list[int]], kernel: str, stream: int
) -> RecordedCollective:
    named = str(arguments.get("Collective name") or "").lower()
    kind = named if named in {"send", "recv"} else kind_of(named) or _kind_of_kernel(kernel)
    name = arguments.get("Process Group Name")
    ranks = groups.get(str(name)) or _listed(arguments.get("Process Group Ranks"))
    group = ",".join(map(str, ranks)) if ranks else f"stream:{stream}" if name is None else f"name:{name}"
    peer = _whole(arguments.get("Dst Rank" if kind == "send" else "Src Rank")) if kind in {"send", "recv"} else None
    return RecordedCollective(kind, group, _message_bytes(arguments), _whole(arguments.get("Seq")), peer)


def _kind_of_kernel(name: str) -> str:
    """The collective that the kernel's name says; NCCL runs an all-to-all as sends and receives in one kernel."""
    op = identify(name).op or ""
    return {"send_recv": "all_to_all", "generic": ""}.get(op, op)


def _listed(text: Any) -> list[int] | None:
    """The ranks of `[0, 1, 2]`; None if the list is shortened or is none."""
    if not isinstance(text, str) or "..." in text or not re.fullmatch(r"[\[\]\d, ]*", text):
        return None
    return [int(word) for word in re.findall(r"\d{1,6}", text)]


def _message_bytes(arguments: Mapping[str, Any]) -> int | None:
    item = SIZES.get(COLLECTIVE_TYPES.get(str(arguments.get("dtype", "")), ""))
    counts = [_whole(arguments.get(key)) for key in ("In msg nelems", "Out msg nelems")]
    elements = max((count for count in counts if count is not None), default=None)
    return None if item is None or elements is None else elements * item


def _whole(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 53 else None
