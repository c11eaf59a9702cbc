"""What a scrubbed trace holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kineto_files import annotation, kernel, launched, op, write

from warpline.errors import WarplineError
from warpline.scrub.file import check, scrub
from warpline.scrub.tally import ScrubChange
from warpline.sources.kineto.stream import scan_file
from warpline.sources.kineto.tables import tables


def scrubbed(path: Path, keep: tuple[str, ...] = ()) -> dict[str, Any]:
    output = path.with_name("out.json")
    scrub(path, output, keep=keep, force=True)
    document: dict[str, Any] = json.loads(output.read_text())
    return document


def test_what_an_analysis_needs_stays_as_it_is(tmp_path: Path) -> None:
    shapes = {"Input Dims": [[2, 3], []], "Input type": ["c10::BFloat16", "Scalar"], "Concrete Inputs": ["", "1e-05"]}
    events = [
        op("aten::mm", 0, 100, external=1, **shapes),
        *launched("gemm", 10, 20, 10, 1, grid=[2, 3, 1], block=[128, 1, 1]),
        annotation("ProfilerStep#3", 0, 100),
    ]
    header = {"record_shapes": 1, "distributedInfo": {"rank": 3, "world_size": 8, "backend": "nccl"}}
    path = write(tmp_path, events, **header)
    before, after = json.loads(path.read_text()), scrubbed(path)
    assert after["traceEvents"] == before["traceEvents"]
    assert {key: after[key] for key in header} == header
    assert after["deviceProperties"] == [{"id": 0, "numSms": 132, "name": "GPU"}]


def test_times_keep_every_digit(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(
        '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, '
        '"ts": 1712345678901234.567, "dur": 0.070, "args": {}}]}'
    )
    output = tmp_path / "out.json"
    scrub(path, output)
    assert b'"ts":1712345678901234.567,"dur":0.070' in output.read_bytes()


def test_a_bare_list_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([op("aten::mm", 0, 1), op("aten::mm", 1, 1)]))
    output = tmp_path / "out.json"
    scrub(path, output)
    assert [event["ts"] for event in json.loads(output.read_text())] == [0, 1]


def test_a_trace_that_is_cut_short_stays_so(tmp_path: Path) -> None:
    path = write(tmp_path, [op("aten::mm", number, 1) for number in range(9)])
    text = path.read_text()
    path.write_text(text[: text.rindex('"ts"')])
    output = tmp_path / "out.json"
    scrub(path, output)
    written = output.read_text()
    assert written.count("aten::mm") == 8
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(written)


def test_an_event_that_cannot_be_read_is_replaced_by_a_note_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path, [op("aten::mm", 0, 1), op("aten::odd", 1, 1), op("aten::mm", 2, 1)])
    path.write_text(path.read_text().replace('"aten::odd"', '"aten::"odd"'))
    output = tmp_path / "out.json"
    result = scrub(path, output)
    assert [event.get("ts") for event in json.loads(output.read_text())["traceEvents"]] == [0, None, 2]
    assert ScrubChange("dropped", "traceEvents[]", 1) in result.changes
    assert health(path) == health(output) == ["malformed-events"]
    assert check(output).clean


def test_a_damaged_header_is_still_one_to_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"schemaVersion": 1,, "distributedInfo": {"rank": nope}, "traceEvents": [' + op_text(0) + "]}")
    output = tmp_path / "out.json"
    scrub(path, output)
    json.loads(output.read_text())
    assert health(path) == health(output) == ["damaged-file"]
    assert check(output).clean


def op_text(at: int) -> str:
    return json.dumps(op("aten::mm", at, 1))


def health(path: Path) -> list[str]:
    return [entry.code for entry in tables(scan_file(path)).health]


@pytest.mark.parametrize(
    "time", ["1e30", "-9223372036854775808", "18446744073709551616", '"31m"', '""', "null", "false"]
)
def test_a_time_that_is_none_to_a_reader_stays_none(time: str, tmp_path: Path) -> None:
    assert written_time(time, tmp_path) is None


@pytest.mark.parametrize(
    ("time", "written"),
    [("5.25", 5.25), ('"7"', "7"), ('".5"', 0.5), ('"-1.2345"', "-1.2345"), ("4294967296000000", 4200000000000001)],
)
def test_a_time_that_a_reader_takes_stays_one(time: str, written: object, tmp_path: Path) -> None:
    assert written_time(time, tmp_path) == written


def written_time(time: str, folder: Path) -> object:
    path = folder / "trace.json"
    path.write_text(f'{{"traceEvents": [{{"ph": "X", "name": "a", "ts": {time}}}]}}')
    scrub(path, folder / "out.json")
    return json.loads((folder / "out.json").read_text())["traceEvents"][0].get("ts")


def test_odd_phases_and_processes_mean_the_same_to_a_reader(tmp_path: Path) -> None:
    events = [op("aten::mm", 0, 1), op("aten::mm", 1, 1), op("aten::mm", 2, 1)]
    events[0]["ph"] = "Xyz"
    events[1]["pid"], events[2]["pid"] = True, [1.5]
    after = scrubbed(write(tmp_path, events))["traceEvents"]
    assert [event["ph"] for event in after] == ["X", "X", "X"]
    assert len({json.dumps(event["pid"]) for event in after}) == 3
    assert not any(part in json.dumps(after) for part in ("yz", "true", "1.5"))


def test_arguments_nested_too_deep_for_a_parser_are_dropped(tmp_path: Path) -> None:
    path = write(tmp_path, [op("aten::mm", 0, 1, deep=0), op("aten::mm", 1, 1)])
    path.write_text(path.read_text().replace('"deep": 0', '"deep": ' + '{"a":' * 5000 + "1" + "}" * 5000))
    output = tmp_path / "out.json"
    scrub(path, output)
    assert [event["ts"] for event in json.loads(output.read_text())["traceEvents"]] == [0, 1]


def test_changes_are_counted_by_place_and_never_show_a_value(tmp_path: Path) -> None:
    events = [kernel("gemm", 1, 1, 9, version="hunter2", **{"hf_Zz9Yy8": 1}), annotation("operation nightfall", 1, 1)]
    result = scrub(write(tmp_path, events, metadata={"env": {}}), tmp_path / "out.json")
    assert set(result.changes) == {
        ScrubChange("dropped", "metadata", 1),
        ScrubChange("dropped", "traceEvents[].args.version", 1),
        ScrubChange("dropped", "traceEvents[].args.(other)", 1),
        ScrubChange("pseudonymised", "deviceProperties.name", 1),
        ScrubChange("pseudonymised", "traceEvents[].name", 1),
    }


def test_a_field_can_be_kept(tmp_path: Path) -> None:
    path = write(
        tmp_path, [kernel("gemm", 1, 1, 9, note={"a": ["blackbriar"]}), annotation("nightfall", 1, 1)], team="x"
    )
    after = scrubbed(path, ("traceEvents[].args.note", "team", "names"))
    assert after["traceEvents"][0]["args"]["note"] == {"a": ["blackbriar"]}
    assert after["traceEvents"][1]["name"] == "nightfall"
    assert after["team"] == "x"


def test_a_field_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    path = write(tmp_path, [op("aten::mm", 0, 1)])
    with pytest.raises(WarplineError, match="no-such-field"):
        scrub(path, tmp_path / "out.json", keep=("traceEvents[].args.shoes",))
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace.json"]


def test_ids_that_are_too_large_keep_what_they_join(tmp_path: Path) -> None:
    large = 140_000_000_000_123
    events = [op("aten::mm", 0, 1, thread=large), op("aten::mm", 1, 1, thread=7), op("aten::mm", 2, 1, thread=large)]
    first, second, third = (event["tid"] for event in scrubbed(write(tmp_path, events))["traceEvents"])
    assert first == third != large
    assert second == 7


@pytest.mark.parametrize(
    ("ranks", "written"),
    [
        ("[0, 1, 2, 3]", "[0, 1, 2, 3]"),
        ("[0, 1, ..., 31]", "[0, 1, ..., 31]"),
        ("[]", "[]"),
        ("[4417 1234 5678 9113]", None),
        ("[10.44.17.203]", None),
    ],
)
def test_ranks_are_numbers_with_commas_between(ranks: str, written: str | None, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "args": {"Process Group Ranks": ranks}}
    path.write_text(json.dumps({"schemaVersion": 1, "cuda_runtime_version": "10.44.17.203", "traceEvents": [event]}))
    scrub(path, tmp_path / "out.json")
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["traceEvents"][0]["args"].get("Process Group Ranks") == written
    assert "cuda_runtime_version" not in found
