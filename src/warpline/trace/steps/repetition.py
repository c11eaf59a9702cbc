"""Finds steps from repeating GPU activity, if neither a range nor a function marks them.

The sequence is the program's launches in order, with the waits in between. It shows
how long a step is; the pauses of the program show where a step starts: they are longer between steps than within.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np
from msgspec import Struct

from warpline.api_names import HOST_WAIT
from warpline.trace.arrays import NONE, Bools, Hashes, Int64s, combinations, hashed
from warpline.trace.schema import MIGRATION, Api, Gpu
from warpline.trace.steps.choice import FoundSteps
from warpline.trace.steps.period import LEAST_REPEATS, Period, find_period
from warpline.trace.steps.proper_steps import are_proper
from warpline.trace.trace import Trace

LEAST_PAUSES = 3
CLEARLY_LONGER, FAR_LONGER = 1.25, 1.5
"""A pause between steps is this many times longer than usual."""
LEAST_NS = 2_000
"""Minimum extra length of such a pause."""
PLACES_TRIED = 8
BY_CHANCE = 0.01
"""How often at most pauses may seem regular that are not."""
PAUSES_TRIED = 128
LONGEST_TRIED = 3
"""One of so many longest pauses is between steps; the others may be hiccups."""


class Regular(Struct, frozen=True):
    """Long pauses before every so-many-th repeat."""

    first: int
    """The first of these repeats."""
    every: int
    place: int
    """Where in the repeat."""


def longest_place(pauses: Int64s) -> int:
    """Where the program usually pauses longest; 0, the begin, unless it is clear."""
    usual = np.median(pauses[1:], axis=0)
    return int(usual.argmax()) if usual.max() > FAR_LONGER * usual[0] + LEAST_NS else 0


def regular_pauses(pauses: Int64s) -> Regular | None:
    """The place where the longest pauses come before every so-many-th repeat, if there is one."""
    if len(pauses) < 2 * LEAST_PAUSES:
        return None
    usual = np.median(pauses, axis=0)
    excess = np.clip(pauses - usual, 0, None).sum(axis=0)
    for place in np.argsort(-excess, kind="stable")[:PLACES_TRIED]:
        least = max(CLEARLY_LONGER * usual[place], usual[place] + LEAST_NS)
        found = _evenly_spaced(pauses[:, place], least)
        if found is not None:
            return Regular(*found, int(place))
    place = int(excess.argmax())
    found = _hardly_by_chance(pauses[:, place], usual[place] + LEAST_NS)
    return None if found is None else Regular(*found, place)


def _evenly_spaced(pauses: Int64s, least: float) -> tuple[int, int] | None:
    """First and distance of the longest pauses, if they are equally far apart from begin to end; of several choices the
    one that is set off most. Four of them prove it; three only if the next one is far shorter.

    The pause before the first repeat may be missing: nothing was recorded before.
    """
    count = len(pauses)
    order = np.argsort(-pauses, kind="stable")
    length = pauses[order].astype(np.float64)
    best: tuple[float, int, int] | None = None
    for many in range(LEAST_PAUSES, min(count // 2, PAUSES_TRIED) + 1):
        drop = length[many - 1] / max(length[many], 1.0)
        if length[many - 1] < least or (many == LEAST_PAUSES and drop < FAR_LONGER):
            continue
        turns = np.sort(order[:many])
        every = int(turns[1] - turns[0])
        even = (np.diff(turns) == every).all() and turns[0] <= every <= count - turns[-1]
        if even and (best is None or drop > best[0]):
            best = drop, int(turns[0]) % every, every
    return None if best is None else best[1:]


def _hardly_by_chance(pauses: Int64s, least: float) -> tuple[int, int] | None:
    """First and distance of pauses that are equally far apart and, but for a few others, the longest: so few that it
    would hardly come by chance, whatever distance and first one are tried."""
    count = len(pauses)
    # The pause before the first repeat may be missing: it is not looked at.
    order = np.argsort(-pauses[1:], kind="stable") + 1
    rank = np.zeros(count, np.int64)
    rank[order] = np.arange(1, count)
    distances = range(2, count // LEAST_PAUSES + 1)
    long = int((pauses >= least).sum())
    if long < LEAST_PAUSES:
        return None
    tried = log(sum(distances))
    best: tuple[float, int, int] | None = None
    for every in distances[max(0, (count - 1) // (long + 1) - 1) :]:  # closer together, too few are long enough
        for first in {int(turn) % every for turn in order[:LONGEST_TRIED]}:
            turns = np.arange(first or every, count, every)
            if len(turns) < LEAST_PAUSES or pauses[turns].min() < least:
                continue
            chance = tried + _log_choices(int(rank[turns].max()), len(turns)) - _log_choices(count - 1, len(turns))
            if chance < log(BY_CHANCE) and (best is None or chance < best[0]):
                best = chance, first, every
    return None if best is None else best[1:]


def _log_choices(count: int, chosen: int) -> float:
    """Logarithm of the number of ways to choose so many of so many."""
    return lgamma(count + 1) - lgamma(chosen + 1) - lgamma(count - chosen + 1)


SAME, ALIKE = 0.98, 0.9
"""Share of the operations that must match those one period later: in name and size, or else in name alone."""
LEAST_DISTINCT = 0.25
"""Share of the distinct work that a step must hold: trials of one kernel repeat
too, and so does the filling of parameters."""
LONGEST_OPENING = 64
"""Number of items that identify the start of a step."""
ABOUT_A_PERIOD = (0.8, 1.25)
IN_ONE_GO = 3.0
"""A pause this many times the longest one of a usual repeat ends what is asked for in one go."""
FILL = r"(?i)(^|[^d_]|[^d]_)fill|memset"
"""Kernels that only write a value to memory, as a memset does (of torch, of OpenACC, of thrust); not masked_fill."""
LAST_ALIKE = 0.9
"""Share of the last step that must exist and match the others."""


class Requests(Struct, frozen=True):
    """The program's requests in order: launches, and waits."""

    row: Int64s
    """Row of `gpu`; NONE for a wait."""
    pause_ns: Int64s
    """How long nothing was asked for before it, and before the waits that precede it; 0 for waits."""
    kinds: Hashes
    """What it is: two launches of a kernel are the same if their sizes are."""
    names: Hashes
    """The same without sizes."""


def steps_from_repetition(trace: Trace) -> FoundSteps | None:
    """The steps from the period of the requests; None if nothing repeats, or only a part of the work does."""
    gpu, requests = _of_program(trace)
    for codes, same in ((requests.kinds, SAME), (requests.names, ALIKE)):
        period = find_period(codes, same)
        if period is not None and _variety(codes, requests.row != NONE, period) >= LEAST_DISTINCT:
            if _only_moves(gpu, requests, period) or _is_one_pass(gpu, requests, codes, period):
                return None
            steps = _steps(gpu, requests, *_marks(codes, requests.pause_ns, period))
            return steps if steps is not None and are_proper(steps, trace) else None
    return None


def repeated_work(trace: Trace) -> Period | None:
    """The period of the launches and waits, whatever it is: steps, layers or micro-batches; None if nothing repeats."""
    _, requests = _of_program(trace)
    return find_period(requests.kinds, SAME) or find_period(requests.names, ALIKE)


def _of_program(trace: Trace) -> tuple[Gpu, Requests]:
    """What the program asks the device for, without the pages of unified memory that the driver moves."""
    moved = trace.gpu.copy_kind.like(MIGRATION)
    gpu = trace.gpu[~moved] if moved.any() else trace.gpu
    return gpu, _requests(gpu, trace.api)


def _only_moves(gpu: Gpu, requests: Requests, period: Period) -> bool:
    """Whether the repeats only copy and fill memory, and the kernels of the program lie elsewhere, or there are none:
    then memory is prepared piece by piece. Copies alone may be all that a program is about."""
    rows = requests.row[period.first : period.beyond]
    rows = rows[rows != NONE]
    fills = gpu.kind.equal("memset") | gpu.name.like(FILL)
    computes = gpu.kind.equal("kernel", "graph") & ~fills
    return bool(not computes[rows].any() and (computes.any() or fills[rows].any()))


def _is_one_pass(gpu: Gpu, requests: Requests, codes: Hashes, period: Period) -> bool:
    """Whether the repeats are layers of one pass.

    They are asked for in one go with something before and something after them that no repeat has (an embedding, a
    head), and none of them has to do with the host.
    """
    inside = slice(period.first, period.beyond)
    rows = requests.row[inside]
    if NONE in rows or gpu.copy_kind[rows].like("HtoD|DtoH").any():
        return False
    pauses = requests.pause_ns[inside][: period.repeats * period.length].reshape(-1, period.length)
    longest = IN_ONE_GO * np.median(pauses[1:].max(axis=1))
    # A request continues what is asked for in one go if nothing is waited for before it.
    continues = (requests.row != NONE) & (requests.pause_ns <= longest)
    before = np.arange(period.first - 1, max(period.first - period.length, 0) - 1, -1)
    after = np.arange(period.beyond, min(period.beyond + period.length, len(codes)))
    before = before[np.logical_and.accumulate(continues[before + 1] & (requests.row[before] != NONE))]
    after = after[np.logical_and.accumulate(continues[after])]
    return all(len(around) > 0 and not np.isin(codes[around], codes[inside]).all() for around in (before, after))


def _variety(codes: Hashes, is_work: Bools, period: Period) -> float:
    """Share of the distinct work that one period holds."""
    one = slice(period.first, period.first + period.length)
    return len(np.unique(codes[one][is_work[one]])) / len(np.unique(codes[is_work]))


def _requests(gpu: Gpu, api: Api) -> Requests:
    waits = np.flatnonzero(api.name.like(HOST_WAIT))
    no_row = np.full(len(waits), NONE)
    calls, moments = np.append(gpu.api_id, waits), np.append(gpu.start_ns, no_row)
    start, end = (np.where(calls == NONE, moments, np.append(side, NONE)[calls]) for side in (api.start_ns, api.end_ns))
    # Work of one graph has one launch, and an order that changes from replay to replay.
    order = np.lexsort((np.append(gpu.stream, no_row), start))
    row = np.append(np.arange(len(gpu)), no_row)[order]
    idle = np.append(0, np.clip(start[order][1:] - np.maximum.accumulate(end[order])[:-1], 0, None))
    next_work = np.searchsorted(np.flatnonzero(row != NONE), np.arange(len(row)))
    pause = np.zeros(len(row), np.int64)
    pause[row != NONE] = np.bincount(next_work, idle, len(gpu))[: len(gpu)].astype(np.int64)
    name = gpu.kind.codes, gpu.name.codes
    size = gpu.grid_x, gpu.grid_y, gpu.grid_z, gpu.block_x, gpu.bytes, gpu.copy_kind.codes
    waited = hashed(no_row, api.name.codes[waits])
    kinds, names = (np.append(hashed(*columns), waited)[order] for columns in ((*name, *size), name))
    return Requests(row, pause, kinds, names)


def _marks(codes: Hashes, pause_ns: Int64s, period: Period) -> tuple[Int64s, int]:
    """Where each step begins, and where the last one ends, if all of it is there (else it only ends the one before)."""
    pauses = pause_ns[period.first :][: period.repeats * period.length].reshape(-1, period.length)
    regular = regular_pauses(pauses)
    if regular is not None:
        first = period.first + regular.first * period.length + regular.place
        period = Period(first, period.beyond, regular.every * period.length)
        marks = np.arange(period.first, period.beyond, period.length)
    else:
        shifted = Period(period.first + longest_place(pauses), period.beyond, period.length)
        period = shifted if shifted.repeats >= min(period.repeats, LEAST_REPEATS) else period
        marks = _alike(codes, np.arange(period.first, period.beyond, period.length), period)
    last, usual = (codes[begin:][: period.length] for begin in (marks[-1], period.first))
    whole = len(last) == len(usual) and (last == usual).mean() >= LAST_ALIKE
    return marks, int(marks[-1]) + (period.length if whole else 0)


def _alike(codes: Hashes, marks: Int64s, period: Period) -> Int64s:
    """The marks, and more of them about one period apart where the same items follow: steps before or after the stretch
    that repeats, with a little more or less in them."""
    here = np.ones(len(codes), bool)
    for ahead in range(min(period.length, LONGEST_OPENING)):
        here &= np.append(codes[ahead:], np.zeros(ahead, np.uint64)) == codes[period.first + ahead]
        if here[period.first : period.beyond].sum() <= len(marks):
            break
    else:
        return marks
    shortest, longest = (share * period.length for share in ABOUT_A_PERIOD)
    places = np.union1d(np.flatnonzero(here), marks)
    far = (np.diff(places) < shortest) | (np.diff(places) > longest)
    stretch = np.append(0, np.cumsum(far))
    found: Int64s = places[stretch == stretch[np.searchsorted(places, marks[0])]]
    return found


def _steps(gpu: Gpu, requests: Requests, marks: Int64s, end: int) -> FoundSteps | None:
    """Steps begin with their first work on the busiest stream, and end where the next begins; a last one that is whole
    ends with its work."""
    which = combinations(gpu.device, gpu.stream)[1]
    lane = np.flatnonzero(np.append(which == np.bincount(which).argmax(), False)[requests.row])
    spots = np.searchsorted(lane, marks)
    begins = gpu.start_ns[requests.row[lane[spots[spots < len(lane)]]]]
    if end > marks[-1]:
        rows = requests.row[marks[-1] : end]
        begins = np.append(begins, gpu.end_ns[rows[rows != NONE]].max(initial=0))
    if len(begins) < LEAST_REPEATS or (np.diff(begins) <= 0).any():
        return None
    names = [f"repeat {number}" for number in range(len(begins) - 1)]
    return FoundSteps(names, begins[:-1], begins[1:], NONE, "repetition")
