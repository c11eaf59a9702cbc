"""The difference between two typical steps in parts that sum to it exactly.

Operations are aligned in order. Those that have a partner are compared with it. What lies between two aligned pairs on
both sides took the place of each other: five elementwise kernels that became one. The rest is new or gone.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import heappop, heappush
from itertools import chain
from typing import Any, Literal

import numpy as np
from msgspec import Struct, to_builtins

from warpline.analyses.idle.gaps import CAUSES
from warpline.compare.align import align
from warpline.compare.kernel_similarity import kernel_similarity
from warpline.compare.typical_step import Operation, TypicalStep
from warpline.kernels import identify
from warpline.trace.arrays import Int64s

COPY = re.compile(r"Memcpy|Memset|\[CUDA mem")
"""How the names of copies and memsets begin, with torch.profiler and with Nsight Systems."""
MEMORY = re.compile(r"(.*) \((\w+) -> (\w+)\)")
"""A copy with its kinds of memory: `Memcpy HtoD (Pageable -> Device)`."""
PartKind = Literal["same", "variant", "fused", "split", "replaced", "new", "gone", "idle"]


class StepPart(Struct, frozen=True):
    """A part of the step in both runs, per step."""

    kind: PartKind
    """`same`: the same kernel, copy or op; `variant`: another kernel for the same job; `fused`, `split`, `replaced`:
    some took the place of others; `new` and `gone`: on one side only; `idle`: the device waits, by cause."""
    name: str
    a: tuple[str, ...]
    """Names in A, in order, for one occurrence."""
    b: tuple[str, ...]
    a_count: int
    """Operations in a step of A."""
    b_count: int
    a_ns: int
    b_ns: int
    where: str = ""
    """The user's line that has most of it in B, or in A if it is gone; empty for what the GPU does."""

    @property
    def is_copy(self) -> bool:
        """Whether it is one copy or memset on each side."""
        return bool(self.a or self.b) and all(map(COPY.match, (*self.a, *self.b)))

    @property
    def change_ns(self) -> int:
        """How much longer it takes in B."""
        return self.b_ns - self.a_ns

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {**to_builtins(self), "change_ns": self.change_ns}


class Counterparts(Struct, frozen=True):
    """Positions in A and B that belong together."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    is_pair: bool


class StepParts(Struct, frozen=True):
    """How two steps differ; the changes of all parts and `unexplained_ns` sum to that of the step."""

    parts: tuple[StepPart, ...]
    """The largest change first."""
    unexplained_ns: int
    """Change of idle time without a known cause."""


def explain(a: TypicalStep, b: TypicalStep) -> StepParts:
    """The difference between two steps in parts."""
    is_on_cpu = a.is_on_cpu and b.is_on_cpu
    grouped = _by_name(a.operations, b.operations) if is_on_cpu else _by_place(a.operations, b.operations)
    whole_a, whole_b = _whole_numbers(a, list(grouped.values()), "a"), _whole_numbers(b, list(grouped.values()), "b")
    parts = [
        StepPart(
            kind,
            title(kind, names_a, names_b, str if is_on_cpu else short),
            names_a,
            names_b,
            sum(len(block.a) for block in group),
            sum(len(block.b) for block in group),
            whole_a[place],
            whole_b[place],
            _place(b, chain.from_iterable(block.b for block in group))
            or _place(a, chain.from_iterable(block.a for block in group)),
        )
        for place, ((kind, names_a, names_b), group) in enumerate(grouped.items())
    ]
    for place, cause in enumerate(CAUSES, len(grouped)):
        if cause == "unknown":
            unexplained = whole_b[place] - whole_a[place]
        elif whole_a[place] or whole_b[place]:
            parts.append(StepPart("idle", cause, (), (), 0, 0, whole_a[place], whole_b[place]))
    parts.sort(key=lambda part: (-abs(part.change_ns), part.kind, part.name))
    return StepParts(tuple(parts), unexplained)


Groups = dict[tuple[PartKind, tuple[str, ...], tuple[str, ...]], list[Counterparts]]
"""Of each part, by its kind and the names in A and in B for one occurrence."""


def _by_place(a: tuple[Operation, ...], b: tuple[Operation, ...]) -> Groups:
    """What takes the place of what."""
    grouped: Groups = defaultdict(list)
    for block in _blocks(a, b):
        before, after = [a[place] for place in block.a], [b[place] for place in block.b]
        names = tuple(one.name for one in before), tuple(one.name for one in after)
        grouped[(_kind(block, before, after), *names)].append(block)
    return grouped


def _by_name(a: tuple[Operation, ...], b: tuple[Operation, ...]) -> Groups:
    """What has the same name. An op of the CPU calls others, and Python runs between them: their order says little."""
    places: dict[tuple[str, str], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, operations in enumerate((a, b)):
        for place, one in enumerate(operations):
            places[one.kind, one.name][side].append(place)
    grouped: Groups = defaultdict(list)
    for (_, name), (in_a, in_b) in places.items():
        kind: PartKind = "same" if in_a and in_b else "gone" if in_a else "new"
        grouped[kind, (name,) * bool(in_a), (name,) * bool(in_b)].append(Counterparts(tuple(in_a), tuple(in_b), False))
    return grouped


def _place(step: TypicalStep, operations: Iterable[int]) -> str:
    """The user's line in which these operations take most of their time; empty if none is known."""
    times: dict[str, float] = defaultdict(float)
    for one in operations:
        times[step.operations[one].place] += float(step.exposed_ns[one])
    return max(times, key=times.__getitem__, default="")


def _whole_numbers(step: TypicalStep, groups: list[list[Counterparts]], side: Literal["a", "b"]) -> list[int]:
    """The time of each group and of each cause, in whole nanoseconds that sum to the rounded step."""
    times = [sum(float(step.exposed_ns[list(getattr(block, side))].sum()) for block in group) for group in groups]
    edges = np.rint(np.cumsum([0.0, *times, *(step.idle_ns[cause] for cause in CAUSES)])).astype(np.int64)
    edges[-1] = round(step.step_ns)
    return [int(length) for length in np.diff(edges)]


def same_in_order(a: tuple[Operation, ...], b: tuple[Operation, ...]) -> list[tuple[int, int]]:
    """Positions in A and B of the same operations, with the same grids, in order in both."""
    return [(at_a, at_b) for at_a, at_b in _aligned(a, b)[0] if a[at_a].key == b[at_b].key]


@lru_cache(maxsize=2)
def _aligned(a: tuple[Operation, ...], b: tuple[Operation, ...]) -> tuple[list[tuple[int, int]], Int64s]:
    """The pairs, and which of its distinct operations each of B is."""
    (kinds_a, codes_a), (kinds_b, codes_b) = _coded(a), _coded(b)
    return align(codes_a, codes_b, kernel_similarity(kinds_a, kinds_b)), codes_b


def _blocks(a: tuple[Operation, ...], b: tuple[Operation, ...]) -> list[Counterparts]:
    pairs, codes_b = _aligned(a, b)
    blocks = [Counterparts((at_a,), (at_b,), True) for at_a, at_b in pairs]
    left, right = [], []
    for spare_a, spare_b in _between(pairs, len(a), len(b)):
        left.append(spare_a)
        right.append(spare_b)
    blocks += _moved(left, right, [one.key[:2] for one in a], [one.key[:2] for one in b], codes_b)
    for spare_a, spare_b in zip(left, right, strict=True):
        blocks += _replaced(spare_a, spare_b, a, b)
    return blocks


def _coded(operations: Sequence[Operation]) -> tuple[list[Operation], Int64s]:
    """The distinct operations, and which of them each is. Ops are no part of it: kernels decide."""
    known: dict[tuple[str, str, tuple[int, ...]], int] = {}
    firsts, codes = [], []
    for one in operations:
        key = one.key
        if key not in known:
            known[key] = len(known)
            firsts.append(one)
        codes.append(known[key])
    return firsts, np.array(codes, np.int64)


def _between(pairs: Sequence[tuple[int, int]], count_a: int, count_b: int) -> Iterator[tuple[list[int], list[int]]]:
    """Positions without a partner, in A and in B, between consecutive pairs."""
    last_a = last_b = -1
    for at_a, at_b in [*pairs, (count_a, count_b)]:
        if at_a > last_a + 1 or at_b > last_b + 1:
            yield list(range(last_a + 1, at_a)), list(range(last_b + 1, at_b))
        last_a, last_b = at_a, at_b


def _moved(
    left: list[list[int]],
    right: list[list[int]],
    names_a: Sequence[tuple[str, str]],
    names_b: Sequence[tuple[str, str]],
    codes_b: Int64s,
) -> list[Counterparts]:
    """Pairs of one name that only changed their place; they are used out of the two lists."""
    waiting: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for place in chain.from_iterable(right):
        heappush(waiting[names_b[place]], (int(codes_b[place]), place))
    partners = {
        place: heappop(waiting[names_a[place]])[1] for place in chain.from_iterable(left) if waiting.get(names_a[place])
    }
    used = set(partners.values())
    for places in left:
        places[:] = [place for place in places if place not in partners]
    for places in right:
        places[:] = [place for place in places if place not in used]
    return [Counterparts((place,), (other,), True) for place, other in partners.items()]


def _replaced(
    spare_a: list[int], spare_b: list[int], a: Sequence[Operation], b: Sequence[Operation]
) -> Iterator[Counterparts]:
    """What took the place of what between two pairs. A fused kernel whose name says what it does takes the kernels of
    those ops, and the others share the rest."""
    by_op: dict[str, set[int]] = defaultdict(set)
    if len(spare_b) > 1:
        for place in spare_a:
            for op in _ops_of(a[place]):
                by_op[op].add(place)
    used: set[int] = set()
    rest_b = []
    for place in spare_b:
        fused = set(identify(b[place].name).fused_ops)
        sources = sorted(set().union(*(by_op.pop(op, ()) for op in fused)) - used)
        if sources:
            used.update(sources)
            yield Counterparts(tuple(sources), (place,), False)
        else:
            rest_b.append(place)
    rest_a = [place for place in spare_a if place not in used]
    if rest_a or rest_b:
        yield Counterparts(tuple(rest_a), tuple(rest_b), False)


def _ops_of(one: Operation) -> set[str]:
    known = identify(one.name)
    names = {*known.fused_ops, known.op or "", known.functor or "", one.op.rpartition("::")[2]}
    return {name.rstrip("_") for name in names if name}


def _kind(block: Counterparts, before: Sequence[Operation], after: Sequence[Operation]) -> PartKind:
    if block.is_pair:
        return "same" if before[0].key[:2] == after[0].key[:2] else "variant"
    if not before or not after:
        return "new" if after else "gone"
    if len(before) == len(after):
        return "replaced"
    return "fused" if len(after) < len(before) else "split"


def title(kind: PartKind, names_a: tuple[str, ...], names_b: tuple[str, ...], shown: Callable[[str], str]) -> str:
    """The part in a few words; `shown` is how a name is written."""
    if kind in {"same", "gone"}:
        return _listed(names_a, shown)
    if kind == "new":
        return _listed(names_b, shown)
    return _other_memory(names_a, names_b) or f"{_listed(names_a, shown)} → {_listed(names_b, shown)}"


def _other_memory(names_a: tuple[str, ...], names_b: tuple[str, ...]) -> str | None:
    """`Memcpy HtoD (pageable → pinned)` if one copy differs only in one kind of memory."""
    if len(names_a) != 1 or len(names_b) != 1:
        return None
    old, new = MEMORY.fullmatch(names_a[0]), MEMORY.fullmatch(names_b[0])
    if old is None or new is None or old[1] != new[1]:
        return None
    differ = [(before, after) for before, after in zip(old.groups(), new.groups(), strict=True) if before != after]
    return f"{old[1]} ({differ[0][0].lower()} → {differ[0][1].lower()})" if len(differ) == 1 else None


def _listed(names: tuple[str, ...], shown: Callable[[str], str]) -> str:
    counted = Counter(map(shown, names))
    return " + ".join(f"{times} × {name}" if times > 1 else name for name, times in counted.items())


def short(name: str) -> str:
    """A kernel's name as a person would say it: library and op where they are known and say enough. A copy keeps the
    kinds of memory, which are often what changed."""
    if COPY.match(name):
        return name
    known = identify(name)
    if known.functor and known.library:
        return f"{known.library} {known.functor}"
    if known.library and known.op and known.kernel_class in {"norm", "softmax", "reduction", "layout", "index"}:
        return f"{known.library} {known.op}"
    plain = re.split(r"[<(]", name.replace("(anonymous namespace)::", ""), maxsplit=1)[0]
    return plain.rpartition("::")[2].removeprefix("void ").strip() or name
