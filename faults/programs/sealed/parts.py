"""What several programs share: sizes, Hugging Face models, endless loaders, CUDA graphs and compiled functions."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

SMALL = "FAULTS_SMALL"
"""The environment variable that asks for toy sizes, to try the programs on a CPU."""
WARM_UP_CALLS = 3
"""Eager calls before a capture, as CUDA graphs need them."""

Sizes = TypeVar("Sizes")


def sizes(full: Sizes, small: Sizes) -> Sizes:
    """The sizes of a program: the full ones, or toy ones to try it on a CPU."""
    return small if os.environ.get(SMALL) else full


def hugging_face() -> Any:
    """The package transformers, quiet."""
    warnings.filterwarnings("ignore", module="transformers")
    transformers = importlib.import_module("transformers")
    transformers.logging.set_verbosity_error()
    return transformers


def endless(loader: Any) -> Iterator[Any]:
    """The batches of a DataLoader, epoch after epoch."""
    while True:
        yield from loader


def graphed(torch: Any, work: Callable[[], object]) -> Callable[[], object]:
    """The same work as a CUDA graph: call it to replay it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP_CALLS):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    replay: Callable[[], object] = graph.replay
    return replay


def compiled(torch: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled for the shapes that it is called with."""
    result: Callable[..., Any] = torch.compile(function, dynamic=False)
    return result
