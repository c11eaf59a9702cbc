"""Ops of one call, counted by data type."""

from __future__ import annotations

import importlib
from typing import Any

from warpline.capture.trial.use import ProgramUse

MATMULS = (
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "convolution",
    "_scaled_dot_product",
    "_efficient_attention",
    "_flash_attention",
)
RANDOM_OPS = ("native_dropout", "bernoulli", "rand", "multinomial", "normal_", "uniform_")


def count_ops(torch: Any, use: ProgramUse) -> Any:
    """A context in which matmuls are counted by data type, and ops that draw random numbers."""
    dispatch: Any = importlib.import_module("torch.utils._python_dispatch")

    class CountedOps(dispatch.TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(function, "overloadpacket", function).__name__
            kind = next((str(one.dtype)[6:] for one in args if isinstance(one, torch.Tensor)), "")
            if kind and name.startswith(MATMULS):
                use.matmuls[kind] = use.matmuls.get(kind, 0) + 1
            use.random_ops += name.startswith(RANDOM_OPS)
            return function(*args, **(kwargs or {}))

    return CountedOps()
