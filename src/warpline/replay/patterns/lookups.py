"""Work that only told the CPU a number: it goes with the wait for that number."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from warpline.replay.patterns.host_spans import take_out
from warpline.replay.scene import Scene
from warpline.replay.workbench import NOTHING, Workbench
from warpline.trace.columns import NONE, Bools, Int64s, integers

CONDITIONS = (
    "aten::all",
    "aten::any",
    "aten::eq",
    "aten::ne",
    "aten::lt",
    "aten::le",
    "aten::gt",
    "aten::ge",
    "aten::isclose",
    "aten::isin",
    "aten::logical_and",
    "aten::logical_not",
    "aten::logical_or",
    "aten::logical_xor",
    "aten::bitwise_and",
    "aten::bitwise_not",
    "aten::bitwise_or",
    "aten::bitwise_xor",
)
"""Ops that find out whether something is so. One byte read after them is a flag that nothing else looks at: what makes
it goes with the wait in seven of eight recorded programs, and in five of these all that led to it."""
CHECKS = ("aten::isnan", "aten::isinf", "aten::isfinite")
"""Ops that look for an accident. Who looks wants to know: the flags stay, and are read later."""
BOUNDS = ("aten::max", "aten::min", "aten::amax", "aten::amin", "aten::aminmax")
"""Of whole numbers, what the CPU wants to know for a size: gone with the wait in six of six recorded programs. Sums,
counts and picks (argmax) are results, and so are numbers that are not whole: they stay, in nine of nine."""
NUMBER_BYTES = 8
INTEGERS = re.compile(r"<(?:unsigned |signed )?(?:long|int)\b")
"""In a kernel's name: it works on whole numbers."""
DIMENSION = re.compile(r"\d")
"""In the recorded shapes of an op: one of its tensors has dimensions."""


def looked_up(scene: Scene, reads: Int64s) -> Int64s:
    """The work that found the numbers that these copies bring to the CPU, where nothing else can want them."""
    numbers = reads[scene.bytes[reads] <= NUMBER_BYTES]
    if not len(numbers):
        return NOTHING
    flags, bounds, scalars = scene.under_op(*CONDITIONS), scene.once(_bounds), scene.once(_arithmetic)
    checks = scene.under_op(*CHECKS)
    order = scene.work[np.argsort(scene.launch_moment[scene.work], kind="stable")]
    place = np.zeros(len(scene.graph), np.int64)
    place[order] = np.arange(len(order))
    thread = np.append(scene.graph.lane, NONE)[scene.call_of_work]
    found: list[int] = []
    for read in numbers.tolist():
        op, mine = NONE, list[int]()
        for at in range(int(place[read]) - 1, -1, -1):
            work = int(order[at])
            if scene.step[work] != scene.step[read] or thread[work] != thread[read]:
                break
            if checks[work]:
                mine.clear()
                break
            # One reduction leads to a number; arithmetic on it, and conditions, may follow each other.
            bound = bounds[work] and op in (NONE, scene.op[work])
            if not (flags[work] if scene.bytes[read] == 1 else bound or scalars[work]):
                break
            op = int(scene.op[work]) if bound else op
            mine.append(work)
        found += mine
    return np.unique(np.array(found, np.int64))


def _bounds(scene: Scene) -> Bools:
    """Reductions of whole numbers to their largest or smallest, with what belongs to the same ops."""
    mine = scene.under_op(*BOUNDS)
    kernels = np.flatnonzero(mine & (scene.kind == "kernel"))
    whole = [INTEGERS.search(name) is not None for name in scene.name[kernels].tolist()]
    result: Bools = mine & np.isin(scene.op, scene.op[kernels[whole]])
    return result


def _arithmetic(scene: Scene) -> Bools:
    """Elementwise kernels of one block on whole numbers, of ops none of whose tensors is known to have dimensions."""
    blocks = [scene.work_number(f"grid_{axis}") for axis in "xyz"]
    mine = np.flatnonzero(scene.kernels("elementwise") & (blocks[0] * blocks[1] * blocks[2] == 1))
    shapes = scene.op_column("shapes")
    result = np.zeros(len(scene.graph), bool)
    result[mine] = [
        INTEGERS.search(name) is not None and not DIMENSION.search(shape or "")
        for name, shape in zip(scene.name[mine].tolist(), shapes[mine].tolist(), strict=True)
    ]
    return result


def take_out_inner_ops(bench: Workbench, removed: Int64s) -> None:
    """Takes out the CPU time of ops within others that stay, where all the work that they launched is gone."""
    scene = bench.scene
    parents = np.append(integers(scene.trace.ops["parent"]), NONE)
    launched, left = (np.zeros(len(parents), np.int64) for _ in range(2))
    for count, works in ((launched, scene.work), (left, scene.work[~bench.gone[scene.work]])):
        for level in _levels(scene.op[works], parents):
            np.add.at(count, level, 1)
    empty = (launched > 0) & (left == 0)
    around = np.zeros(len(parents), bool)
    for level in _levels(scene.op[removed], parents):
        around[level] = True
    # Outermost ops went with their work.
    inner = np.flatnonzero(around & empty & (parents != NONE) & ~empty[parents])
    if len(inner):
        take_out(bench, *(values[inner] for values in scene.op_spans))


def _levels(ops: Int64s, parents: Int64s) -> Iterator[Int64s]:
    """These ops, the ops around them, and so on."""
    while len(ops := ops[ops != NONE]):
        yield ops
        ops = parents[ops]
