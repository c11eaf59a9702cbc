"""Optimizers and other ops on lists of tensors (`_foreach_*`, `_fused_*`), which use multi_tensor_apply.

Kineto omits the shapes of a list of more than thirty tensors. The launch then still bounds the work: every block of
multi_tensor_apply handles one chunk of at most 65,536 elements of one tensor.
"""

from __future__ import annotations

import re

from msgspec import Struct

from warpline.work.dtypes import SIZES
from warpline.work.model import KernelLaunch, OpCall, Tensor, Unknowable, Work, vector_steps
from warpline.work.registry import model
from warpline.work.shapes import item_type, list_type, total_bytes, typed

FOREACH, OPTIMIZER = "foreach", "optimizer"
CHUNK_ELEMENTS = 65_536
"""kChunkSize of ATen/native/cuda/MultiTensorApply.cuh; apex passes 2,048 * 32, the same."""
FROM_LAUNCH = "from the launch: assumes full chunks of 65,536 elements"
_FUNCTOR = re.compile(r"\b(\w{1,200}Functor)<([\w:]+)(?:, (\d+), (\d+), (\d+))?")


class Traffic(Struct, frozen=True):
    """The number of lists that an op reads and writes, and its steps per element."""

    read: int
    written: int
    steps: int


_FUSED = {
    "adamw": Traffic(4, 3, 15),
    "adam": Traffic(4, 3, 15),
    "adagrad": Traffic(3, 2, 8),
    "sgd": Traffic(2, 1, 2),
    "sgd_momentum": Traffic(3, 2, 4),
    "lamb": Traffic(4, 3, 20),
    "lars": Traffic(3, 2, 8),
    "nadam": Traffic(4, 3, 18),
}
"""Adam reads parameter, gradient and two moments, and writes all but the gradient (Kingma and Ba, 2015)."""
_FUNCTORS = {
    "adagrad": "adagrad",
    "adamw": "adamw",
    "adam": "adam",
    "sgdmomentum": "sgd_momentum",
    "sgd": "sgd",
    "lamb": "lamb",
}
"""What the name of a fused optimizer's functor contains, the longer word first."""


def chunk_elements(launches: tuple[KernelLaunch, ...]) -> int:
    """The maximum number of elements that multi_tensor_apply handled; 0 if no such launch was recorded."""
    return sum(
        launch.blocks * CHUNK_ELEMENTS
        for launch in launches
        if "multi_tensor_apply" in launch.name and launch.blocks is not None
    )


def _of_list(call: OpCall, items: tuple[Tensor, ...], traffic: Traffic, family: str) -> Work:
    """From the tensors of a list; where they were not recorded, from the launch."""
    if items:
        items = typed(items, call)
        size = total_bytes(items)
        steps = vector_steps(traffic.steps * sum(item.elements for item in items), items[0].dtype)
        return Work(family, steps, traffic.read * size, traffic.written * size)
    count = chunk_elements(call.launches)
    if not count:
        raise Unknowable(f"the tensors in the lists of {call.name} were not recorded")
    return _of_chunks(count, list_type(call), traffic, family)


def _of_first_list(call: OpCall, traffic: Traffic, family: str) -> Work:
    return _of_list(call, call.arguments[0].tensors if call.arguments else (), traffic, family)


def _of_chunks(count: int, dtype: str, traffic: Traffic, family: str) -> Work:
    size = count * SIZES[dtype]
    steps = vector_steps(traffic.steps * count, dtype)
    return Work(family, steps, traffic.read * size, traffic.written * size, estimate=FROM_LAUNCH)


@model("aten::_fused_adamw", "aten::_fused_adam", "aten::_fused_adagrad", "aten::_fused_sgd")
def fused(call: OpCall) -> Work:
    """_fused_adamw_(parameters, gradients, first moments, second moments, …)."""
    kind = call.name.removesuffix("_").removeprefix("aten::_fused_")
    if kind == "sgd" and any("Momentum" in launch.name for launch in call.launches):
        kind = "sgd_momentum"
    return _of_first_list(call, _FUSED[kind], OPTIMIZER)


_UNARY = "abs neg sqrt rsqrt exp log reciprocal sign round floor ceil trunc frac sigmoid tanh zero cos sin tan erf"
_BINARY = "add sub mul div pow maximum minimum clamp_max clamp_min lerp copy"
_TERNARY = "addcmul addcdiv"
_ARITY = {name: count for count, names in ((1, _UNARY), (2, _BINARY), (3, _TERNARY)) for name in names.split()}


@model(*(f"aten::_foreach_{name}" for name in _ARITY))
def foreach(call: OpCall) -> Work:
    """_foreach_add_(list, list or number, …): one read per list, and one write."""
    name = call.name.removesuffix("_").removeprefix("aten::_foreach_")
    lists = [argument for argument in call.arguments if argument.kind == "TensorList"]
    read = min(len(lists), _ARITY[name]) or 1
    if name == "copy":
        read = 1
    if name == "zero":
        read = 0
    traffic = Traffic(read, 1, max(1, _ARITY[name] - 1))
    return _of_list(call, lists[0].tensors if lists else (), traffic, FOREACH)


@model("aten::_foreach_norm", "aten::_foreach_max")
def foreach_norm(call: OpCall) -> Work:
    """_foreach_norm(list, order): one number per tensor."""
    return _of_first_list(call, Traffic(1, 0, 2), FOREACH)


@model("aten::_amp_foreach_non_finite_check_and_unscale")
def unscale(call: OpCall) -> Work:
    """_amp_foreach_non_finite_check_and_unscale_(gradients, found, scale): gradients are scaled in place."""
    return _of_first_list(call, Traffic(1, 1, 2), OPTIMIZER)


def work_of_launch(launch: KernelLaunch) -> Work | None:
    """The work of a multi_tensor_apply kernel from its name and grid alone; None for any other kernel.

    Its functor gives the number of lists and how many it reads: `BinaryOpListAlphaFunctor<float, 2, 2, 0>` takes two,
    reads two and writes into the first.
    """
    count = chunk_elements((launch,))
    functor = _FUNCTOR.search(launch.name)
    dtype = item_type((launch,)) if functor else ""
    if not count or functor is None or dtype not in SIZES:
        return None
    kind = next((kind for word, kind in _FUNCTORS.items() if word in functor.group(1).lower()), "")
    if kind:
        traffic, family = _FUSED[kind], OPTIMIZER
    elif functor.group(4) is not None:
        traffic, family = Traffic(int(functor.group(4)), 1, 1), FOREACH
    elif "Norm" in functor.group(1):
        traffic, family = Traffic(1, 0, 2), FOREACH
    else:
        return None
    return _of_chunks(count, dtype, traffic, family)
