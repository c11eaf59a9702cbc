"""Collectives: the bytes that each rank must send, and NCCL's two bandwidths.

Algorithm bandwidth is message size over time. Bus bandwidth multiplies it by the traffic per rank of the operation, so
that it can be compared with the link bandwidth for any operation and number of ranks (NCCL tests, doc/PERFORMANCE.md).
The message size is that of the larger of input and output.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from warpline.work.dtypes import COLLECTIVE_TYPES, SIZES
from warpline.work.model import OpCall, Tensor, Unknowable, Work
from warpline.work.registry import model

FAMILY = "collective"
UNKNOWN_RANKS = "the number of ranks was not recorded: minimum traffic of any number"
_WORDS = (
    ("reduce_scatter", "reduce_scatter"),
    ("reducescatter", "reduce_scatter"),
    ("all_reduce", "all_reduce"),
    ("allreduce", "all_reduce"),
    ("all_gather", "all_gather"),
    ("allgather", "all_gather"),
    ("all_to_all", "all_to_all"),
    ("alltoall", "all_to_all"),
    ("broadcast", "broadcast"),
    ("sendrecv", "send"),
    ("send", "send"),
    ("recv", "send"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("reduce", "reduce"),
)


def kind_of(name: str) -> str:
    """`all_reduce`, `all_gather`, … from the name of an op or collective; empty if it is neither."""
    plain = re.sub(r"^.*::|^nccl:|^gloo:|^ucc:", "", name.lower()).strip("_")
    return next((kind for word, kind in _WORDS if word in plain), "")


def bus_factor(kind: str, ranks: int) -> float:
    """Traffic per rank, as a multiple of the message size."""
    if ranks < 2:
        return 0.0
    share = (ranks - 1) / ranks
    return {"all_reduce": 2 * share, "all_gather": share, "reduce_scatter": share, "all_to_all": share}.get(kind, 1.0)


def collective_work(kind: str, message_bytes: int, ranks: int | None) -> Work:
    """The traffic of one rank. With an unknown number of ranks, that of two, which is the minimum."""
    factor = bus_factor(kind, ranks if ranks is not None else 2)
    sent = round(message_bytes * factor)
    return Work(FAMILY, (), 0, sent, link="nvlink", estimate="" if ranks is not None else UNKNOWN_RANKS)


def work_of_record(arguments: Mapping[str, object]) -> Work | None:
    """The traffic of an NCCL kernel from the arguments that Kineto records with it; None if it records none."""
    kind = kind_of(str(arguments.get("Collective name", "")))
    item = SIZES.get(COLLECTIVE_TYPES.get(str(arguments.get("dtype", "")), ""))
    counts = [arguments.get(key) for key in ("In msg nelems", "Out msg nelems")]
    elements = max((count for count in counts if isinstance(count, int)), default=0)
    ranks = arguments.get("Group size")
    if not kind or item is None or elements <= 0:
        return None
    return collective_work(kind, elements * item, ranks if isinstance(ranks, int) and ranks > 0 else None)


_NAMES = (
    "all_reduce",
    "_all_gather_base",
    "all_gather",
    "_reduce_scatter_base",
    "reduce_scatter",
    "all_to_all",
    "all_to_allv",
    "broadcast",
    "reduce",
    "send",
    "recv",
    "gather",
    "scatter",
    "all_gather_into_tensor_coalesced",
    "reduce_scatter_tensor_coalesced",
    "allreduce_coalesced",
)
_C10D = (
    "allreduce",
    "_allgather_base",
    "allgather",
    "_reduce_scatter_base",
    "reduce_scatter",
    "alltoall_base",
    "alltoall",
    "broadcast",
    "reduce",
    "send",
    "recv",
    "allgather_into_tensor_coalesced",
    "allreduce_coalesced",
    "reduce_scatter_tensor_coalesced",
)
_FUNCTIONAL = (
    "all_reduce",
    "all_gather_into_tensor",
    "reduce_scatter_tensor",
    "all_to_all_single",
    "broadcast",
    "all_reduce_coalesced",
    "all_gather_into_tensor_coalesced",
)


@model(
    *(f"nccl:{name}" for name in _NAMES),
    *(f"c10d::{name}" for name in _C10D),
    *(f"_c10d_functional::{name}" for name in _FUNCTIONAL),
    "_C_custom_ar::all_reduce",
    "vllm::all_reduce",
    "record_param_comms",
)
def collective(call: OpCall) -> Work:
    """Any collective: the message is the largest tensor given."""
    kind = kind_of(call.name) or (kind_of(call.parent.name) if call.parent is not None else "")
    given = call.all_tensors() + [item for argument in call.arguments for item in argument.tensors if item.dtype]
    if not kind or not given:
        raise Unknowable("which collective it is, or its tensors, was not recorded")
    largest = max(given, key=lambda tensor: tensor.elements)
    return collective_work(kind, Tensor(largest.shape, largest.dtype).bytes, None)
