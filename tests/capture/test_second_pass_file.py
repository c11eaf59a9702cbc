"""The file of a second pass, from what torch's observer writes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from warpline.capture.second_pass_file import ACCESSES, flow_of, write_second_pass
from warpline.errors import UnreadableFile
from warpline.sources.second_pass import SCHEMA, read_second_pass

ADD_ = "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
SUM_OUT = "aten::sum.out(Tensor self, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)"


def tensor(number: int, storage: int, elements: int = 6, offset: int = 0) -> list[Any]:
    return [number, storage, offset, elements, 4, "cuda:0"]


def node(number: int, name: str, above: int, inputs: list[Any], outputs: list[Any], **facts: Any) -> dict[str, Any]:
    def side(values: list[Any]) -> dict[str, Any]:
        return {
            "values": values,
            "shapes": [[2, 3] if isinstance(value, list) else [] for value in values],
            "types": ["Tensor(float)" if isinstance(value, list) else "Double" for value in values],
            "strides": [[3, 1] if isinstance(value, list) else [] for value in values],
        }

    attributes = {"rf_id": number, "scope": 0, "tid": 1, "op_schema": "", **facts}
    return {
        "id": number,
        "name": name,
        "ctrl_deps": above,
        "inputs": side(inputs),
        "outputs": side(outputs),
        "attrs": [{"name": key, "type": "", "value": value} for key, value in attributes.items()],
    }


def observed(folder: Path, *nodes: dict[str, Any], end: str = "]}") -> Path:
    file = folder / "trace.observed.json"
    text = ",\n".join(json.dumps(one) for one in nodes)
    file.write_text('{"schema": "1.1.1-chakra.0.0.4", "nodes": [' + text + end)
    return file


STEP = node(2, "warpline step 0", 1, [], [], scope=7)


def accesses(flow: dict[str, Any]) -> list[tuple[int, str]]:
    tensors = flow["tensors"]
    return [(call, ACCESSES[code]) for call, code in zip(tensors["call"], tensors["access"], strict=True)]


def test_accesses_follow_the_schema_and_the_storages(tmp_path: Path) -> None:
    nodes = (
        STEP,
        node(3, "aten::add_", 2, [tensor(10, 20), tensor(11, 21), 1.0], [tensor(10, 20)], op_schema=ADD_),
        node(4, "aten::view", 2, [tensor(10, 20)], [tensor(12, 20)]),
        node(5, "aten::sum", 2, [tensor(10, 20), 0.0, tensor(13, 23)], [tensor(13, 23)], op_schema=SUM_OUT),
        node(6, "aten::copy_", 2, [tensor(14, 24), tensor(10, 20)], [tensor(14, 24)], op_schema=ADD_),
        node(7, "aten::mul", 2, [tensor(10, 20), 2.0], [tensor(15, 25)]),
    )
    assert accesses(flow_of(observed(tmp_path, *nodes))) == [
        (0, "update"), (0, "read"), (0, "update"),
        (1, "read"), (1, "view"),
        (2, "read"), (2, "write"), (2, "write"),
        (3, "write"), (3, "read"), (3, "write"),
        (4, "read"), (4, "make"),
    ]  # fmt: skip


def test_steps_parents_and_lists_of_tensors(tmp_path: Path) -> None:
    several = node(5, "aten::cat", 4, [], [tensor(30, 40)])
    several["inputs"] = {
        "values": [[tensor(10, 20), tensor(11, 21, offset=6)], 0],
        "shapes": [[[2, 3], [2, 3]], []],
        "types": ["GenericList[Tensor(float),Tensor(c10::Half)]", "Int"],
        "strides": [[[3, 1], [1, 4]], []],
    }
    nodes = (
        node(9, "aten::late", 8, [], []),
        STEP,
        node(3, "my annotation", 2, [], [], scope=7),
        node(4, "aten::outer", 3, [], [tensor(30, 40)]),
        several,
        node(8, "warpline step 1", 1, [], [], scope=7),
    )
    flow = flow_of(observed(tmp_path, *nodes))
    calls, tensors = flow["calls"], flow["tensors"]
    assert calls["ops"] == ["aten::outer", "aten::cat", "aten::late"]
    assert calls["step"] == [0, 0, 1]
    assert calls["parent"] == [-1, 0, -1]
    assert tensors["extent"][1:3] == [6, 10]  # (2 - 1) * 1 + (3 - 1) * 4 + 1
    assert [tensors["dtypes"][code] for code in tensors["dtype"]] == ["float", "float", "c10::Half", "float"]
    assert "my annotation" not in json.dumps(flow)


def test_a_damaged_file_is_read_up_to_the_damage(tmp_path: Path) -> None:
    file = observed(tmp_path, STEP, node(3, "aten::relu", 2, [], []), end=',{"id": 4, "na')
    assert flow_of(file)["calls"]["ops"] == ["aten::relu"]


def test_the_file_is_written_read_and_the_rest_removed(tmp_path: Path) -> None:
    observed(tmp_path, STEP, node(3, "aten::relu", 2, [tensor(1, 2)], [tensor(3, 4)]))
    (tmp_path / "trace.stacks.lines.json").write_text(json.dumps({"start_ns": [5], "line": [7]}))
    part: dict[str, Any] = {"file": "trace.json.gz", "look": {"state": "done", "file": None, "notes": []}}
    write_second_pass(tmp_path, part)
    assert part["look"]["file"] == "trace.look.json.gz"
    assert [file.name for file in tmp_path.iterdir()] == ["trace.look.json.gz"]
    look = read_second_pass(tmp_path / "trace.look.json.gz")
    assert look.lines.rows() == [(5, 7)]
    assert look.dataflow.select("op", "direction", "access", "storage", "shape").rows() == [
        ("aten::relu", "in", "read", 2, "[2,3]"),
        ("aten::relu", "out", "make", 4, "[2,3]"),
    ]


def write_lines(file: Path, line: Any) -> None:
    content = {"schema": SCHEMA, "lines": {"start_ns": [1, 2], "line": line}}
    file.write_bytes(gzip.compress(json.dumps(content).encode()))


def test_lines_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "trace.look.json.gz"
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    for line in (
        {"a": 1},
        [[7, 8], [9]],
        ["seven", "eight"],
        [7],
        [7, deep],
        [7, 8.5],
        [7, True],
        [7, 1 << 31],
        [7, 1 << 99],
    ):
        write_lines(file, line)
        with pytest.raises(UnreadableFile, match="bad-look"):
            read_second_pass(file)
    write_lines(file, [None, 8])
    assert read_second_pass(file).lines.rows() == [(2, 8)]


def test_a_file_that_makes_no_sense_becomes_a_note(tmp_path: Path) -> None:
    (tmp_path / "trace.observed.json").write_text("nothing")
    part: dict[str, Any] = {"file": "trace.json", "look": {"state": "done", "file": None, "notes": []}}
    write_second_pass(tmp_path, part)
    assert part["look"]["file"] is None
    assert part["look"]["notes"][0].startswith("ValueError")
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_finished_is_not_used(tmp_path: Path) -> None:
    observed(tmp_path, STEP)
    part: dict[str, Any] = {"file": "trace.json", "look": {"state": "looking", "file": None, "notes": []}}
    write_second_pass(tmp_path, part)
    assert part["look"]["file"] is None
    assert list(tmp_path.iterdir()) == []


def test_no_value_of_an_argument_is_kept(tmp_path: Path) -> None:
    secret = node(3, "aten::mul", 2, [tensor(1, 2), 4711.25, "hush"], [tensor(3, 4)])
    observed(tmp_path, STEP, secret)
    part: dict[str, Any] = {"file": "trace.json", "look": {"state": "done", "file": None, "notes": []}}
    write_second_pass(tmp_path, part)
    text = gzip.decompress((tmp_path / "trace.look.json.gz").read_bytes()).decode()
    assert "4711" not in text and "hush" not in text
