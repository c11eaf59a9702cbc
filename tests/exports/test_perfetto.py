"""Perfetto files hold exactly our bars and arrows: decoded by Perfetto's own message definitions, and as JSON."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from answers import diagnosed
from kineto_files import launched, op, write
from paths import DATA, DEMO
from timeline_bars import Arrow, Bar, our_arrows, our_bars

from warpline.cli.main import run
from warpline.exports import protobuf
from warpline.exports.chrome import chrome_json, microseconds
from warpline.exports.pftrace import pftrace
from warpline.exports.timeline import ViewerTimeline, viewer_timeline
from warpline.findings.diagnosis import diagnose
from warpline.trace.open import open_trace

NSYS = DATA / "nsys" / "graph_node.sqlite.gz"
SMALL = DATA / "kineto" / "streams.json.gz"


@pytest.fixture(scope="module", params=[DEMO, NSYS], ids=["kineto", "nsys"])
def shown(request: pytest.FixtureRequest) -> ViewerTimeline:
    return viewer_timeline(diagnosed(request.param))


def decoded(
    content: bytes,
) -> tuple[Counter[Bar], Counter[Arrow], dict[tuple[str, int], dict[str, Any]]]:
    """Bars, arrows and details as a reader of Perfetto's messages sees them: packets in order of time, each track a
    stack."""
    messages = pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="needs `pip install perfetto protobuf`"
    )
    outer = messages.Trace()
    outer.ParseFromString(content)
    trace = messages.Trace()
    for packet in outer.packet:
        trace.MergeFromString(zlib.decompress(packet.compressed_packets))
    names: dict[int, str] = {}
    keys: dict[int, str] = {}
    texts: dict[int, str] = {}
    tracks: dict[int, Any] = {}
    events = []
    for packet in trace.packet:
        names |= {entry.iid: entry.name for entry in packet.interned_data.event_names}
        keys |= {entry.iid: entry.name for entry in packet.interned_data.debug_annotation_names}
        texts |= {entry.iid: entry.str.decode() for entry in packet.interned_data.debug_annotation_string_values}
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            events.append((packet.timestamp, packet.track_event))
    events.sort(key=lambda event: event[0])
    open_bars: dict[int, list[tuple[str, int]]] = {}
    bars: Counter[Bar] = Counter()
    leaving: dict[int, tuple[str, int]] = {}
    arrows: Counter[Arrow] = Counter()
    arriving: list[tuple[int, tuple[str, int]]] = []
    details: dict[tuple[str, int], dict[str, Any]] = {}
    for time, event in events:
        stack = open_bars.setdefault(event.track_uuid, [])
        if event.type == messages.TrackEvent.TYPE_SLICE_BEGIN:
            bar = names[event.name_iid], time
            stack.append(bar)
            leaving |= dict.fromkeys(event.flow_ids, bar)
            arriving += [(flow, bar) for flow in event.terminating_flow_ids]
            details[bar] = {
                keys[one.name_iid]: texts[one.string_value_iid] if one.HasField("string_value_iid") else one.int_value
                for one in event.debug_annotations
            }
        else:
            name, begin = stack.pop()
            track = tracks[event.track_uuid]
            bars[tracks[track.parent_uuid].name, track.name, name, begin, time] += 1
    assert not any(open_bars.values()), "a bar was never closed"
    for flow, target in arriving:
        arrows[(*leaving[flow], *target)] += 1
    return bars, arrows, details


def test_pftrace_has_our_bars_and_arrows_to_the_nanosecond(shown: ViewerTimeline) -> None:
    bars, arrows, _ = decoded(b"".join(pftrace(shown)))
    assert bars == our_bars(shown)
    assert arrows == our_arrows(shown)


def test_pftrace_has_the_details_of_a_kernel(tmp_path: Path) -> None:
    events = [
        op("aten::mm", 0, 20, external=1, **{"Input Dims": [[2, 3], [3, 4]]}),
        *launched("gemm", 5, 30, 10, 1, grid=[16, 1, 1], block=[128, 1, 1], **{"registers per thread": 40}),
    ]
    shown = viewer_timeline(diagnose(open_trace(write(tmp_path, events), cache=False), why=False))
    _, _, details = decoded(b"".join(pftrace(shown)))
    found = details["gemm", 30_000]
    assert found["grid"], found["block"] == ("16 × 1 × 1", "128 × 1 × 1")
    assert found["registers"] == 40
    assert found["op"] == "aten::mm"


def test_json_has_our_bars_and_arrows_to_the_nanosecond(shown: ViewerTimeline) -> None:
    document = json.loads("".join(chrome_json(shown)), parse_float=str)
    groups: dict[int, str] = {}
    tracks: dict[int, str] = {}
    bars: Counter[Bar] = Counter()
    begins: dict[int, tuple[str, int]] = {}
    arrows: Counter[Arrow] = Counter()
    finished = []
    last = ("", 0)
    for event in document["traceEvents"]:
        if event["name"] == "process_name" and event["ph"] == "M":
            groups[event["pid"]] = event["args"]["name"]
        elif event["name"] == "thread_name" and event["ph"] == "M":
            tracks[event["tid"]] = event["args"]["name"]
        elif event["ph"] == "X":
            begin = nanoseconds(event["ts"])
            last = event["name"], begin
            bars[
                groups[event["pid"]], tracks[event["tid"]], event["name"], begin, begin + nanoseconds(event["dur"])
            ] += 1
        elif event["ph"] == "s":
            begins[event["id"]] = last
        elif event["ph"] == "f":
            finished.append((event["id"], last))
    for number, target in finished:
        arrows[(*begins[number], *target)] += 1
    assert bars == our_bars(shown)
    assert arrows == our_arrows(shown)


def nanoseconds(text: str) -> int:
    whole, _, rest = text.partition(".")
    return int(whole) * 1000 + int(rest)


@pytest.mark.parametrize(
    ("time_ns", "written"),
    [(0, "0.000"), (999, "0.999"), (1_000, "1.000"), (12_345_678_901_234_567, "12345678901234.567")],
)
def test_microseconds_are_exact(time_ns: int, written: str) -> None:
    assert microseconds(time_ns) == written


def test_hostile_names_stay_names(tmp_path: Path) -> None:
    name = '</script>"\\\x1b]0;\u202e\u0000'
    shown = viewer_timeline(diagnose(open_trace(write(tmp_path, launched(name, 0, 10, 5, 1)), cache=False), why=False))
    text = "".join(chrome_json(shown))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert {event["name"] for event in json.loads(text)["traceEvents"] if event.get("cat") == "gpu"} == set(
        shown.tracks[0].bars["name"].to_list()
    )


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, b"\x00"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02"), (2**64 - 1, b"\xff" * 9 + b"\x01")],
)
def test_varints_are_as_documented(value: int, written: bytes) -> None:
    assert protobuf.varint(value) == written


def test_negative_numbers_are_twos_complement() -> None:
    assert protobuf.number(4, -1) == b"\x20" + b"\xff" * 9 + b"\x01"


def test_the_command_writes_by_suffix_and_refuses_to_overwrite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, zipped = tmp_path / "t.perfetto.json", tmp_path / "t.perfetto.json.gz"
    assert run(["export", str(SMALL), "-o", str(plain), "-o", str(zipped), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [file["format"] for file in answer["files"]] == [".perfetto.json", ".perfetto.json.gz"]
    assert json.loads(plain.read_text()) == json.loads(gzip.decompress(zipped.read_bytes()))
    assert run(["export", str(SMALL), "-o", str(plain)]) == 2
    assert "file-exists" in capsys.readouterr().err
    assert run(["export", str(SMALL), "-o", str(tmp_path / "t.json")]) == 2
    assert "unknown-format" in capsys.readouterr().err
    assert run(["export", str(SMALL), "-o", str(tmp_path / "none" / "t.pftrace")]) == 1
    assert "cannot-write" in capsys.readouterr().err
