"""One seam for packed profiles: gzip and xz give the same bytes, damage is noted, and a limit holds for every reader."""

from __future__ import annotations

import gzip
import json
import lzma
import random
from pathlib import Path

import pytest
from kineto_files import launched
from nsys_files import small

import warpline
from warpline.cli.main import run
from warpline.errors import UnreadableFile, UsageError
from warpline.sources import unpack
from warpline.sources.unpack import Unpacked, most_bytes
from warpline.sources.xplane import read_xplane

TEXT = bytes(range(256)) * 3000
PACK = {"gzip": lambda content: gzip.compress(content, mtime=0), "xz": lzma.compress, "plain": bytes}


def written(folder: Path, content: bytes) -> Path:
    path = folder / "profile"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize("piece_bytes", [1000, 1 << 20])
def test_the_bytes_come_out_in_pieces(packing: str, piece_bytes: int, tmp_path: Path) -> None:
    unpacked = Unpacked(written(tmp_path, PACK[packing](TEXT)), piece_bytes)
    pieces = list(unpacked)
    assert b"".join(pieces) == TEXT
    assert max(map(len, pieces)) <= piece_bytes
    assert unpacked.damage == ""


@pytest.mark.parametrize("packing", ["gzip", "xz"])
@pytest.mark.parametrize(
    ("more", "damage"), [(b"", ""), (bytes(64), ""), (b"noise", "other data follows"), (b"again", "")]
)
def test_members_follow_each_other(packing: str, more: bytes, damage: str, tmp_path: Path) -> None:
    again = PACK[packing](b"more") if more == b"again" else more
    unpacked = Unpacked(written(tmp_path, PACK[packing](TEXT) + again))
    assert b"".join(unpacked) == TEXT + (b"more" if more == b"again" else b"")
    assert damage in unpacked.damage
    assert bool(unpacked.damage) == bool(damage)


@pytest.mark.parametrize("packing", ["gzip", "xz"])
def test_what_precedes_the_damage_is_read(packing: str, tmp_path: Path) -> None:
    noise = bytes(b * 7 % 251 for b in range(200_000))
    unpacked = Unpacked(written(tmp_path, PACK[packing](noise)[:-20]))
    assert noise.startswith(b"".join(unpacked))
    assert f"The {packing} stream is damaged (it ends early)" in unpacked.damage


@pytest.mark.parametrize("at", [5, 40, 30_000, 60_000, -6])
def test_damage_is_found_in_the_same_place_by_either_engine(
    at: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packed = bytearray(PACK["gzip"](random.Random(0).randbytes(100_000) + TEXT))
    packed[at] ^= 0xFF
    first = Unpacked(written(tmp_path, bytes(packed)), 1000)
    fast = b"".join(first)
    with monkeypatch.context() as patch:
        patch.setattr(unpack, "GzipFile", gzip.GzipFile)
        second = Unpacked(tmp_path / "profile", 1000)
        assert b"".join(second) == fast
    assert second.damage == first.damage


@pytest.mark.parametrize("packing", PACK)
def test_one_limit_for_all(packing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, PACK[packing](TEXT))
    monkeypatch.setenv("WARPLINE_MAX_BYTES", str(len(TEXT)))
    assert len(b"".join(Unpacked(path))) == len(TEXT)
    monkeypatch.setenv("WARPLINE_MAX_BYTES", str(len(TEXT) - 1))
    with pytest.raises(UnreadableFile, match="too-large"):
        list(Unpacked(path))
    for text in ("lots", "-1", "１"):
        monkeypatch.setenv("WARPLINE_MAX_BYTES", text)
        with pytest.raises(UsageError, match="bad-limit"):
            most_bytes()


@pytest.mark.parametrize("packing", ["gzip", "xz"])
def test_a_bomb_is_refused(packing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "BOMB_BYTES", 1 << 20)
    with pytest.raises(UnreadableFile, match="zip-bomb"):
        list(Unpacked(written(tmp_path, PACK[packing](bytes(8 << 20)))))


def test_forty_kilobytes_of_endless_repetition_are_a_bomb(tmp_path: Path) -> None:
    event = b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":5000,"dur":8},'
    content = b'{"traceEvents":[' + event * (40_000_000 // len(event))
    with pytest.raises(UnreadableFile, match="zip-bomb"):
        list(Unpacked(written(tmp_path, gzip.compress(content, 9))))


def test_a_bomb_of_messages_is_refused_before_it_takes_a_row_for_every_two_bytes(tmp_path: Path) -> None:
    path = tmp_path / "bomb.xplane.pb.gz"
    line = b"\x12\x09Stream #7" + b'"\0' * (6 << 20)  # a name, and six million empty events
    plane = b"\x12\x0d/device:GPU:0" + field(3, line)
    path.write_bytes(gzip.compress(field(1, plane)))
    with pytest.raises(UnreadableFile, match="zip-bomb"):
        read_xplane(path)


def field(number: int, content: bytes) -> bytes:
    """A field of a protobuf message, with a length of five bytes."""
    length = [len(content) >> 7 * place & 127 | 128 * (place < 4) for place in range(5)]
    return bytes([number << 3 | 2, *length]) + content


def test_traces_and_exports_packed_with_xz_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.json.xz"
    trace.write_bytes(lzma.compress(json.dumps({"traceEvents": launched("k", 1, 2, 3, 4)}).encode()))
    assert len(warpline.open(trace, cache=False).gpu) == 1
    export = tmp_path / "export.sqlite.xz"
    export.write_bytes(lzma.compress(small().write(tmp_path / "plain.sqlite").read_bytes()))
    assert len(warpline.open(export, cache=False).gpu) == len(warpline.open(tmp_path / "plain.sqlite", cache=False).gpu)
    for packed in (trace, export):
        assert run(["scrub", str(packed), "-o", str(tmp_path / f"{packed.name}.out"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["file"]
        assert run(["doctor", str(packed)]) in {0, 1, 4}
        capsys.readouterr()
