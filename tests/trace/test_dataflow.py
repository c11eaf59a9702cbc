"""Who made the tensor that who reads, on tables written by hand."""

from __future__ import annotations

import numpy as np
from data_flows import Flow

from warpline.trace.dataflow import DataflowGraph, ShapeChange
from warpline.trace.schema import Dataflow


def flow_of(flow: Flow) -> DataflowGraph:
    return DataflowGraph(Dataflow(flow.table()))


def test_a_read_depends_on_the_last_write() -> None:
    flow = Flow()
    made = flow.call("aten::randn", make=[1])
    added = flow.call("aten::add_", update=[1])
    read = flow.call("aten::relu", read=[1], make=[2])
    known = flow_of(flow)
    assert known.edges.tolist() == [[made, added], [added, read]]
    assert known.producers_of(read) == [added]
    assert known.readers_of(made) == [added]


def test_an_address_that_is_made_again_is_another_tensor() -> None:
    flow = Flow()
    flow.call("aten::mul", make=[1])
    second = flow.call("aten::add", make=[1])
    read = flow.call("aten::relu", read=[1])
    assert flow_of(flow).edges.tolist() == [[second, read]]


def test_a_view_is_read_through_its_storage_and_parts_apart_are_not() -> None:
    flow = Flow()
    left = flow.call("aten::copy_", write=[(1, 0, 4)])
    right = flow.call("aten::copy_", write=[(1, 4, 4)])
    one = flow.call("aten::relu", read=[(1, 4, 4)])
    both = flow.call("aten::sum", read=[(1, 0, 8)])
    assert flow_of(flow).edges.tolist() == [[left, both], [right, one], [right, both]]


def test_an_op_within_writes_what_the_op_around_it_writes() -> None:
    flow = Flow()
    outer = flow.call("aten::sum", read=[1], make=[2])
    inner = flow.call("aten::fill_", parent=outer, write=[2])
    read = flow.call("aten::item", read=[2])
    # The outer op may have written after the inner one.
    assert flow_of(flow).edges.tolist() == [[outer, read], [inner, read]]


def test_iterations_are_independent_unless_one_reads_what_another_wrote() -> None:
    flow = Flow()
    flow.call("aten::randn", make=[(1, 0, 32)])
    samples = [
        np.array(
            [flow.call("aten::mm", read=[(1, 8 * at, 8)], make=[10 + at]), flow.call("aten::relu", read=[10 + at])]
        )
        for at in range(4)
    ]
    state = [np.array([flow.call("aten::mm", read=[19 + at, (1, 8 * at, 8)], make=[20 + at])]) for at in range(4)]
    known = flow_of(flow)
    adding = np.zeros(flow.calls, bool)
    assert known.are_independent(samples, adding) is True
    assert known.are_independent(state, adding) is False
    adding[np.concatenate(state)] = True
    assert known.are_independent(state, adding) is True
    assert known.are_independent([*samples, np.array([-1])], adding) is None


def test_layers_that_add_to_what_they_read_depend_on_each_other() -> None:
    """h = h + f(h, weight): the sum of each layer is what the next one computes with."""
    flow, layers, sums = Flow(), [], []
    flow.call("aten::randn", make=[(1, 0, 32)])
    flow.call("aten::randn", make=[50])
    for at in range(4):
        product = flow.call("aten::mm", read=[50 + at, (1, 8 * at, 8)], make=[60 + at])
        total = flow.call("aten::add", read=[50 + at, 60 + at], make=[51 + at])
        layers.append(np.array([product, total]))
        sums.append(total)
    adding = np.zeros(flow.calls, bool)
    adding[sums] = True
    assert flow_of(flow).are_independent(layers, adding) is False


def test_the_same_work_again_is_no_loop_over_parts() -> None:
    flow = Flow()
    flow.call("aten::randn", make=[1])
    again = [np.array([flow.call("aten::relu", read=[1], make=[10 + at])]) for at in range(4)]
    assert flow_of(flow).are_independent(again, np.zeros(flow.calls, bool)) is None


def test_ops_hang_together_through_tensors_however_they_alternate() -> None:
    flow = Flow()
    calls = [
        flow.call("aten::mul", read=[1], make=[10]),
        flow.call("aten::mul", read=[2], make=[20]),
        flow.call("aten::relu", read=[10], make=[11]),
        flow.call("aten::relu", read=[20], make=[21]),
        flow.call("aten::exp", read=[1], make=[12]),
    ]
    assert flow_of(flow).connected(np.array(calls)).tolist() == [0, 1, 0, 1, 0]


def test_a_number_does_not_tie_ops_together() -> None:
    flow = Flow()
    calls = [flow.call("aten::mul", read=[at, (9, 0, 1)], make=[10 + at]) for at in (1, 2)]
    assert flow_of(flow).connected(np.array(calls)).tolist() == [0, 1]


def test_what_is_gone_or_overwritten_unread_is_never_read() -> None:
    flow = Flow()
    gone = flow.call("aten::clone", read=[1], make=[2])
    flow.call("aten::mul", read=[1], make=[2])
    kept = flow.call("aten::clone", read=[1], make=[3])
    overwritten = flow.call("aten::copy_", read=[1], write=[4])
    last = flow.call("aten::copy_", read=[1], write=[4])
    read = flow.call("aten::clone", read=[1], make=[5])
    flow.call("aten::sum", read=[5], make=[5])
    found = flow_of(flow).never_read
    # What is still there at the end may be read later.
    assert {call: bool(found[call]) for call in (gone, kept, overwritten, last, read)} == {
        gone: True, kept: False, overwritten: True, last: False, read: False,
    }  # fmt: skip


def test_what_is_on_the_cpu_may_be_read_unseen() -> None:
    flow = Flow(device="cpu")
    gone = flow.call("aten::clone", read=[1], make=[2])
    flow.call("aten::mul", read=[1], make=[2])
    assert not flow_of(flow).never_read[gone]


def test_a_copy_is_needed_if_it_or_its_original_is_written_to() -> None:
    flow = Flow()
    idle = flow.call("aten::clone", read=[1], make=[2])
    flow.call("aten::relu", read=[2], make=[3])
    changed = flow.call("aten::clone", read=[4], make=[5])
    flow.call("aten::add_", update=[5])
    saved = flow.call("aten::clone", read=[6], make=[7])
    flow.call("aten::add_", update=[6])
    flow.call("aten::relu", read=[7])
    needed = flow_of(flow).copies_needed
    assert [bool(needed[call]) for call in (idle, changed, saved)] == [False, True, True]


def test_what_grows_from_step_to_step() -> None:
    flow = Flow()
    for step, shape in enumerate(("[1,8]", "[2,8]")):
        flow.call("aten::mul", step=step, read=[1], make=[2])
        flow.call("aten::cat", step=step, shape=shape, read=[3, 2], make=[3])
    assert flow_of(flow).growing == [ShapeChange(1, "aten::cat", "[1,8]", "[2,8]")]
    assert flow_of(flow).same_in_first_step.tolist() == [0, 1, 0, 1]
