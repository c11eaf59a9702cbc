"""Which part of the program each GPU operation belongs to: a range, an nn.Module, a role or a class of kernels."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
from msgspec import Struct

from warpline.analyses.modules import Modules
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
from warpline.library_names import ENGINE_STEP, PROFILER_STEP
from warpline.trace.arrays import NONE, Bools, Int64s, Texts, combinations
from warpline.trace.link import NESTED_STYLES
from warpline.trace.nesting import Nest, nearest_marked, nest
from warpline.trace.table import Names
from warpline.trace.trace import Trace
from warpline.work.parse import recorded_sizes

OF_OP = r", op_id = \d+|, seq = \d+|^(autograd::engine|aten|prim|profiler)::"
"""Ranges that emit_nvtx() writes for single ops."""
NO_PART = "(none)"
COMPILED_MODULE = re.compile(r"(^|> )GraphModule(_\d+)?( \d+)?( backward)?$")
MATMULS = r"^aten::(mm|addmm|bmm|matmul|linear|_scaled_mm)$"


class PartNames(Struct, frozen=True):
    """For each operation in view, the name of its part, and which call of it: NONE where calls do not matter."""

    names: list[str]
    calls: Int64s
    inferred: Bools
    """Which names are not of the launch itself, but of the capture of its graph or of the same kernels elsewhere."""


class PartLabels:
    """The parts of the operations in view, in each of the four ways."""

    def __init__(self, gpu_work: GpuWork) -> None:
        self._gpu, self._time_ns, self._trace = gpu_work.gpu, gpu_work.time_ns, gpu_work.trace
        self._ops, self._foreign, self._rows = gpu_work.gpu.op_id, gpu_work.foreign, gpu_work.rows
        self._origins = Origins(self._trace)
        self._modules = Modules(self._trace, self._origins)

    def by(self, way: str) -> PartNames:
        """`range`, `module`, `role` or `class`."""
        return {"range": self.ranges, "module": self.modules, "role": self.roles, "class": self.classes}[way]()

    def default(self) -> str:
        """Modules or ranges if they name more than half of the GPU time, else roles. A compiled graph is no part of the
        model."""
        times = self._time_ns
        for way in ("module", "range"):
            named = np.array([name != NO_PART and not COMPILED_MODULE.search(name) for name in self.by(way).names])
            if 2 * times[named].sum() > times.sum():
                return way
        return "role"

    def ranges(self) -> PartNames:
        """The innermost NVTX range or record_function around the launch, or around its forward op."""
        rows, backward = self._range_rows
        names = np.append(self._trace.ranges.name.texts, NO_PART)[rows]
        return PartNames(_with_backward(names, backward & (rows != NONE)), rows, self._nowhere)

    def modules(self) -> PartNames:
        """The innermost nn.Module around the op, or around its forward op, with the module that calls it; layers that
        repeat are one part."""
        frames = self._module_frames
        names = self._modules.names(frames)
        named = np.array(_with_backward(names, self._backward & (frames != NONE)), object)
        calls, inferred = frames.copy(), self._nowhere.copy()
        for foreign in self._foreign:
            lent = foreign.frames[self._rows]
            modules = foreign.modules[self._rows]
            missing = (named == "") & (modules != "")
            named[missing] = modules[missing]
            inferred |= missing & (foreign.evidence != "recorded")
            if foreign.evidence == "capture":
                # One capture may serve many layers: a call is a frame of it in one launch of the graph.
                calls[missing] = combinations(self._gpu.api_id, lent)[1][missing] + len(self._trace.python)
        named[named == ""] = NO_PART
        return PartNames(named.tolist(), calls, inferred)

    def classes(self) -> PartNames:
        """The class of the kernel by its name; copies and memsets by their kind."""
        return PartNames(self._classes, np.full(len(self._ops), NONE, np.int64), self._nowhere)

    def roles(self) -> PartNames:
        """Attention, MLP, norm and so on: by op, module, range, shapes, block or kernel."""
        ranges, _ = self._range_rows
        by_range = _nearest_role(self._trace.ranges.name.renamed(role_of_name), self._range_parents)[ranges]
        modules = self._trace.python.module.renamed(role_of_name)
        by_module = _nearest_role(modules, self._trace.python.parent)[self._module_frames]
        blocks = _structure_roles(self._trace, self._origins)[self._origins.source[self._ops]]
        by_class = np.array([role_of_class(kernel_class) for kernel_class in self._classes], object)
        own = (self._op_roles, by_module, by_range, self._heads, blocks)
        found = np.array([next(filter(None, roles), "") for roles in zip(*own, strict=True)], object)
        inferred = (found == "") & (self._foreign_roles != "")
        found = np.where(inferred, self._foreign_roles, np.where(found != "", found, by_class))
        found[found == ""] = OTHER
        found[(found == ATTENTION) & self._is_plain_matmul] = PROJECTIONS
        calls = np.full(len(found), NONE, np.int64)
        return PartNames(_with_backward(found, self._backward), calls, inferred & self._is_inferred)

    @cached_property
    def _nowhere(self) -> Bools:
        return np.zeros(len(self._ops), bool)

    @cached_property
    def _is_inferred(self) -> Bools:
        """Which operations have an op from elsewhere that was not recorded with their launch."""
        known = [one.known[self._rows] for one in self._foreign if one.evidence != "recorded"]
        return np.logical_or.reduce([self._nowhere, *known])

    @cached_property
    def _foreign_roles(self) -> Texts:
        """The roles of ops from elsewhere, for operations without one."""
        found = np.full(len(self._ops), "", object)
        for foreign in self._foreign:
            trace, ops = foreign.calls.trace, foreign.ops[self._rows]
            origins = Origins(trace)
            named = _nearest_role(trace.ops.name.renamed(role_of_op), trace.ops.parent)[ops]
            frames = foreign.frames[self._rows]
            by_module = _nearest_role(trace.python.module.renamed(role_of_name), trace.python.parent)[frames]
            structure = _structure_roles(trace, origins)[origins.source[ops]]
            roles = np.where(named != "", named, np.where(by_module != "", by_module, structure))
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
        naming = ranges.style.equal(*NESTED_STYLES) & ~ranges.name.like(f"{PROFILER_STEP}|{ENGINE_STEP}|{OF_OP}")
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
    def _module_frames(self) -> Int64s:
        """The module's frame of each operation, or NONE."""
        return self._modules.frames(self._ops, self._gpu.api_id)

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
