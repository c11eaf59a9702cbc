"""Decide which repeated unit of a running program is its step.

A step is the outermost unit that a program repeats and that covers the time. A program that marks its steps is
believed. Otherwise the calls that are heard (optimizer steps, forward calls, graph replays, ranges) show the loops
around them: the outermost loop that repeats is the step, unless one loop inside it takes nearly all of its time and
makes all of its updates.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from warpline.capture.loops import OUTERMOST, LoopKey, Order, Position, call_stack, line_of, loops_around, went_round

EXPLICIT, PROFILER, OPTIMIZER, FORWARD, REPLAY, NVTX = range(6)
"""Ordered from most to least trusted."""
NAMES = ("warpline.step", "ProfilerStep", "optimizer.step", "forward", "CUDA graph replay", "NVTX range")
LOOP = "loop"
"""The name of a step that is an iteration of a loop with several calls of each kind."""
MIN_ROUNDS = 2
"""A loop that has gone round this often repeats."""
ACCUMULATING_ROUNDS = 32
"""The same for forward calls whose module holds gradients: most likely micro-batches of one step."""
MAX_IGNORED_CALLS = 20
"""A source that stays inactive while others are heard this often has ended."""
MIN_COVER = 0.9
"""A loop that takes this share of the time of the loop around it covers it: what it leaves out is less than a tenth."""
OUTER_LOOP_S = 3.0
"""A loop around the step that has not repeated within this time is not waited for."""
FIRST_UPDATE_S = 5.0
"""A program that made an optimizer and only acts fills a replay buffer: its first update is waited for so long."""
MAX_THREADS, MAX_CALLS = 64, 10_000
"""What is remembered at most."""

Source = tuple[int, int]
"""A kind of call, and the module, optimizer or graph that makes it."""


class Loop:
    """A loop of the program and what was heard in it."""

    def __init__(self, order: Order, key: LoopKey | None) -> None:
        self.order, self.key = order, key
        self.inner: dict[LoopKey, Loop] = {}
        self.iterations = 0
        self.rounds = 0
        """How often it went round without being entered anew."""
        self.time_ns = 0
        """From the first to the last call of each of its runs."""
        self.calls: Counter[Source] = Counter()
        self.last_iteration: dict[Source, int] = {}
        self.previous: list[Source] = []
        """The calls of the last whole iteration."""
        self.accumulates = False
        self._current: list[Source] = []
        self._in_run: set[Source] = set()
        self._first_of_run: Source | None = None
        self._same_again = False
        """Whether a run made the same call twice: a loop over layers does not."""

    def enter(self) -> None:
        """The loop starts anew."""
        self._in_run.clear()
        self._first_of_run = None
        self._next_iteration()

    def go_round(self) -> None:
        """The loop starts its next iteration."""
        self.rounds += 1
        self._next_iteration()

    def _next_iteration(self) -> None:
        self.iterations += 1
        self.previous, self._current = self._current, []

    def starts_over_with(self, source: Source) -> bool:
        """Whether the loop goes over different modules, and this is the first of them again."""
        return source == self._first_of_run and source not in self._current

    def hear(self, source: Source) -> None:
        """A call within the loop."""
        self._first_of_run = self._first_of_run or source
        self.calls[source] += 1
        self.last_iteration[source] = self.iterations
        if len(self._current) < MAX_CALLS:
            self._current.append(source)
        self._same_again |= source in self._in_run
        self._in_run.add(source)

    @property
    def repeats(self) -> bool:
        """Whether its iterations do the same again."""
        updates = any(source == OPTIMIZER for source, _ in self.calls)
        enough = ACCUMULATING_ROUNDS if self.accumulates and not updates else MIN_ROUNDS
        return self._same_again and self.rounds >= enough

    def active(self) -> dict[Source, int]:
        """The calls that have not ended."""
        since = self.iterations - MAX_IGNORED_CALLS
        return {source: count for source, count in self.calls.items() if self.last_iteration[source] > since}

    def whole_time_ns(self) -> float:
        """Its time, with the rest of the last iteration of each run, in which nothing more was heard."""
        return self.time_ns * self.iterations / self.rounds if self.rounds else float(self.time_ns)

    def repeated_inside(self) -> Iterator[Loop]:
        """The outermost loops within it that repeat."""
        for loop in self.inner.values():
            if loop.repeats:
                yield loop
            else:
                yield from loop.repeated_inside()


@dataclass(frozen=True)
class StepUnit:
    """The step: every call of one source, or every iteration of a loop that starts with that call."""

    source: int
    who: int = 0
    by_loop: bool = False
    loop: Loop | None = field(default=None, compare=False)
    """The loop whose iteration the step is, where there is one."""

    @property
    def name(self) -> str:
        """As in the manifest."""
        return LOOP if self.by_loop else NAMES[self.source]

    def describe(self) -> str:
        """What a step is, for people."""
        loop = self.loop
        if not self.by_loop or loop is None:
            return f"one {NAMES[self.source]}"
        counts = Counter(source for source, _ in loop.previous)
        calls = " and ".join(f"{count} {_plural(NAMES[source], count)}" for source, count in sorted(counts.items()))
        key = loop.key
        place = f" in {key.code.co_name} ({Path(key.code.co_filename).name}:{line_of(key)})" if key else ""
        return f"one iteration of the loop{place}: {calls}"


def _plural(name: str, count: int) -> str:
    if count == 1:
        return name
    return {"optimizer.step": "optimizer steps", "forward": "forward calls"}.get(name, f"{name}s")


class StepFinder:
    """Listens to every source, and follows the step."""

    def __init__(self) -> None:
        self.seen = [0] * len(NAMES)
        """How often the program made each kind of call, by the one that made most."""
        self.expects_update = False
        """Whether the program has made an optimizer."""
        self.only_acts = False
        """Whether the last module that was called is in training mode, and was called without gradients."""
        self.restart()

    def restart(self) -> None:
        """Forget everything heard: the program has changed its behaviour."""
        self.unit: StepUnit | None = None
        self.narrow = False
        """Whether only the calls that show the end of a step matter."""
        self._locked = False
        self._whole = Loop(OUTERMOST, None)
        self._heard: Counter[Source] = Counter()
        self._last: dict[int, tuple[list[Position], list[Loop], int]] = {}
        self._latest: tuple[list[Position], list[Loop], int] | None = None
        self.first_heard = 0.0
        """When the first call was heard, by the monotonic clock."""
        self._passed = 0
        self._ignored = 0

    @property
    def chosen(self) -> int | None:
        """The source of the step."""
        return None if self.unit is None else self.unit.source

    @property
    def lost(self) -> bool:
        """Whether equally trusted calls have been heard repeatedly since those of the step stopped."""
        within = len(self.unit.loop.previous) if self.unit and self.unit.loop else 0
        return self._ignored >= MAX_IGNORED_CALLS + 2 * within

    def lock(self) -> None:
        """From now on the step does not change."""
        self._locked = self.narrow = True

    def hear(self, source: int, who: int = 0, accumulates: bool = False) -> int:
        """The number of steps so far if this call ends one, otherwise 0."""
        call = (source, who)
        self._heard[call] += 1
        self.seen[source] = max(self.seen[source], self._heard[call])
        unit = self.unit
        if source <= PROFILER and not self._locked and (unit is None or source < unit.source):
            unit = self.unit = StepUnit(source, who)
            self.narrow, self._passed = True, 0
        if unit is not None and (self.narrow or unit.source <= PROFILER):
            if source == OPTIMIZER and unit.source >= OPTIMIZER and not self._locked and not self._knows(call):
                self.narrow, self.first_heard = False, 0.0  # an update that is not part of the step yet
            else:
                return self._follow(call, unit)
        return self._watch(call, accumulates)

    def is_settled(self) -> bool:
        """Whether nothing heard so far speaks for another step."""
        unit = self.unit
        if unit is None or unit.source <= PROFILER:
            return unit is not None
        if self._heard[unit.source, unit.who] <= MIN_ROUNDS:
            return False
        waited_s = time.monotonic() - self.first_heard
        fills_buffer = self.expects_update and self.only_acts and not self.seen[OPTIMIZER]
        if fills_buffer and waited_s < FIRST_UPDATE_S:
            return False
        loop = unit.loop
        around = [] if loop is None else self._around(loop)
        if unit.source == OPTIMIZER and loop is not None:
            waits = not all(_covers(loop, outer) and _updates_as_often(loop, outer) for outer in around)
        else:
            waits = not all(outer.repeats for outer in around)
        return not waits or waited_s > OUTER_LOOP_S

    def _around(self, loop: Loop) -> list[Loop]:
        """The loops of the program around one, outermost first."""
        chain = self._latest[1] if self._latest else []
        return [outer for outer in chain if OUTERMOST < outer.order < loop.order]

    def _knows(self, call: Source) -> bool:
        loop = self.unit.loop if self.unit else None
        return loop is not None and call in loop.calls

    def _follow(self, call: Source, unit: StepUnit) -> int:
        """The end of a step that is known."""
        if call != (unit.source, unit.who):
            self._ignored += call[0] <= unit.source
            return 0
        self._ignored = 0
        if unit.by_loop and unit.loop is not None:
            now, before = call_stack(), self._latest
            self._latest = (now, [], 0)
            order = went_round(before[0], now) if before else OUTERMOST
            if order is None or order > unit.loop.order:
                return 0
        self._passed += 1
        return self._passed

    def _watch(self, call: Source, accumulates: bool) -> int:
        """Learn which loops hold the call, and choose the step anew."""
        now_ns, thread, stack = time.perf_counter_ns(), threading.get_ident(), call_stack()
        self.first_heard = self.first_heard or time.monotonic()
        before = self._last.get(thread) or self._latest
        order = went_round(before[0], stack) if before else None
        chain = self._chain(stack)
        order = _of_outer_loop(order, chain, call)
        starts = set()
        for at, loop in enumerate(chain):
            known = before is not None and at < len(before[1]) and before[1][at] is loop
            if not known or (order is not None and loop.order > order):
                loop.enter()
                starts.add(loop)
            elif order == loop.order:
                loop.go_round()
                starts.add(loop)
            if known and before is not None and (order is None or loop.order <= order):
                loop.time_ns += now_ns - before[2]
            loop.hear(call)
            loop.accumulates |= accumulates
        if len(self._last) >= MAX_THREADS:
            self._last.clear()
        self._latest = self._last[thread] = (stack, chain, now_ns)
        unit = self._choose(chain, call)
        if unit is None:
            return 0
        same = self.unit is not None and unit.by_loop and self.unit.by_loop and unit.loop is self.unit.loop
        if not same:
            self.unit = unit
        if unit.by_loop and unit.loop in starts:
            self._passed = unit.loop.iterations
        elif not unit.by_loop and call == (unit.source, unit.who):
            self._passed = self._heard[call]
        else:
            return 0
        return self._passed

    def _chain(self, stack: list[Position]) -> list[Loop]:
        chain = [self._whole]
        for order, key in loops_around(stack):
            loop = chain[-1].inner.get(key)
            if loop is None:
                loop = chain[-1].inner[key] = Loop(order, key)
            chain.append(loop)
        return chain

    def _choose(self, chain: list[Loop], call: Source) -> StepUnit | None:
        # Loops of the program come before the program as a whole, which threads seem to repeat.
        loop = next((loop for loop in (*chain[1:], chain[0]) if loop.repeats), None)
        if loop is None:
            if call[0] == OPTIMIZER and (self._heard[call] == 1 or self.unit is None):
                return StepUnit(*call)  # the last optimizer to appear ends the cycle
            return self.unit
        while True:
            inside = max(loop.repeated_inside(), key=Loop.whole_time_ns, default=None)
            if inside is None or not _covers(inside, loop) or not _updates_as_often(inside, loop):
                return _unit_of(loop)
            loop = inside


def _of_outer_loop(order: Order | None, chain: list[Loop], call: Source) -> Order | None:
    """The loop that went round: not one over layers that starts over, but the one around it.

    Both may be in one function, whose position is then the same.
    """
    for at, loop in enumerate(chain):
        if loop.order == order and at and loop.starts_over_with(call):
            return chain[at - 1].order
    return order


def _covers(inside: Loop, loop: Loop) -> bool:
    return inside.whole_time_ns() >= MIN_COVER * loop.time_ns


def _updates_as_often(inside: Loop, loop: Loop) -> bool:
    """Whether all optimizer steps of a loop happen in the one inside it, at least one in each iteration."""
    updates = {source: count for source, count in loop.active().items() if source[0] == OPTIMIZER}
    if not updates:
        return True
    if any(inside.calls[source] < MIN_COVER * count for source, count in updates.items()):
        return False
    return min(inside.calls[source] for source in updates) >= MIN_COVER * (inside.iterations - 1)


def _unit_of(loop: Loop) -> StepUnit:
    """The step of a loop: the call that it makes once, or its iteration."""
    active = loop.active()
    best = min(source for source, _ in active)
    if best == OPTIMIZER:
        fewest = min(count for (source, _), count in active.items() if source == best)
        if fewest <= loop.iterations / MIN_COVER:  # fewer where gradients are accumulated
            rarest = [source for source, count in active.items() if source[0] == best and count <= fewest + 1]
            return StepUnit(*rarest[-1], loop=loop)  # the last to appear ends the cycle
    else:
        once = [source for source, count in active.items() if source[0] == best and _once(count, loop.iterations)]
        if once:
            return StepUnit(*min(once, key=lambda source: _first_place(loop.previous, source)), loop=loop)
    first = next((source for source in loop.previous if source in active), min(active))
    return StepUnit(*first, by_loop=True, loop=loop)


def _once(calls: int, iterations: int) -> bool:
    return MIN_COVER * (iterations - 1) <= calls <= iterations / MIN_COVER


def _first_place(calls: Sequence[Source], source: Source) -> int:
    return calls.index(source) if source in calls else len(calls)
