"""Which part of the program each GPU operation belongs to: a range, an nn.Module, a role or a class of kernels."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import polars as pl
from msgspec import Struct

from warpline.analyses.op_origin import BACKWARD, Origins
from warpline.analyses.parts.blocks import block_roles
from warpline.analyses.parts.roles import HEAD, OTHER, role_of_class, role_of_name, role_of_op
from warpline.analyses.roofline.pieces import Gathered
from warpline.kernels import identify
from warpline.library_names import PROFILER_STEP
from warpline.trace.arrays import NONE, Bools, Int64s, Texts, integers
from warpline.trace.link import NESTED_STYLES
from warpline.trace.names import rows_like, texts
from warpline.trace.nesting import Nest, nearest_marked, nest, order_for_nesting
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

    def __init__(self, gathered: Gathered) -> None:
        self._gathered, self._trace = gathered, gathered.trace
        self._ops = integers(gathered.gpu["op_id"])
        self._origins = Origins(self._trace)

    def by(self, way: str) -> PartNames:
        """`range`, `module`, `role` or `class`."""
        return {"range": self.ranges, "module": self.modules, "role": self.roles, "class": self.classes}[way]()

    def default(self) -> str:
        """Modules or ranges if they name more than half of the GPU time, else roles."""
        times = self._gathered.numbers["time_ns"].to_numpy()
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
        """The innermost nn.Module around the op, or around its forward op, with the module that calls it."""
        frames = self._module_frames
        own, above = self._module_names[frames], self._module_names[self._calling_module[frames]]
        pairs = zip(above.tolist(), own.tolist(), strict=True)
        joined = np.array([f"{outer} > {inner}" if outer else inner or NO_PART for outer, inner in pairs], object)
        return PartNames(_with_backward(joined, self._backward & (frames != NONE)), frames)

    def classes(self) -> PartNames:
        """The class of the kernel by its name; copies and memsets by their kind."""
        return PartNames(self._classes, np.full(len(self._ops), NONE, np.int64))

    def roles(self) -> PartNames:
        """Attention, MLP, norm and so on: by op, module, range, shapes, block or kernel."""
        ranges, _ = self._range_rows
        by_range = self._nearest_role(self._trace.ranges.name.texts, self._range_parents)[ranges]
        by_module = self._nearest_role(self._module_names[:-1], self._trace.python.parent)[self._module_frames]
        blocks = block_roles(self._trace, self._origins.is_backward[:-1])[self._origins.source[self._ops]]
        by_class = [role_of_class(kernel_class) for kernel_class in self._classes]
        ways = (self._op_roles, by_module, by_range, self._heads, blocks, by_class)
        found = [next(filter(None, roles), OTHER) for roles in zip(*ways, strict=True)]
        return PartNames(_with_backward(np.array(found, object), self._backward), np.full(len(found), NONE, np.int64))

    @property
    def _backward(self) -> Bools:
        return self._origins.is_backward[self._ops]

    @cached_property
    def _classes(self) -> list[str]:
        kinds, names = texts(self._gathered.gpu["kind"]), texts(self._gathered.gpu["name"])
        known = {name: identify(name).kernel_class for name in set(names[self._gathered.is_kernel].tolist())}
        return [
            known[name] if kind == "kernel" else kind for kind, name in zip(kinds.tolist(), names.tolist(), strict=True)
        ]

    @cached_property
    def _range_nest(self) -> tuple[Nest, Int64s]:
        """Ranges that name parts, as a tree, and the row of each."""
        ranges = self._trace.stored("ranges")
        style = ranges["style"].cast(pl.String).is_in(NESTED_STYLES).to_numpy()
        noise = rows_like(ranges, f"{PROFILER_STEP}|{OF_OP}")
        rows = np.flatnonzero(style & ~noise & ranges["end_ns"].is_not_null().to_numpy())
        lanes, starts, ends = (integers(ranges[name])[rows] for name in ("thread", "start_ns", "end_ns"))
        order = order_for_nesting(lanes, starts, ends)
        return nest(lanes[order], starts[order], ends[order]), rows[order]

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
        rows = np.append(rows, NONE)
        calls, api = integers(self._gathered.gpu["api_id"]), self._trace.stored("api")
        threads, moments = (np.append(integers(api[name]), NONE)[calls] for name in ("thread", "start_ns"))
        own = rows[tree.innermost(threads, moments)]
        source = self._origins.source[self._ops]
        threads, moments = (
            np.append(integers(self._trace.stored("ops")[name]), NONE)[source] for name in ("thread", "start_ns")
        )
        forward = rows[tree.innermost(threads, moments)]
        borrowed = self._backward & (forward != NONE) & (source != self._ops)
        return np.where(borrowed, forward, own), borrowed

    @cached_property
    def _module_names(self) -> Texts:
        return np.append(self._trace.python.module.texts, "")

    @cached_property
    def _modules_above(self) -> Int64s:
        """For each frame, the module's frame that it is or lies in."""
        python = self._trace.stored("python")
        is_module = python["module"].is_not_null().to_numpy()
        return np.append(nearest_marked(integers(python["parent"]), is_module), NONE)

    @cached_property
    def _calling_module(self) -> Int64s:
        """For each frame, the module around its module."""
        parents = np.append(self._trace.python.parent, NONE)
        around: Int64s = self._modules_above[parents[self._modules_above]]
        return around

    @cached_property
    def _module_frames(self) -> Int64s:
        """The module's frame of each operation, or NONE."""
        frames = np.append(self._trace.ops.frame, NONE)
        around: Int64s = self._modules_above[frames[self._origins.source[self._ops]]]
        return around

    @staticmethod
    def _nearest_role(names: Texts, parents: Int64s) -> Texts:
        """The role of each name, else of the nearest around it that has one; one more for none."""
        known = {name: role_of_name(name) for name in set(names.tolist())}
        roles = np.array([known[name] for name in names.tolist()], object)
        nearest = nearest_marked(parents, roles != "") if len(roles) else np.empty(0, np.int64)
        return np.append(np.append(roles, "")[nearest], "")

    @cached_property
    def _op_roles(self) -> list[str]:
        """The role that the op, or the nearest op around it, names."""
        ops = self._trace.ops
        names = ops.name.texts
        known = {name: role_of_op(name) for name in set(names.tolist())}
        roles = np.array([known[name] for name in names.tolist()], object)
        nearest = np.append(nearest_marked(ops.parent, roles != ""), NONE) if len(roles) else np.array([NONE])
        own, forward = (
            np.append(roles, "")[nearest[self._ops]],
            np.append(roles, "")[nearest[self._origins.source[self._ops]]],
        )
        return [str(mine or source) for mine, source in zip(own, forward, strict=True)]

    @cached_property
    def _heads(self) -> list[str]:
        """A matmul whose operands have both sizes of the embedding is the language model's head."""
        ops = self._trace.ops
        embeddings = ops.name.like("^aten::embedding$")
        tables: set[tuple[int, ...]] = {
            sizes[0] for text in ops.shapes.texts[embeddings] if (sizes := recorded_sizes(text)) and len(sizes[0]) == 2
        }
        tables = {sizes for sizes in tables if min(sizes) > 1}
        if not tables:
            return [""] * len(self._ops)
        matmul = np.append(ops.name.like(MATMULS), False)
        shapes = np.append(ops.shapes.texts, "")
        known = {text: self._has_table(text, tables) for text in set(shapes[matmul].tolist())}
        # The forward op counts for its backward: the gradient of the head's weight has the table's sizes as a result.
        is_head = matmul & np.array([known.get(text, False) for text in shapes.tolist()], bool)
        return [
            HEAD if head else "" for head in (is_head[self._ops] | is_head[self._origins.source[self._ops]]).tolist()
        ]

    @staticmethod
    def _has_table(shapes: str, tables: set[tuple[int, ...]]) -> bool:
        return any(sizes in tables or sizes[::-1] in tables for sizes in recorded_sizes(shapes))


def _with_backward(names: Texts, backward: Bools) -> list[str]:
    return [
        f"{name}{BACKWARD}" if back else str(name) for name, back in zip(names.tolist(), backward.tolist(), strict=True)
    ]
