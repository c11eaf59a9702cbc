"""Ranges of predicted steps, gains and bare steps: they hold what a stopwatch shows for 80 % of unseen programs.

The replay's own range holds what its costs allow, not what it does not know. So ranges are made from the errors of
predictions that met a stopwatch (split-conformal prediction): of versions that had not seen the program, because
corrected rules fit the programs that they were corrected with. Half a range, as a logarithm, is

    √((constant · spread^a · gain^b)² + doubt²)

with the replay's own high over low, the predicted gain, and the doubt about the host: a step with a fix is a bare
step, too, and no better known than any other at the same pace. `python -m faults.ranges` computes every constant here
from the table of errors, and a test holds them against it; docs/ranges.md has the figures.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from warpline.errors import WarplineError
from warpline.estimate import Estimate
from warpline.sources.local_record import rows
from warpline.sources.record_files import outcomes_file

COVERAGE = 0.8
"""How often a range holds."""
LEAST_SPREAD = 0.1
"""Part of the predicted step by which the replay's own range extends to both sides at least, for the spread alone."""
LARGEST_ERROR = 3.4
"""Largest error of the table, as a logarithm: no range is wider to one side."""
NARROW = 1.25
"""High over expected of a step up to which a finding may have high confidence: with each suite left out, 66 of 72
such predictions were within 25 % of the stopwatch."""

LEAST_OWN_ERRORS = 8
"""Own errors of a fix from which on they count, as for a constant of its own; the package's counts as many."""
LARGEST_GAIN = 1e6
"""No program gets so many times faster; what the record says of one is damage."""
_QUERY = "select fix, predicted, spread, measured from outcomes where timed = 1"


class OwnError(Struct, frozen=True):
    """One prediction that met a stopwatch."""

    error: float
    """Distance of the logarithms of measured and predicted gain."""
    spread: float
    gain: float
    """As predicted."""


OwnErrors: TypeAlias = Mapping[str, Sequence[OwnError]]
"""By fix."""


class HalfWidth(Struct, frozen=True):
    """Half the width of a range, as a logarithm."""

    others: float
    """Constant of fixes with few timed predictions."""
    by_fix: Mapping[str, float]
    spread_power: float
    gain_power: float

    def of(self, fixes: Sequence[str], spread: float, gain: float, own: OwnErrors | None = None) -> float:
        """Half the width for these fixes together: the least known of them counts; `own` are this user's errors."""
        constant = max(self._constant(fix, own or {}) for fix in fixes)
        return min(constant * self._scale(spread, gain), LARGEST_ERROR)

    def constant(self, fix: str) -> float:
        """The constant of a fix, by the errors of the package alone."""
        return self.by_fix.get(fix, self.others)

    def _scale(self, spread: float, gain: float) -> float:
        return spread**self.spread_power * max(gain, 1.0) ** self.gain_power

    def _constant(self, fix: str, own: OwnErrors) -> float:
        """The constant of the package; with enough errors of this user's own, drawn towards their 80 % quantile."""
        shipped = self.constant(fix)
        errors = sorted(one.error / self._scale(one.spread, one.gain) for one in own.get(fix, ()))
        if len(errors) < LEAST_OWN_ERRORS:
            return shipped
        place = min(math.ceil(COVERAGE * (len(errors) + 1)), len(errors)) - 1
        return (LEAST_OWN_ERRORS * shipped + len(errors) * errors[place]) / (LEAST_OWN_ERRORS + len(errors))


STEP = HalfWidth(
    others=0.224,
    by_fix={
        "cuda_graph": 0.113,
        "fused_optimizer": 0.179,
        "no_empty_cache": 0.088,
        "pin_memory": 0.014,
        "preallocate": 0.128,
        "prefetch": 0.108,
        "reduce_before_copy": 0.611,
        "remove_sync": 0.105,
        "sdpa": 0.153,
        "tf32": 0.101,
        "torch_compile": 0.39,
        "warm_up": 0.464,
    },
    spread_power=0.904,
    gain_power=0.158,
)
GAIN = HalfWidth(
    others=0.277,
    by_fix={
        "cuda_graph": 0.189,
        "fused_optimizer": 0.125,
        "no_empty_cache": 0.277,
        "pin_memory": 0.074,
        "preallocate": 0.17,
        "prefetch": 0.156,
        "reduce_before_copy": 0.473,
        "remove_sync": 0.1,
        "sdpa": 0.153,
        "tf32": 0.085,
        "torch_compile": 0.408,
        "warm_up": 0.68,
    },
    spread_power=0.462,
    gain_power=0.36,
)


class BareRange(Struct, frozen=True):
    """Range of the bare step as shares of its estimate. It is lopsided: the host is often slower, and rarely faster."""

    below_idle_share: float
    """For steps in which the GPU is idle for a smaller share."""
    low: float
    high: float


BARE = (BareRange(0.1, 0.97, 1.044), BareRange(0.4, 0.843, 1.275), BareRange(math.inf, 0.793, 1.529))
"""The GPU sets the pace; both do; the host does."""


class Doubt(Struct, frozen=True):
    """How far the host may move a number, as logarithms."""

    down: float
    up: float

    def below(self, value: float, half: float) -> float:
        """The low end of a range that has this doubt beside another, independent one."""
        return value * math.exp(-math.hypot(half, self.down))

    def above(self, value: float, half: float) -> float:
        """The high end of it."""
        return value * math.exp(math.hypot(half, self.up))


def spread_of(replayed_ns: Estimate) -> float:
    """High over low of the replay itself."""
    middle = replayed_ns.expected
    return max(replayed_ns.high, (1 + LEAST_SPREAD) * middle) / min(replayed_ns.low, (1 - LEAST_SPREAD) * middle)


def doubt_of_bare(idle_share: float, paces: Sequence[BareRange] = BARE) -> Doubt:
    """The doubt about a bare step: that of its pace, and between the middles of two paces in proportion."""
    limits = [0.0, *(min(one.below_idle_share, 1.0) for one in paces)]
    middles = [(above + below) / 2 for above, below in pairwise(limits)]
    down = _between(idle_share, middles, [-math.log(one.low) for one in paces])
    return Doubt(down, _between(idle_share, middles, [math.log(one.high) for one in paces]))


def doubt_of_host(idle_share: float, paces: Sequence[BareRange] = BARE) -> Doubt:
    """The host's part in it: none where the GPU sets the pace."""
    whole, device = doubt_of_bare(idle_share, paces), doubt_of_bare(0.0, paces)
    return Doubt(_beyond(whole.down, device.down), _beyond(whole.up, device.up))


def _beyond(whole: float, part: float) -> float:
    """What an independent doubt adds to a part to make the whole."""
    return math.sqrt(max(whole**2 - part**2, 0.0))


def _between(at: float, places: Sequence[float], values: Sequence[float]) -> float:
    for (left, before), (right, after) in pairwise(zip(places, values, strict=True)):
        if at < right:
            return before + (after - before) * max(at - left, 0.0) / (right - left)
    return values[-1]


def doubt_of_gain(old: Doubt, new: Doubt, gain: float) -> Doubt:
    """Old and new step meet the same host: a slow moment makes both longer, and a gain differs by the difference. The
    host that sets the new pace did as much in the old step: it takes a gain away, and makes no loss of it."""
    slow, fast = old.up - new.up, new.down - old.down
    return Doubt(min(max(0.0, -slow, -fast), math.log(max(gain, 1.0))), max(0.0, slow, fast))


def bare_range(estimated_ns: float, idle_share: float, calm_ns: float = math.inf) -> Estimate:
    """The step without a profiler, where it was estimated and not timed; `calm_ns` is the step on a calm host, if the
    one that recorded was slow."""
    doubt = doubt_of_bare(idle_share)
    low, high = doubt.below(estimated_ns, 0.0), doubt.above(estimated_ns, 0.0)
    return Estimate(min(low, calm_ns), estimated_ns, high)


def calm_step_ns(step_ns: float, busy_ns: float, waits_ns: float, slowness: float) -> float:
    """A step on a host that is not so many times slower. It is never shorter than what its device does, and a faster
    host waits as long for anything else."""
    return min(max((step_ns - waits_ns) / slowness, busy_ns) + waits_ns, step_ns)


def is_host_paced(idle_share: float) -> bool:
    """Whether the host has a part in the pace, so that its load decides how much slower the step gets."""
    return idle_share >= BARE[0].below_idle_share


class PredictedRanges(Struct, frozen=True):
    """The predicted step and its gain, with their ranges."""

    step_ns: Estimate
    gain: Estimate


class Calm(Struct, frozen=True):
    """What is predicted if the host was slow only while it recorded."""

    step_ns: float
    """The step with the fix."""
    gain: float


class Idle(Struct, frozen=True):
    """Shares of the old and of the new step in which the GPU is idle: who sets the pace."""

    old: float
    new: float


class RangeLimits(Struct, frozen=True):
    """What is known of a step with fixes besides its prediction."""

    least_ns: float = 0.0
    """What the device must still do."""
    most_ns: float = math.inf
    """The longest step that the fixes can leave."""
    calm: Calm | None = None
    may_do_nothing: bool = False
    """Whether the old step may stay, at its pace."""


def ranges_of(
    fixes: Sequence[str],
    old_ns: Estimate,
    new_ns: float,
    spread: float,
    idle: Idle,
    limits: RangeLimits | None = None,
) -> PredictedRanges:
    """Ranges around the predicted step and old over new step. What is predicted for a calm host is no better known, and
    ranges cover both: a slow host may make up a gain, and may as well hide one, since what it takes itself is left when
    the device is done sooner."""
    limits = limits or RangeLimits()
    least_ns, most_ns = limits.least_ns, limits.most_ns
    gain = old_ns.expected / new_ns
    half, half_gain = STEP.of(fixes, spread, gain), GAIN.of(fixes, spread, gain, own_errors())
    of_old, of_step = doubt_of_host(idle.old), doubt_of_host(idle.new)
    # The old step at its longest over what the device must still do bounds the gain.
    most = max(old_ns.high / least_ns, gain) if least_ns > 0 else math.inf
    usual = limits.calm or Calm(new_ns, gain)
    shortest = max(of_step.below(min(new_ns, usual.step_ns), half), least_ns)
    longest = min(of_step.above(new_ns, half), most_ns)
    lower, higher = min(gain, usual.gain), max(gain, usual.gain)
    least_gain = max(doubt_of_gain(of_old, of_step, lower).below(lower, half_gain), old_ns.expected / most_ns)
    most_gain = min(doubt_of_gain(of_old, of_step, higher).above(higher, half_gain), most)
    if most_ns < math.inf:
        least_gain = max(least_gain, 1.0)  # what goes for certain is time, and a slow host has more of it
    if limits.may_do_nothing:
        longest = max(longest, of_old.above(old_ns.expected, half))
        least_gain = min(least_gain, math.exp(-half_gain))
    return PredictedRanges(
        Estimate(min(shortest, new_ns), new_ns, max(longest, new_ns)),
        Estimate(min(least_gain, gain), gain, max(most_gain, gain)),
    )


def down_to_no_gain(known: PredictedRanges, old_ns: float) -> PredictedRanges:
    """The same for a fix that no finding supports: it may change nothing."""
    step, gain = known.step_ns, known.gain
    return PredictedRanges(
        Estimate(step.low, step.expected, max(step.high, old_ns * step.high / step.expected)),
        Estimate(min(gain.low, gain.low / gain.expected), gain.expected, gain.high),
    )


def is_narrow(step_ns: Estimate) -> bool:
    """Whether such predictions are right often enough for high confidence."""
    return step_ns.high <= NARROW * step_ns.expected


def own_errors() -> OwnErrors:
    """The errors of the local record; none if there is no record, or it cannot be read."""
    path = outcomes_file()
    try:
        state = path.stat()
    except OSError:
        return {}
    return _read_errors(path, state.st_mtime_ns, state.st_size)


@cache
def _read_errors(path: Path, _changed_ns: int, _size: int) -> OwnErrors:
    found: dict[str, list[OwnError]] = defaultdict(list)
    try:
        for fix, *numbers in rows(path, _QUERY):
            predicted, spread, measured = map(float, numbers)
            if all(1 / LARGEST_GAIN < one < LARGEST_GAIN for one in (predicted, spread, measured)):
                found[str(fix)].append(OwnError(abs(math.log(measured / predicted)), spread, predicted))
    except (WarplineError, ValueError, TypeError):
        return {}
    return found
