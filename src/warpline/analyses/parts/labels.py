"""Which part of the program each GPU operation belongs to: a range, an nn.Module, a role or a class of kernels."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

import numpy as np
from msgspec import Struct

from warpline.analyses.op_origin import BACKWARD, Origins
from warpline.analyses.parts.blocks import block_roles
from warpline.analyses.parts.roles import (
    ATTENTION,
    HEAD,
    OTHER,
    PROJECTIONS,
    RESIDUAL,
    role_of_class,
    role_of_name,
    role_of_op,
)
from warpline.analyses.parts.shape_roles import PLAIN, shape_roles
from warpline.analyses.roofline.pieces import GpuWork
from warpline.analyses.thread_events import RANGE, ThreadEvents
from warpline.kernels import identify
from warpline.library_names import PROFILER_STEP
from warpline.trace.arrays import NONE, Bools, Int64s, Texts
from warpline.trace.link import NESTED_STYLES
from warpline.trace.nesting import Nest, nearest_marked, nest
from warpline.trace.table import Names
from warpline.trace.trace import Trace
from warpline.work.parse import recorded_sizes

OF_OP = r", op_id = \d+|, seq = \d+|^(autograd::engine|aten|prim|profiler)::"
"""Ranges that emit_nvtx() writes for single ops."""
NO_PART = "(none)"
MATMULS = r"^aten::(mm|addmm|bmm|matmul|linear|_scaled_mm)$"


class PartNames(Struct, frozen=True):
    """For each operation in view, the name of its part, and which call of it: NONE where calls do not matter."""

    names: list[str]
    calls: Int64s


class PartLabels:
    """The parts of the operations in view, in each of the four ways."""

    def __init__(self, gpu_work: GpuWork) -> None:
        self._gpu, self._time_ns, self._trace = gpu_work.gpu, gpu_work.time_ns, gpu_work.trace
        self._ops, self._foreign, self._rows = gpu_work.gpu.op_id, gpu_work.foreign, gpu_work.rows
        self._origins = Origins(self._trace)

    def by(self, way: str) -> PartNames:
        """`range`, `module`, `role` or `class`."""
        return {"range": self.ranges, "module": self.modules, "role": self.roles, "class": self.classes}[way]()

    def default(self) -> str:
        """Modules or ranges if they name more than half of the GPU time, else roles."""
        times = self._time_ns
        for way in ("module", "range"):
            named = np.array([name != NO_PART for name in self.by(way).names], bool)
            if 2 * times[named].sum() > times.sum():
                return way
        return "role"

    def ranges(self) -> PartNames:
        """The innermost NVTX range or record_function around the launch, or around its forward op."""
        rows, backward = self._range_rows
        names = np.append(self._trace.ranges.name.texts, NO_PART)[rows]
        return PartNames(_with_backward(names, backward & (rows != NONE)), rows)

    def modules(self) -> PartNames:
        """The innermost nn.Module around the op, or around its forward op, with the module that calls it; layers that
        repeat are one part."""
        frames = self._module_frames
        modules = self._trace.python.module
        outer, inner = modules.at(self._calling_module[frames]).texts, modules.at(frames).texts
        pairs = list(zip((name or "" for name in outer), (name or "" for name in inner), strict=True))
        names = _names_of_layers(set(pairs))
        joined = np.array([names[pair] for pair in pairs], object)
        return PartNames(_with_backward(joined, self._backward & (frames != NONE)), frames)

    def classes(self) -> PartNames:
        """The class of the kernel by its name; copies and memsets by their kind."""
        return PartNames(self._classes, np.full(len(self._ops), NONE, np.int64))

    def roles(self) -> PartNames:
        """Attention, MLP, norm and so on: by op, module, range, shapes, block or kernel."""
        ranges, _ = self._range_rows
        by_range = _nearest_role(self._trace.ranges.name.renamed(role_of_name), self._range_parents)[ranges]
        modules = self._trace.python.module.renamed(role_of_name)
        by_module = _nearest_role(modules, self._trace.python.parent)[self._module_frames]
        blocks = _structure_roles(self._trace, self._origins)[self._origins.source[self._ops]]
        by_class = [role_of_class(kernel_class) for kernel_class in self._classes]
        ways = (self._op_roles, by_module, by_range, self._heads, blocks, self._foreign_roles, by_class)
        found = np.array([next(filter(None, roles), OTHER) for roles in zip(*ways, strict=True)], object)
        found[(found == ATTENTION) & self._is_plain_matmul] = PROJECTIONS
        return PartNames(_with_backward(found, self._backward), np.full(len(found), NONE, np.int64))

    @cached_property
    def _foreign_roles(self) -> Texts:
        """The roles of ops from elsewhere, for operations without one."""
        found = np.full(len(self._ops), "", object)
        for foreign in self._foreign:
            trace, ops = foreign.calls.trace, foreign.ops[self._rows]
            origins = Origins(trace)
            named = _nearest_role(trace.ops.name.renamed(role_of_op), trace.ops.parent)[ops]
            structure = _structure_roles(trace, origins)[origins.source[ops]]
            roles = np.where(named != "", named, structure)
            found = np.where((found == "") & (self._ops == NONE), roles, found)
        return found

    @cached_property
    def _is_plain_matmul(self) -> Bools:
        """Which operations belong to a matmul that is not batched, by their op or the one from elsewhere."""
        plain = np.append(self._trace.ops.name.like(PLAIN), False)[self._ops]
        for foreign in self._foreign:
            own = np.append(foreign.calls.trace.ops.name.like(PLAIN), False)[foreign.ops[self._rows]]
            plain |= own & (self._ops == NONE)
        return plain

    @property
    def _backward(self) -> Bools:
        return self._origins.is_backward[self._ops]

    @cached_property
    def _classes(self) -> list[str]:
        classes = self._gpu.name.renamed(lambda name: identify(name).kernel_class).texts
        return np.where(self._gpu.kind.equal("kernel"), classes, self._gpu.kind.texts).tolist()

    @cached_property
    def _range_nest(self) -> tuple[Nest, Int64s]:
        """Ranges that name parts, as a tree, and the row of each."""
        ranges = self._trace.ranges
        naming = ranges.style.equal(*NESTED_STYLES) & ~ranges.name.like(f"{PROFILER_STEP}|{OF_OP}")
        events = ThreadEvents.of((RANGE, ranges, naming)).in_order()
        return nest(events.thread, events.start_ns, events.end_ns), events.row

    @cached_property
    def _range_parents(self) -> Int64s:
        """For each row of `ranges`, the row of the naming range around it."""
        tree, rows = self._range_nest
        result = np.full(len(self._trace.ranges), NONE, np.int64)
        result[rows] = np.append(rows, NONE)[tree.parents]
        return result

    @cached_property
    def _range_rows(self) -> tuple[Int64s, Bools]:
        """The range of each operation, and whether it is that of its forward op."""
        tree, rows = self._range_nest
        api, ops, calls, source = self._trace.api, self._trace.ops, self._gpu.api_id, self._origins.source[self._ops]
        called = tree.innermost(np.append(api.thread, NONE)[calls], np.append(api.start_ns, NONE)[calls])
        began = tree.innermost(np.append(ops.thread, NONE)[source], np.append(ops.start_ns, NONE)[source])
        own, forward = np.append(rows, NONE)[called], np.append(rows, NONE)[began]
        is_forward = self._backward & (forward != NONE) & (source != self._ops)
        return np.where(is_forward, forward, own), is_forward

    @cached_property
    def _modules_above(self) -> Int64s:
        """For each frame, the module's frame that it is or lies in."""
        python = self._trace.python
        return np.append(nearest_marked(python.parent, python.module.codes != NONE), NONE)

    @cached_property
    def _calling_module(self) -> Int64s:
        """For each frame, the module around its module."""
        parents = np.append(self._trace.python.parent, NONE)
        return self._modules_above[parents[self._modules_above]]

    @cached_property
    def _module_frames(self) -> Int64s:
        """The module's frame of each operation, or NONE."""
        frames = np.append(self._trace.ops.frame, NONE)
        return self._modules_above[frames[self._origins.source[self._ops]]]

    @cached_property
    def _op_roles(self) -> list[str]:
        """The role that the op, or the nearest op around it, names; else that of its forward op."""
        roles = _nearest_role(self._trace.ops.name.renamed(role_of_op), self._trace.ops.parent)
        own, forward = roles[self._ops], roles[self._origins.source[self._ops]]
        return np.where(own != "", own, forward).tolist()

    @cached_property
    def _heads(self) -> list[str]:
        """A matmul whose operands have both sizes of the embedding is the language model's head."""
        ops = self._trace.ops
        embeddings = ops.name.like("^aten::embedding$")
        inputs = [recorded_sizes(text) for text in ops.shapes[embeddings].present()]
        tables: set[tuple[int, ...]] = {
            sizes[0] for sizes in inputs if sizes and len(sizes[0]) == 2 and min(sizes[0]) > 1
        }
        if not tables:
            return [""] * len(self._ops)
        has_table = ops.shapes.where(lambda shapes: _has_table(shapes, tables))
        is_head = np.append(ops.name.like(MATMULS) & has_table, False)
        # The forward op counts for its backward: the gradient of the head's weight has the table's sizes as a result.
        heads = is_head[self._ops] | is_head[self._origins.source[self._ops]]
        return [HEAD if head else "" for head in heads.tolist()]


def _structure_roles(trace: Trace, origins: Origins) -> Texts:
    """The role of each op by the norms around it, else by shapes, which also tell the residual from the block; one more
    at the end for no op."""
    backward = origins.is_backward[:-1]
    blocks, shapes = block_roles(trace, backward), shape_roles(trace, backward)
    return np.where((blocks != "") & (shapes != RESIDUAL), blocks, shapes)


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
            return f"{outer} > {inner}" if outer else inner or NO_PART
        place = f" {inside[outer, kind].index(inner) + 1}" if outer and most[above, kind] > 1 else ""
        return f"{above} > {kind}{place}" if outer else kind

    return {pair: name(*pair) for pair in pairs}


def _numbered(module: str) -> tuple[str, int]:
    """The class and the number of a module: `Linear_7`."""
    kind, _, number = module.rpartition("_")
    return (kind, int(number)) if kind and number.isdecimal() else (module, 0)


def _has_table(shapes: str, tables: set[tuple[int, ...]]) -> bool:
    return any(sizes in tables or sizes[::-1] in tables for sizes in recorded_sizes(shapes))


def _nearest_role(roles: Names, parents: Int64s) -> Texts:
    """The role of each row, or of the nearest around it that has one; else empty, and at the end for no row."""
    nearest = nearest_marked(parents, roles.texts != "") if len(roles) else parents
    return np.append(roles.at(nearest).texts, "")


def _with_backward(names: Texts, backward: Bools) -> list[str]:
    return [
        f"{name}{BACKWARD}" if back else str(name) for name, back in zip(names.tolist(), backward.tolist(), strict=True)
    ]
