"""The registry: every model by the names of its ops, and `work_of`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

from warpline.work.model import OpCall, Unknowable, Work

Model = Callable[[OpCall], Work]

_MODELS: dict[str, Model] = {}
_FAMILIES = (
    "matmul",
    "low_precision_matmul",
    "convolution",
    "attention",
    "attention_libraries",
    "softmax",
    "norm",
    "elementwise",
    "reduction",
    "indexing",
    "movement",
    "random",
    "optimizer",
    "sort",
    "pooling",
    "serving",
    "collective",
)
_ABSTENTIONS = (Unknowable, LookupError, ArithmeticError, ValueError)
"""Models index shapes freely: if the arguments do not fit, any of these errors means that the work is unknown."""
MAX_COUNT = 1 << 62
"""Over 4,600 PFLOP or 4,600 PB in one op: more than any device does in an hour."""

TRITON_PREFIX = "triton_"


def model(*names: str) -> Callable[[Model], Model]:
    """Register a function as the model of these ops."""

    def register(function: Model) -> Model:
        for name in names:
            if name in _MODELS:
                raise ValueError(f"{name} has two models")
            _MODELS[name] = function
        return function

    return register


def find_model(name: str) -> Model | None:
    """The model of an op. An in-place op (`aten::add_`) and an `.out` overload use that of the plain op."""
    _load()
    plain = name.split(".", 1)[0] if name.startswith("aten::") else name
    found = _MODELS.get(name) or _MODELS.get(plain) or _MODELS.get(plain.removesuffix("_"))
    if found is None and name.startswith(TRITON_PREFIX):
        found = _MODELS[TRITON_PREFIX]
    return found


def work_of(call: OpCall) -> Work | None:
    """The work of one call of an op; None if there is no model or its arguments were not recorded."""
    found = find_model(call.name)
    if found is None:
        return None
    try:
        return _sensible(found(call))
    except _ABSTENTIONS:
        return None


def why_no_work(call: OpCall) -> str:
    """Why `work_of` returned None, as a sentence."""
    found = find_model(call.name)
    if found is None:
        return f"no model for {call.name}"
    try:
        _sensible(found(call))
    except Unknowable as reason:
        return str(reason)
    except _ABSTENTIONS:
        return f"the arguments of {call.name} do not match its model"
    return ""


def _sensible(work: Work) -> Work:
    """The work; raise an error if impossible sizes made it negative or larger than any device can do."""
    counts = (work.read_bytes, work.written_bytes, *(part.count for part in work.flops), 0)
    if min(counts) < 0:
        raise Unknowable("the arguments give a negative size")
    if max(counts) > MAX_COUNT:
        raise Unknowable("the arguments give an impossible size")
    return work


def known_ops() -> list[str]:
    """The names of all ops with a model."""
    _load()
    return sorted(_MODELS)


@cache
def _load() -> None:
    """Import the families, which register themselves."""
    for family in (*_FAMILIES, "fusion"):
        import_module(f"warpline.work.{family}")
