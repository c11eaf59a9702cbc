"""An execution trace beside a torch.profiler trace of the same process adds true tensor dependencies."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from kineto_files import PROCESS, launched, op, write

from warpline.analyses.user_frames import second_pass_health
from warpline.cli.main import run
from warpline.trace.dataflow import DataflowGraph
from warpline.trace.open import open_trace, profiles_in

ADD_ = "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
Node = dict[str, Any]


def tensor(number: int, storage: int) -> list[Any]:
    return [number, storage, 0, 6, 4, "cuda:0"]


def node(number: int, name: str, inputs: list[Any], outputs: list[Any], schema: str = "", scope: int = 0) -> Node:
    """A node of today's form, directly below the root."""

    def side(values: list[Any]) -> Node:
        return {"values": values, "shapes": [[2, 3]] * len(values), "types": ["Tensor(float)"] * len(values)}

    facts = {"rf_id": number, "scope": scope, "tid": 1, "op_schema": schema}
    attributes = [{"name": key, "type": "", "value": value} for key, value in facts.items()]
    sides = {"inputs": side(inputs), "outputs": side(outputs)}
    return {"id": number, "name": name, "ctrl_deps": 1, "attrs": attributes, **sides}


def older(modern: Node) -> Node:
    """The same in the form of version 1.0.1."""
    sides = {
        key: value
        for side in ("input", "output")
        for key, value in {
            f"{side}s": modern[f"{side}s"]["values"],
            f"{side}_shapes": modern[f"{side}s"]["shapes"],
            f"{side}_types": modern[f"{side}s"]["types"],
        }.items()
    }
    facts = {each["name"]: each["value"] for each in modern["attrs"]}
    return {"id": modern["id"], "name": modern["name"], "parent": modern["ctrl_deps"], **facts, **sides}


NODES = [
    node(2, "[pytorch|profiler|execution_trace|thread]", [], [], scope=7),
    node(3, "aten::mm", [tensor(10, 20), tensor(11, 21)], [tensor(12, 22)]),
    node(4, "aten::relu", [tensor(12, 22)], [tensor(13, 23)]),
    node(5, "aten::add_", [tensor(12, 22), tensor(11, 21)], [tensor(12, 22)], ADD_),
    node(6, "aten::sum", [tensor(12, 22)], [tensor(14, 24)]),
]
"""mm makes a tensor; relu reads it; add_ updates it; sum reads what add_ wrote, and not what relu made."""


def observed(nodes: list[Node], process: int = PROCESS) -> bytes:
    return json.dumps({"schema": "1.1.0-chakra.0.0.4", "pid": process, "nodes": nodes}).encode()


def recorded(folder: Path) -> Path:
    names = [str(one["name"]) for one in NODES[1:]]
    ops = [op(name, 100.0 * at, 50) for at, name in enumerate(names)]
    work = [launched(name, 100.0 * at + 5, 100.0 * at + 20, 10, at + 1) for at, name in enumerate(names)]
    return write(folder, ops + [event for pair in work for event in pair])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("trace_et.json", observed(NODES)),
        ("dlrm_eg_0.json.gz", gzip.compress(observed(NODES))),
        ("execution_trace.json", observed([older(one) for one in NODES])),
    ],
    ids=["today", "packed", "older"],
)
def test_tensor_dependencies_are_those_of_the_file(name: str, content: bytes, tmp_path: Path) -> None:
    trace_file = recorded(tmp_path)
    (tmp_path / name).write_bytes(content)
    trace = open_trace(trace_file, cache=False)
    graph = DataflowGraph.of(trace)
    assert graph is not None
    assert graph.calls_of(trace).tolist() == [0, 1, 2, 3]
    assert graph.edges.tolist() == [[0, 1], [0, 2], [2, 3]]
    (entry,) = second_pass_health(trace)
    assert (entry.code, entry.severity) == ("execution-trace", "info")
    assert profiles_in(tmp_path) == [trace_file]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("trace_et.json", observed(NODES, process=PROCESS + 1)),  # of another process
        ("network.json", observed(NODES)),  # its name does not say what it is
        ("trace_et.json", b'{"traceEvents": []}'),
        ("trace_et.json", b""),
    ],
    ids=["process", "name", "kind", "empty"],
)
def test_another_file_is_no_companion(name: str, content: bytes, tmp_path: Path) -> None:
    trace_file = recorded(tmp_path)
    (tmp_path / name).write_bytes(content)
    trace = open_trace(trace_file, cache=False)
    assert trace.companions is None
    assert not len(trace.dataflow)


def test_a_damaged_file_is_a_warning(tmp_path: Path) -> None:
    trace_file = recorded(tmp_path)
    damaged = [{**NODES[1], "inputs": {"values": 7}}, *NODES[2:]]
    (tmp_path / "trace_et.json").write_bytes(observed(damaged))
    trace = open_trace(trace_file, cache=False)
    assert not len(trace.dataflow)
    (entry,) = second_pass_health(trace)
    assert entry.code == "second-look-damaged"
    assert "tensor dependencies" in entry.message


def test_a_file_that_is_cut_short_is_read_up_to_there(tmp_path: Path) -> None:
    trace_file = recorded(tmp_path)
    whole = observed(NODES)
    (tmp_path / "trace_et.json").write_bytes(whole[: whole.rindex(b'"aten::sum"')])
    graph = DataflowGraph.of(open_trace(trace_file, cache=False))
    assert graph is not None
    assert graph.edges.tolist() == [[0, 1], [0, 2]]


def test_ranges_that_are_steps_of_the_trace_are_steps_of_the_file(tmp_path: Path) -> None:
    nodes = []
    for step in range(2):
        nodes.append(node(10 * step + 3, f"ProfilerStep#{step}", [], [], scope=7))
        nodes += [{**one, "id": 10 * step + int(one["id"]) + 3} for one in NODES[1:]]
    trace_file = recorded(tmp_path)
    (tmp_path / "trace_et.json").write_bytes(observed([NODES[0], *nodes]))
    graph = DataflowGraph.of(open_trace(trace_file, cache=False))
    assert graph is not None
    assert graph.calls.step.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_alone_it_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "et.json"
    path.write_bytes(observed(NODES))
    assert run(["diagnose", str(path)]) == 1
    assert "beside a torch.profiler trace" in capsys.readouterr().err
