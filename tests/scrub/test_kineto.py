"""Traces: telling keys, places, pieces, and JSON that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kineto_files import annotation, frame, launched, op, write

from warpline.scrub import kineto
from warpline.scrub.file import check, scrub
from warpline.scrub.kinds import Kind, Tally
from warpline.scrub.kineto import TraceScrubber, decoded, encoded, event_pieces
from warpline.scrub.text import Scrubber

EVENTS = [op("aten::mm", 0, 100, external=1), *launched("gemm", 10, 20, 10, 1), annotation("ProfilerStep#1", 0, 100)]


def scrubbed(path: Path, *keep: Kind) -> Any:
    result = scrub(path, keep=keep)
    assert result.output is not None
    return json.loads(result.output.read_text())


def test_telling_keys_of_the_header(tmp_path: Path) -> None:
    header = {
        "host_name": "crick.acme.co",
        "username": "alice",
        "mast_job_name": "merger-7",
        "metadata": {
            "uname": {"node": "crick"},
            "env": {"LANG": "C", "N": {"deep": 1}},
            "argv": ["a", "b"],
            "hosts": ["crick", "darwin"],
        },
        "hf_token": "abc",
        "traceName": "/acme/x/trace.json",
        "with_stack": 1,
    }
    document = scrubbed(write(tmp_path, EVENTS, **header))
    events = document.pop("traceEvents")
    assert events == json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert document == {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "Test GPU", "numSms": 132}],
        "host_name": "host-1",
        "username": "user-1",
        "mast_job_name": "(removed)",
        "metadata": {"uname": {"node": "host-1"}, "env": {}, "argv": [], "hosts": ["host-1", "host-2"]},
        "hf_token": "(removed)",
        "traceName": "trace.json",
        "with_stack": 1,
    }


def test_places_are_paths(tmp_path: Path) -> None:
    events = [*EVENTS, frame("/home/alice/x.py(1): f", 0, 1, 1, None), op("aten::mm", 3, 1, note="/home/alice")]
    path = write(tmp_path, events, metadata={"env": {"A": "1"}, "notes": [{"by": "/home/alice"}]})
    document = json.loads(path.read_text())
    document["traceName"] = "/home/alice/t.json"
    path.write_text(json.dumps(document))
    found = {(leak.kind, leak.place) for leak in check(path).leaks}
    assert found == {
        (Kind.ENVIRONMENT, "metadata.env"),
        (Kind.USER, "metadata.notes[].by"),
        (Kind.USER, "traceEvents[].name"),
        (Kind.USER, "traceEvents[].args.note"),
        (Kind.PATH, "traceName"),
    }


def test_an_event_may_have_nodes_and_commands(tmp_path: Path) -> None:
    path = write(tmp_path, [*EVENTS, op("aten::mm", 3, 1, node="buf0", command="copy", token=3)])
    assert check(path).clean


def test_kept_kinds_stay(tmp_path: Path) -> None:
    path = write(tmp_path, EVENTS, host_name="crick", env={"A": "1"}, user_name="alice")
    document = scrubbed(path, Kind.HOST, Kind.ENVIRONMENT)
    assert (document["host_name"], document["env"], document["user_name"]) == ("crick", {"A": "1"}, "user-1")


def test_a_clean_trace_comes_back_byte_for_byte(tmp_path: Path) -> None:
    path = write(tmp_path, EVENTS)
    result = scrub(path)
    assert result.clean
    assert result.output is not None
    assert result.output.read_bytes() == path.read_bytes()


def test_the_host_is_found_in_events_though_it_is_named_behind_them(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [*EVENTS, op("at crick-gpu-7", 1, 1)], "host_name": "crick-gpu-7"}))
    document = scrubbed(path)
    assert document["traceEvents"][-1]["name"] == "at host-1"


@pytest.mark.parametrize("piece_bytes", [1, 300, 5000])
def test_the_size_of_pieces_does_not_matter(piece_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [frame(f"/home/user{chr(97 + n % 3)}/x.py({n}): f", n, 1, n, None) for n in range(60)]
    path = write(tmp_path, [*EVENTS, *events], host_name="crick", env={"A": "1"})
    whole = scrubbed(path)
    monkeypatch.setattr(kineto, "PIECE_BYTES", piece_bytes)
    trace = TraceScrubber(Scrubber(), Tally())
    raw = path.read_bytes()
    blocks = [raw[start : start + 100] for start in range(0, len(raw), 100)]
    pieces = list(event_pieces(blocks))
    assert b"".join(pieces) == raw
    for piece in pieces:
        trace.learn(piece)
    trace.again()
    assert json.loads(b"".join(map(trace.clean, pieces))) == whole


def test_a_trace_that_is_cut_short_stays_cut_where_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, [*EVENTS, frame("/home/alice/x.py(1): f", 0, 1, 1, None)])
    path.write_bytes(path.read_bytes()[:-60])
    result = scrub(path)
    assert result.output is not None
    assert result.output.read_text() == path.read_text().replace("alice", "user-1")


def test_an_environment_that_is_cut_short_goes(tmp_path: Path) -> None:
    path = write(tmp_path, EVENTS)
    text = path.read_text().rstrip().removesuffix("}").rstrip() + ', "env": {"A": "merger", "B": "daybr'
    path.write_text(text)
    result = scrub(path)
    assert result.output is not None
    assert "merger" not in result.output.read_text()
    assert "daybr" not in result.output.read_text()


@given(st.text())
def test_texts_survive_being_written_and_read(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    assert decoded(encoded(text)) == text
    assert decoded(kineto._hidden(json.dumps(text)[1:-1].encode())) == text or any(ord(char) > 0xFFFF for char in text)
