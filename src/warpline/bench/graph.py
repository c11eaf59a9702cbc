"""Many calls captured in one CUDA graph, without host launches between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warpline.bench.stopwatch import Call

REPLAY_NS = 2_000_000
"""Target length of a replay: the events' own time is then a thousandth of it."""
MAX_CALLS = 2_000
WARM_CALLS = 3
"""Calls on a side stream before the capture, as torch.cuda.graph's documentation requires."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A captured graph of several calls."""

    graph: Any
    calls: int

    def __call__(self) -> None:
        """Replay all calls once."""
        self.graph.replay()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the calls could not be captured."""

    reason: str


def capture(torch: Any, call: Call, expected_ns: float, sets: int) -> Replay | Refusal:
    """Capture as many calls as fill a replay, at least one for each set of inputs."""
    count = min(max(round(REPLAY_NS / max(expected_ns, 1.0)), sets), max(MAX_CALLS, sets))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            for _ in range(WARM_CALLS):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                call()
        graph.replay()
        torch.cuda.synchronize()
    except RuntimeError as error:
        torch.cuda.synchronize()
        _forget_capture(torch)
        return Refusal(_reason(error))
    return Replay(graph, count)


def _forget_capture(torch: Any) -> None:
    """Reset the random generators: a failed capture leaves them marked as captured and unusable."""
    for generator in getattr(torch.cuda, "default_generators", ()):
        if hasattr(generator, "graphsafe_set_state"):
            generator.graphsafe_set_state(generator.clone_state())


def _reason(error: BaseException) -> str:
    """The original error: the end of a failed capture raises another one."""
    while error.__context__ is not None:
        error = error.__context__
    return (str(error).splitlines() or [""])[0].removeprefix("CUDA error: ")[:200] or type(error).__name__
