"""Which of the things that a program does again and again is its step."""

from __future__ import annotations

EXPLICIT, PROFILER, OPTIMIZER, FORWARD, REPLAY, NVTX = range(6)
"""From the one to believe most to the one to believe least."""
NAMES = ("warpline.step", "ProfilerStep", "optimizer.step", "forward", "CUDA graph replay", "NVTX range")
PATIENCE = (1, 1, 1, 3, 3, 3)
"""How often a source must speak, with no better one speaking, before it is believed."""
ACCUMULATING_PATIENCE = 32
"""The same for forwards whose module holds gradients: most likely micro-batches of one step."""
RIVALS = 20
"""A leader that is silent while another speaks this often is gone."""


class StepFinder:
    """Listens to every source, and follows the best one that is alive.

    Among several optimizers (or models) the last to join leads: it is the rarest or the last of the cycle, so that
    a cycle of all of them is one step.
    """

    def __init__(self) -> None:
        self.chosen: int | None = None
        self.seen = [0] * len(NAMES)
        self._quiet = [0] * len(NAMES)
        self._leaders: dict[int, int] = {}
        self._spoken: dict[int, dict[int, int]] = {}
        self._locked = False
        self._ignored = 0

    @property
    def lost(self) -> bool:
        """Whether others that deserve as much belief have spoken again and again since the chosen one fell silent."""
        return self._ignored >= RIVALS

    def lock(self) -> None:
        """From here on only the chosen source and its leader count."""
        self._locked = True

    def restart(self) -> None:
        """Forget what was heard: the program has changed its ways."""
        self.chosen = None
        self._quiet = [0] * len(NAMES)
        self._locked, self._ignored = False, 0

    def hear(self, source: int, who: int = 0, patience: int = 0) -> int:
        """The number of steps of the chosen source that have passed, or 0 if this was not the end of one."""
        leads = self._leads(source, who)
        if self._locked and self.chosen is not None and source <= self.chosen:
            self._ignored = 0 if leads and source == self.chosen else self._ignored + 1
        if not leads:
            return 0
        self.seen[source] += 1
        if self._locked:
            return self._count(source) if source == self.chosen else 0
        for lesser in range(source + 1, len(NAMES)):
            self._quiet[lesser] = 0
        self._quiet[source] += 1
        if source != self.chosen:
            if self._quiet[source] < (patience or PATIENCE[source]):
                return 0
            self.chosen = source
        return self._quiet[source]

    def _count(self, source: int) -> int:
        self._quiet[source] += 1
        return self._quiet[source]

    def _leads(self, source: int, who: int) -> bool:
        spoken = self._spoken.setdefault(source, {})
        if self._leaders.get(source) == who:
            for member in spoken:
                spoken[member] = 0
            return True
        if self._locked:
            return False
        is_new = who not in spoken
        spoken[who] = spoken.get(who, -1) + 1
        if not is_new and spoken[who] < RIVALS:
            return False
        self._leaders[source] = who
        self._quiet[source] = 0
        return True
