"""Decide which of a program's repeated actions is its step."""

from __future__ import annotations

EXPLICIT, PROFILER, OPTIMIZER, FORWARD, REPLAY, NVTX = range(6)
"""Ordered from most to least trusted."""
NAMES = ("warpline.step", "ProfilerStep", "optimizer.step", "forward", "CUDA graph replay", "NVTX range")
CALLS_BEFORE_USE = (1, 1, 1, 3, 3, 3)
"""How often a source must fire, without a better one, before it is used."""
ACCUMULATING_CALLS_BEFORE_USE = 32
"""The same for forward calls whose module holds gradients: most likely micro-batches of one step."""
MAX_IGNORED_CALLS = 20
"""A leader that stays inactive while another fires this often is dropped."""


class StepFinder:
    """Listens to every source, and follows the best active one.

    Among several optimizers (or models) the last to appear leads: it is the rarest or the last of the cycle, so that a
    cycle of all of them is one step.
    """

    def __init__(self) -> None:
        self.chosen: int | None = None
        self.seen = [0] * len(NAMES)
        self._quiet = [0] * len(NAMES)
        self._between = [0] * len(NAMES)
        """The most often that each source fired between two ends of a better one's steps."""
        self._leaders: dict[int, int] = {}
        self._spoken: dict[int, dict[int, int]] = {}
        self._locked = False
        self._ignored = 0

    @property
    def lost(self) -> bool:
        """Whether equally trusted sources have fired repeatedly since the chosen one stopped."""
        return self._ignored >= MAX_IGNORED_CALLS

    def lock(self) -> None:
        """From now on, only the chosen source and its leader count."""
        self._locked = True

    def restart(self) -> None:
        """Forget all sources: the program has changed its behaviour."""
        self.chosen = None
        self._quiet, self._between = [0] * len(NAMES), [0] * len(NAMES)
        self._locked, self._ignored = False, 0

    def hear(self, source: int, who: int = 0, patience: int = 0) -> int:
        """The number of steps of the chosen source so far, or 0 if this was not the end of one."""
        leads = self._leads(source, who)
        if self._locked and self.chosen is not None and source <= self.chosen:
            self._ignored = 0 if leads and source == self.chosen else self._ignored + 1
        if not leads:
            return 0
        self.seen[source] += 1
        if self._locked:
            return self._count(source) if source == self.chosen else 0
        for lesser in range(source + 1, len(NAMES)):
            if self._quiet[source]:
                self._between[lesser] = max(self._between[lesser], self._quiet[lesser])
            self._quiet[lesser] = 0
        self._quiet[source] += 1
        if source != self.chosen:
            # A step of a better source may have any number of these: only more than twice as many show that it ended.
            if self._quiet[source] < max(patience or CALLS_BEFORE_USE[source], 2 * self._between[source] + 1):
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
        if not is_new and spoken[who] < MAX_IGNORED_CALLS:
            return False
        self._leaders[source] = who
        self._quiet[source] = 0
        return True
