"""Files are told apart by what is in them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import socket
from pathlib import Path

import pytest
from nsys_files import small

from warpline.errors import UnreadableFile
from warpline.sources import kinds
from warpline.sources.detect import detect
from warpline.sources.kinds import Kind

KINETO = b'{\n  "schemaVersion": 1,\n  "traceEvents": [\n'
NCU_CSV = b"==PROF== Connected to process 1\n" + (
    b'"ID","Process ID","Process Name","Host Name","Kernel Name"\n"0","1","p","h","k"\n'
)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (KINETO, kinds.KINETO),
        (b"\xef\xbb\xbf\n  " + KINETO, kinds.KINETO),
        (b'[{"ph": "X", "name": "a"}]', kinds.KINETO),
        (b'{"metadata": {' + b" " * 50_000 + b'}, "traceEvents": []}', kinds.KINETO),
        (gzip.compress(KINETO, mtime=0), kinds.KINETO),
        (lzma.compress(KINETO), kinds.KINETO),
        (b'{"customers": []}', kinds.UNKNOWN),
        (b"NVIDIA Tegra Profiler Report 2025@5@2@266-1v0.\n\x00", kinds.NSYS_REPORT),
        (b"1NVIDIA Tegra Profiler Report 1\n\x00", kinds.NSYS_REPORT),
        (b"NVR\x00\x02\x00\x00\x00", kinds.NCU_REPORT),
        (NCU_CSV, kinds.NCU_CSV),
        (NCU_CSV.partition(b"\n")[2], kinds.NCU_CSV),
        (gzip.compress(NCU_CSV, mtime=0), kinds.NCU_CSV),
        (b"hello\n", kinds.UNKNOWN),
        (b"\x7fELF\x02\x01", kinds.UNKNOWN),
        (gzip.compress(b"hello\n", mtime=0), kinds.UNKNOWN),
        (lzma.compress(b"hello\n"), kinds.UNKNOWN),
    ],
)
@pytest.mark.parametrize("name", ["profile", "profile.sqlite", "profile.json.gz"])
def test_content_decides_and_the_name_does_not(content: bytes, kind: Kind, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert detect(path) is kind


def test_sqlite_plain_and_packed(tmp_path: Path) -> None:
    path = small().write(tmp_path / "export")
    assert detect(path) is kinds.NSYS_SQLITE
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    assert detect(packed) is kinds.NSYS_SQLITE


def test_a_folder(tmp_path: Path) -> None:
    assert detect(tmp_path) is kinds.DIRECTORY


def test_the_name_breaks_ties_between_reports(tmp_path: Path) -> None:
    old, stream = tmp_path / "a.qdrep", tmp_path / "a.qdstrm"
    old.write_bytes(b"NVIDIA Tegra Profiler Report 1\n\x00")
    stream.write_bytes(b"\x01\x00\x02\x00")
    assert detect(old) is kinds.NSYS_REPORT
    assert detect(stream) is kinds.NSYS_STREAM


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"", "empty-file", "is empty"),
        (gzip.compress(b"", mtime=0), "empty-file", "gzip of an empty file"),
        (gzip.compress(gzip.compress(KINETO, mtime=0), mtime=0), "packed-twice", "gunzip"),
        (lzma.compress(lzma.compress(KINETO)), "packed-twice", "xz -dk"),
        (lzma.compress(KINETO)[:12], "damaged-file", "cut short"),
        (lzma.compress(KINETO)[:12] + b"nonsense" * 200, "damaged-file", "damaged xz"),
        (lzma.compress(b""), "empty-file", "xz of an empty file"),
        (bz2.compress(KINETO), "packed-file", "bunzip2"),
        (b"PK\x03\x04rest", "packed-file", "unzip"),
        (b"\x28\xb5\x2f\xfdrest", "packed-file", "zstd -d"),
        (gzip.compress(lzma.compress(KINETO), mtime=0), "packed-twice", "gunzip"),
        (gzip.compress(b"NVIDIA Tegra Profiler Report" + bytes(50), mtime=0), "packed-report", "gunzip"),
        (lzma.compress(b"NVIDIA Tegra Profiler Report" + bytes(50)), "packed-report", "xz -dk"),
        (b"\x1f\x8b\x08\x00", "damaged-file", "cut short"),
        (b"\x1f\x8b\xff\xffnonsense here", "damaged-file", "damaged gzip"),
        (bytes(10_000), "damaged-file", "zeros"),
    ],
)
def test_what_cannot_be_read_says_why_and_what_to_type(content: bytes, code: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "profile"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile) as caught:
        detect(path)
    assert caught.value.code == code
    assert words in caught.value.line()


def test_absent_and_strange_paths(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="no-such-file"):
        detect(tmp_path / "nothing")
    with pytest.raises(UnreadableFile, match="unreadable-file"):
        detect(Path("a\0b"))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(UnreadableFile, match="neither a file nor a folder"):
            detect(tmp_path / "pipe")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(KINETO)
    path.chmod(0)
    with pytest.raises(UnreadableFile, match="Permission denied"):
        detect(path)


def test_a_socket_is_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(tmp_path / "s"))
        with pytest.raises(UnreadableFile, match="neither a file nor a folder"):
            detect(tmp_path / "s")
