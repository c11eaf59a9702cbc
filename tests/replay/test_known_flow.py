"""What the recorded data flow says about GPU operations."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from data_flows import Flow

from warpline.replay.compiler.chains import _along_tensors
from warpline.replay.known_flow import KnownFlow
from warpline.replay.labelled_graph import LabelledGraph
from warpline.replay.patterns.growth import shapes_change
from warpline.trace.dataflow import DataflowGraph
from warpline.trace.schema import Dataflow


def known(flow: Flow, ops: list[int]) -> KnownFlow:
    """Nodes launched by these calls; NONE for a node without one."""
    return KnownFlow(DataflowGraph(Dataflow(flow.table())), np.arange(flow.calls), np.array(ops))


def two_chains() -> Flow:
    flow = Flow()
    for left, right in ((1, 2), (11, 12), (21, 22)):
        flow.call("aten::mul", read=[left], make=[left + 10])
        flow.call("aten::mul", read=[right], make=[right + 10])
    return flow


def test_chains_that_alternate_are_fused_apart() -> None:
    labelled: Any = SimpleNamespace(dataflow=known(two_chains(), [0, 1, 2, 3, 4, 5]))
    nodes, begins = _along_tensors(labelled, np.arange(6), np.array([True, False, False, False, False, False]))
    assert nodes.tolist() == [0, 2, 4, 1, 3, 5]
    assert begins.tolist() == [True, False, False, True, False, False]


def test_without_data_flow_and_with_an_unknown_op_chains_stay() -> None:
    begins = np.array([True, False, False])
    for dataflow in (None, known(two_chains(), [0, -1, 2])):
        labelled: Any = SimpleNamespace(dataflow=dataflow)
        nodes, still = _along_tensors(labelled, np.arange(3), begins)
        assert nodes.tolist() == [0, 1, 2]
        assert still.tolist() == begins.tolist()


def test_each_chain_is_split_by_itself() -> None:
    labelled: Any = SimpleNamespace(dataflow=known(two_chains(), [0, 1, 2, 3, 4, 5]))
    nodes, begins = _along_tensors(labelled, np.arange(6), np.array([True, False, False, True, False, False]))
    assert nodes.tolist() == [0, 2, 1, 3, 5, 4]
    assert begins.tolist() == [True, False, True, True, False, True]


def test_iterations_by_their_nodes() -> None:
    flow = known(two_chains(), [0, 1, 2, 3, 4, 5])
    assert flow.are_independent(np.array([[0, 2, 4], [1, 3, 5]])) is True
    assert flow.are_independent(np.array([[0, 1], [2, 3]])) is False


def test_a_later_step_is_as_unread_as_the_first() -> None:
    flow = Flow()
    for step in (0, 1):
        flow.call("aten::clone", step=step, read=[1], make=[2])
        flow.call("aten::mul", step=step, read=[1], make=[2])
    found = known(flow, [0, 1, 2, 3])
    assert found.never_read.tolist() == [True, True, True, True]
    assert found.shapes_change is False


@pytest.mark.parametrize(("flow", "changes"), [(None, False), (False, False), (True, True)])
def test_shapes_change_only_where_that_was_recorded(flow: bool | None, changes: bool) -> None:
    assert shapes_change(cast(LabelledGraph, SimpleNamespace(dataflow=SimpleNamespace(shapes_change=flow)))) is changes
    assert shapes_change(cast(LabelledGraph, SimpleNamespace(dataflow=None))) is False
