"""What a reason is: a question, the metrics that answer it, a threshold with its source, and the look at a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.model import Bound, FoundReason
from warpline.dive.utilisation import Utilisation

Rank = Literal["flaw", "fallback", "end"]


class Case(Struct, frozen=True):
    """A kernel as the reasons see it."""

    metrics: KernelMetrics
    utilisation: Utilisation
    bound: Bound


class Reason(Struct, frozen=True):
    """One reason of the contract."""

    name: str
    question: str
    needs: tuple[str, ...]
    """Metrics, by the tree's names. Without them the question stays open."""
    threshold: str
    """What counts as a yes, and where that comes from."""
    look: Callable[[Case], FoundReason | None]
    rank: Rank = "flaw"
    """A `flaw` that gains enough is the reason; else a `fallback`; else an `end`: nothing is wrong."""
