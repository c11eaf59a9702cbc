"""Snapshots as arrays, old and new, whole and damaged."""

from __future__ import annotations

import gzip
import os
import pickle
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import snapshot_files
from hypothesis import given
from hypothesis import strategies as st
from snapshot_files import MIB, entry, write

from warpline.cli.main import run
from warpline.errors import UnreadableFile, WarplineError
from warpline.front.functions import memory_use
from warpline.sources.detect import detect
from warpline.sources.kinds import MEMORY_SNAPSHOT
from warpline.sources.snapshot import read, read_snapshot
from warpline.sources.stdin import as_typed


def test_histories_segments_and_stacks(tmp_path: Path) -> None:
    found = read_snapshot(write(tmp_path, snapshot_files.training()))
    assert list(found.histories) == [0]
    history = found.histories[0]
    assert history.size_bytes.tolist()[:3] == [3 * MIB, 20 * MIB, 2 * MIB]
    assert history.time_ns is not None
    assert history.time_ns.tolist() == [0, 100_000, 200_000, 300_000, 310_000, 400_000, 500_000]
    assert [len(segment.blocks) for segment in found.segments[0]] == [2, 2]
    assert found.stacks[history.stack[0]][1].function == "forward"
    assert found.skipped == 0


def test_a_snapshot_without_times_or_addresses_of_blocks(tmp_path: Path) -> None:
    """As torch 1.13 and 2.0 wrote it: the frames of a block lie in its history."""
    old = {
        "segments": [
            {
                "address": 4096,
                "total_size": 2048,
                "blocks": [
                    {
                        "size": 512,
                        "state": "active_allocated",
                        "history": [{"addr": 4096, "real_size": 400, "frames": snapshot_files.TRAIN}],
                    },
                    {"size": 1536, "state": "inactive"},
                ],
            }
        ],
        "device_traces": [[{"action": "alloc", "addr": 4096, "size": 400, "stream": 0, "frames": []}]],
    }
    found = read_snapshot(write(tmp_path, old))
    assert found.histories[0].time_ns is None
    blocks = found.segments[0][0].blocks
    assert [(block.address, block.requested_bytes) for block in blocks] == [(4096, 400), (4608, 1536)]
    assert found.stacks[blocks[0].stack][0].function == "linear"
    assert memory_use(write(tmp_path, old)).devices[0].peak.allocated_bytes == 400


def test_packed_and_bare_lists_of_segments_are_read(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.pickle.gz"
    path.write_bytes(gzip.compress(pickle.dumps(snapshot_files.training()["segments"])))
    assert detect(path) is MEMORY_SNAPSHOT
    assert memory_use(path).devices[0].peak.allocated_bytes == 3 * MIB


def test_a_hostile_pickle_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Runs:
        def __reduce__(self) -> Any:
            return os.system, ("touch was-run",)

    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, {"segments": Runs()})
    assert run(["memory", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("warpline: unsafe-pickle: ")
    assert err.count("\n") == 1
    assert "nothing was run" in err
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize("value", [None, 3, "segments", {}, {"a": 1}, (1, 2)])
def test_other_pickles_are_refused(value: Any, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="not a memory snapshot"):
        read_snapshot(write(tmp_path, value))


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPLINE_MAX_BYTES", "1000")
    path = tmp_path / "snapshot.pickle.gz"
    path.write_bytes(gzip.compress(pickle.dumps({"segments": ["x" * 100_000]})))
    with pytest.raises(UnreadableFile, match="more than 1,000 bytes"):
        read_snapshot(path)


ODD = st.sampled_from([None, -1, True, 0, 1 << 62, 1 << 70, -(1 << 70), "x", b"", [], {}, 1.5, float("nan"), (), [[]]])


@given(data=st.data())
def test_odd_values_anywhere_give_an_answer_or_an_error(data: st.DataObject, tmp_path_factory: Any) -> None:
    snapshot = data.draw(st.sampled_from([snapshot_files.training, snapshot_files.leaking]))()
    for _ in range(data.draw(st.integers(1, 4))):
        node: Any = snapshot
        for _ in range(data.draw(st.integers(1, 5))):
            keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if not isinstance(node[key], dict | list) or data.draw(st.booleans()):
                node[key] = deepcopy(data.draw(ODD))  # or the next example would find it damaged
                break
            node = node[key]
    path = write(tmp_path_factory.getbasetemp(), snapshot, "odd.pickle")
    try:
        answer = memory_use(path)
    except WarplineError:
        return
    for device in answer.devices:
        assert device.peak.allocated_bytes >= 0
        assert (device.curve.allocated_bytes <= device.peak.allocated_bytes).all()


def test_a_snapshot_is_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, {"segments": [], "device_traces": [[entry("alloc", 1, 2, 3)]]})
    assert run(["diagnose", str(path)]) == 1
    assert f"warpline memory {as_typed(path)}" in capsys.readouterr().err


def test_what_a_file_names_again_and_again_is_read_once(tmp_path: Path) -> None:
    """100 kB that would take 28 million blocks and 20 million entries."""
    blocks = [{"address": 512 * i, "size": 512, "state": "active_allocated"} for i in range(700)]
    segment = {"device": 0, "address": 0, "total_size": 1 << 20, "blocks": blocks}
    entries = [{"action": "alloc", "addr": 512, "size": 512, "time_us": i} for i in range(500)]
    path = tmp_path / "again.pickle"
    path.write_bytes(pickle.dumps({"segments": [segment] * 40_000, "device_traces": [entries] * 40_000}))
    found = read_snapshot(path)
    assert sum(len(segment.blocks) for segment in found.segments[0]) == len(blocks)
    assert sum(len(history.action) for history in found.histories.values()) == len(entries)
    assert found.skipped == 39_999 + 40_000 - read.MAX_DEVICES


def test_a_list_of_lists_of_lists_is_no_text(tmp_path: Path) -> None:
    """Written out, this would be 2^60 characters."""
    name: object = "f"
    for _ in range(60):
        name = [name, name]
    frame = {"filename": name, "name": name, "line": 1}
    entry = {"action": "alloc", "addr": 512, "size": 512, "time_us": 1, "frames": [frame]}
    block = {"address": 0, "size": 512, "state": name}
    path = tmp_path / "nested.pickle"
    path.write_bytes(pickle.dumps({"segments": [{"blocks": [block]}], "device_traces": [[entry]]}))
    found = read_snapshot(path)
    assert found.stacks[1] == (read.Frame("", 1, ""),)
    assert found.segments[0][0].blocks[0].state == ""


def test_a_short_file_that_unpacks_to_a_long_one_is_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.pickle.gz"
    path.write_bytes(gzip.compress(b"\x80\x04}" + b"\x94" * (8 << 20) + b"."))
    with pytest.raises(UnreadableFile) as error:
        read_snapshot(path)
    assert error.value.code == "zip-bomb"


def test_a_long_text_of_many_frames_is_cut_once(tmp_path: Path) -> None:
    """Every frame can name the same long text in two bytes of the file."""
    name = "f" * 100_000
    frames = [{"filename": name, "name": name, "line": line} for line in range(300)]
    path = write(tmp_path, {"device_traces": [[{**entry("alloc", 512, 512, 1), "frames": [one]} for one in frames]]})
    found = [frame for stack in read_snapshot(path).stacks for frame in stack]
    assert len(found) == 300
    assert len({id(text) for frame in found for text in (frame.file, frame.function)}) == 1
    assert found[0].file == "f" * read.MAX_TEXT


def test_devices_beyond_those_of_torch_are_skipped(tmp_path: Path) -> None:
    """Each device has an answer of its own, and half a megabyte could name 15,000."""
    traces = [[entry("alloc", 512, 512, 1)] for _ in range(400)]
    segments = [{"device": 1 << 40, "address": 0, "total_size": 512, "blocks": []}]
    found = read_snapshot(write(tmp_path, {"segments": segments, "device_traces": traces}))
    assert list(found.histories) == list(range(read.MAX_DEVICES))
    assert found.segments == {}
    assert found.skipped == 400 - read.MAX_DEVICES + 1
