"""Which nn.Module launched a GPU operation, by the Python frames around its op or its API call."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

import numpy as np

from warpline.analyses.op_origin import Origins
from warpline.trace.arrays import NONE, Int64s, Texts
from warpline.trace.nesting import nearest_marked, nest, order_for_nesting
from warpline.trace.trace import Trace


class Modules:
    """The modules of a trace, as rows of `python`."""

    def __init__(self, trace: Trace, origins: Origins | None = None) -> None:
        self._trace, self._origins = trace, origins or Origins(trace)

    def frames(self, ops: Int64s, calls: Int64s) -> Int64s:
        """The module's frame around each op, or around its forward op; where there is no op, around the API call."""
        python, api = self._trace.python, self._trace.api
        of_ops = self._above[np.append(self._trace.ops.frame, NONE)[self._origins.source[ops]]]
        alone = np.flatnonzero((ops == NONE) & (calls != NONE))
        if not len(alone) or not len(python):
            return of_ops
        order = order_for_nesting(python.thread, python.start_ns, python.end_ns)
        frames = python[order]
        tree = nest(frames.thread, frames.start_ns, frames.end_ns)
        found = tree.innermost(api.thread[calls[alone]], api.start_ns[calls[alone]])
        of_ops[alone] = self._above[np.append(order, NONE)[found]]
        return of_ops

    def names(self, frames: Int64s) -> Texts:
        """Each module with the one that calls it, `MLP > Linear 2`; layers that repeat have one name. Empty for no
        module."""
        modules = self._trace.python.module
        outer, inner = modules.at(self._caller[frames]).texts, modules.at(frames).texts
        pairs = list(zip((name or "" for name in outer), (name or "" for name in inner), strict=True))
        names = _names_of_layers(set(pairs))
        return np.array([names[pair] for pair in pairs], object)

    @cached_property
    def _above(self) -> Int64s:
        """For each frame, the module's frame that it is or lies in."""
        python = self._trace.python
        return np.append(nearest_marked(python.parent, python.module.codes != NONE), NONE)

    @cached_property
    def _caller(self) -> Int64s:
        """For each frame, the module around its module."""
        parents = np.append(self._trace.python.parent, NONE)
        return self._above[parents[self._above]]


def _names_of_layers(pairs: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """A name for each pair of modules, `MLP_3 > Linear_7`. torch numbers the modules of a class: several of the outer
    class are layers of one kind, whose modules are told apart by their order only, `MLP > Linear 2`."""
    alike: dict[str, set[str]] = defaultdict(set)
    inside: dict[tuple[str, str], list[str]] = defaultdict(list)
    for outer, inner in sorted(pairs, key=lambda pair: _numbered(pair[1])):
        alike[_numbered(outer)[0] or _numbered(inner)[0]].add(outer or inner)
        inside[outer, _numbered(inner)[0]].append(inner)
    most: dict[tuple[str, str], int] = defaultdict(int)
    for (outer, kind), modules in inside.items():
        key = _numbered(outer)[0], kind
        most[key] = max(most[key], len(modules))

    def name(outer: str, inner: str) -> str:
        kind, above = _numbered(inner)[0], _numbered(outer)[0]
        if not inner or len(alike[above or kind]) < 2:
            return f"{outer} > {inner}" if outer else inner
        place = f" {inside[outer, kind].index(inner) + 1}" if outer and most[above, kind] > 1 else ""
        return f"{above} > {kind}{place}" if outer else kind

    return {pair: name(*pair) for pair in pairs}


def _numbered(module: str) -> tuple[str, int]:
    """The class and the number of a module: `Linear_7`."""
    kind, _, number = module.rpartition("_")
    return (kind, int(number)) if kind and number.isdecimal() else (module, 0)
