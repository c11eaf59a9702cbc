"""Casts from one type to another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import Bools
from warpline.work.parse import recorded_types

HALF_OPS = {"c10::Half", "c10::BFloat16"}
FLOATING = {"float", "double", *HALF_OPS}
"""Floating-point types, among which a program chooses. Casts of images, masks and labels from integer types are needed,
and the device is the right place for them."""


def casts(labelled: LabelledGraph) -> Bools:
    """Kernels that cast a tensor to another floating-point type: by the recorded types of `copy_`, else by the
    enclosing `_to_copy`."""
    copying = labelled.op_name.equal("aten::copy_") & labelled.is_kernel
    by_type = _copies(labelled, lambda target, source: target != source and {target, source} <= FLOATING)
    has_types = labelled.op_dtypes.where(bool)
    return copying & np.where(has_types, by_type, labelled.under_op("aten::_to_copy"))


def plain_copies(labelled: LabelledGraph) -> Bools:
    """Copies that neither convert nor compute: `copy_` between tensors of one type, and copies on the device."""
    same = _copies(labelled, lambda target, source: target == source)
    moved = labelled.is_copy & labelled.copy_kind.equal("DtoD")
    return same | (moved & labelled.op_name.equal("aten::copy_"))


def keeps_type(labelled: LabelledGraph) -> Bools:
    """Copies by `to` without a change of type, such as into another layout."""
    return labelled.under_op("aten::_to_copy") & _copies(labelled, lambda target, source: target == source)


def _copies(labelled: LabelledGraph, test: Callable[[str, str], bool]) -> Bools:
    """GPU activity of `copy_` whose recorded target and source types pass the test."""
    passes = labelled.op_dtypes.where(lambda dtypes: _passes(dtypes, test))
    return passes & labelled.op_name.equal("aten::copy_")


def _passes(dtypes: str, test: Callable[[str, str], bool]) -> bool:
    types = recorded_types(dtypes)
    return len(types) >= 2 and bool(types[0] and types[1]) and test(types[0], types[1])
