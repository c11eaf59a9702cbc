"""Interventions: fixes as changes of the graph, each with its assumptions and a range."""

from warpline.replay.interventions import (  # noqa: F401 - importing registers them
    allocation,
    batching,
    casts,
    detours,
    dispatch,
    fewer,
    fusion,
    generations,
    grids,
    kernels,
    optimizers,
    overlap,
    precision,
    stragglers,
    transfers,
    waiting,
    warming,
)
from warpline.replay.interventions.registry import Intervention, find_interventions, interventions

__all__ = ["Intervention", "find_interventions", "interventions"]
