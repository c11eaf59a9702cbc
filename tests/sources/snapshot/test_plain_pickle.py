"""Pickles of plain values are read as pickle reads them; everything else is refused, and nothing is run."""

from __future__ import annotations

import os
import pickle
import struct
import tracemalloc
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import snapshot_files
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warpline.sources.snapshot import plain_pickle
from warpline.sources.snapshot.plain_pickle import DamagedPickle, UnsafePickle, load_plain

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
    | st.binary(max_size=300)
)
KEYS = st.text(max_size=8) | st.integers(-1000, 1000)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=6) | st.lists(inner, max_size=6).map(tuple) | st.dictionaries(KEYS, inner, max_size=6)
    ),
    max_leaves=30,
)


@given(VALUES, st.integers(3, 5))
@example([[None] * 1200, list(range(1500)), {str(n): n for n in range(1100)}], 4)
@settings(max_examples=40)
def test_plain_values_are_what_pickle_reads(value: Any, protocol: int) -> None:
    assert load_plain(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_snapshot_is_read_in_every_protocol(protocol: int) -> None:
    assert load_plain(pickle.dumps(snapshot_files.training(), protocol)) == snapshot_files.training()


def test_shared_lists_stay_shared_and_cycles_do_no_harm() -> None:
    frames = [{"line": 1}]
    first, second = load_plain(pickle.dumps([frames, frames]))
    assert first is second
    cycle: list[Any] = []
    cycle.append(cycle)
    found = load_plain(pickle.dumps(cycle))
    assert found[0] is found


class Runs:
    def __reduce__(self) -> Any:
        return os.system, ("touch was-run",)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("value", [Runs(), {"segments": [Runs()]}, OrderedDict(a=1), {1, 2}, Path("x"), len, 1j])
def test_what_needs_code_is_refused_and_not_run(
    value: Any, protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((UnsafePickle, DamagedPickle)):
        load_plain(pickle.dumps(value, protocol))
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80",
        b"\x80\x04",
        b"\x80\x04.",
        b"\x80\x04}e.",
        b"\x80\x04u.",
        b"\x80\x04}K\x01s.",
        b"\x80\x04]]]u.",
        b"\x80\x04h\x07.",
        b"\x80\x04}]K\x01s.",  # a list is no key
        b"\x80\x04}\x8a\x09" + b"\xff" * 8 + b"\x1fK\x01s.",  # nor is a number made to collide
        b"\x80\x04\x8d" + struct.pack("<Q", 1 << 60) + b"x.",
        b"\x80\x04\x8a\xff" + b"\x01" * 255 + b".",
        b"\x80\x04X\x02\x00\x00\x00\xff\xfe.",
        b"\x80\x04" + b"(" * 2000 + b".",
        b"\x80\x04K\x01\x85\x86\x87.",
    ],
)
def test_damage_is_one_error(content: bytes) -> None:
    with pytest.raises(DamagedPickle):
        load_plain(content)


def test_a_memo_number_or_a_length_takes_no_memory() -> None:
    """Python's own reader makes room for as many entries as the number says."""
    tracemalloc.start()
    try:
        assert load_plain(b"\x80\x02]r\xff\xff\xff\xff.") == []
        with pytest.raises(DamagedPickle):
            load_plain(b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"x.")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_containers_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_pickle, "MAX_OBJECTS", 100)
    with pytest.raises(DamagedPickle, match="more lists, dicts"):
        load_plain(pickle.dumps([[] for _ in range(101)]))


@pytest.mark.parametrize("each", [b"}", b"]", b"N\x85", b"\x94", b"q\x00", b"h\x00\x94"])
def test_a_short_pickle_does_not_hold_many_objects(each: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty dict takes one byte of the file and 64 of memory; an entry of the memo takes more."""
    monkeypatch.setattr(plain_pickle, "SPARE_OBJECTS", 100)
    with pytest.raises(DamagedPickle, match="more lists, dicts"):
        load_plain(b"\x80\x04}q\x00" + each * 1_000 + b".")


@pytest.mark.parametrize("protocol", [2, 4])
def test_the_densest_history_is_read(protocol: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_pickle, "SPARE_OBJECTS", 0)
    names = ("action", "addr", "size", "stream", "frames")  # as torch 1.13 and 2.0 wrote it
    entries = [dict(zip(names, ("alloc", (1 << 46) + at, 512, 0, []), strict=True)) for at in range(500)]
    document = {"segments": [], "device_traces": [entries]}
    assert load_plain(pickle.dumps(document, protocol)) == document


@given(st.data())
def test_any_damage_gives_plain_values_or_an_error(data: st.DataObject) -> None:
    content = bytearray(pickle.dumps(snapshot_files.training()))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        load_plain(bytes(content))
    except (DamagedPickle, UnsafePickle):
        return


def test_half_a_surrogate_pair_becomes_text_that_can_be_written() -> None:
    assert load_plain(pickle.dumps(["a\ud800b", "\u2713"])) == ["a\ufffdb", "\u2713"]
