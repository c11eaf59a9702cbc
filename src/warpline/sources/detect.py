"""What kind of file a profile is, by its content."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from warpline.errors import UnreadableFile
from warpline.package_data import read_table
from warpline.sources.kinds import DIRECTORY, UNKNOWN, Kind
from warpline.sources.registry import kinds
from warpline.sources.unpack import Packing, packing_of, unpacked_head

HEAD_BYTES = 1 << 20
"""Kineto writes all device properties before its first event: far less than this."""

READS = "give a torch.profiler trace or an nsys export"

_COMMANDS = {Packing.GZIP: "gunzip -k", Packing.XZ: "xz -dk"}
_OTHER_PACKING = {
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -d"),
    b"BZh": ("bzip2", "bunzip2"),
    b"PK\x03\x04": ("zip", "unzip"),
    b"\x04\x22\x4d\x18": ("lz4", "lz4 -d"),
    b"7z\xbc\xaf\x27\x1c": ("7z", "7z x"),
}


def detect(path: Path) -> Kind:
    """The kind of the file or folder at ``path``, packed or not; ``UnreadableFile`` if there is nothing to look at."""
    if path.is_dir():
        return next((kind for kind in kinds() if kind.is_folder and kind.recognises(b"", path)), DIRECTORY)
    head = _head(path)
    if not head:
        raise UnreadableFile(
            "empty-file", f"{path} is empty: the program or the export ended before it was written", "record it again"
        )
    packing = packing_of(head)
    if packing is Packing.PLAIN:
        return _kind(head, path)
    kind = _kind(_unpacked(head, packing, path), path)
    if kind.packs:
        return kind
    raise UnreadableFile(
        "packed-report",
        f"{path} is a {kind.name} file packed with {packing.value}, which must be unpacked first",
        f"{_COMMANDS[packing]} {path.name}",
    )


def _head(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            hint = "give what it holds on standard input: warpline - < PIPE" if path.is_fifo() else ""
            raise UnreadableFile("unreadable-file", f"{path} is neither a file nor a folder", hint)
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except FileNotFoundError as error:
        raise UnreadableFile("no-such-file", f"{path} does not exist", "check the path") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnreadableFile("unreadable-file", f"{path} cannot be read: {reason}") from error


def _unpacked(head: bytes, packing: Packing, path: Path) -> bytes:
    name = packing.value
    try:
        inner, is_all = unpacked_head(head, packing, HEAD_BYTES)
    except ValueError as error:
        raise UnreadableFile("damaged-file", f"{path} is damaged {name}: {error}", "copy it again") from error
    if not inner:
        if is_all:
            raise UnreadableFile("empty-file", f"{path} is the {name} of an empty file", "record or export it again")
        raise UnreadableFile("damaged-file", f"{path} is {name}, cut short before its first byte", "copy it again")
    again = packing_of(inner)
    if again is not Packing.PLAIN:
        raise UnreadableFile(
            "packed-twice",
            f"{path} is {again.value} within {name}: it was packed twice",
            f"unpack it once: {_COMMANDS[packing]} {path.name}",
        )
    return inner


def _kind(head: bytes, path: Path) -> Kind:
    for magic, (name, command) in _OTHER_PACKING.items():
        if head.startswith(magic):
            raise UnreadableFile(
                "packed-file", f"{path} is packed with {name} and must be unpacked first", f"{command} {path.name}"
            )
    if not any(head[:4096]):
        raise UnreadableFile(
            "damaged-file", f"{path} begins with zeros: it was never written in full", "record or export it again"
        )
    found = next((kind for kind in kinds() if not kind.is_folder and kind.recognises(head, path)), None)
    if found is not None:
        return found
    if (other := other_format(head.removeprefix(b"\xef\xbb\xbf"))) is not None:
        raise UnreadableFile("other-format", f"{path} is {other.description}", other.give or READS)
    return UNKNOWN


class OtherFormat(Struct, frozen=True):
    """A format that is not read."""

    description: str
    """Completes "FILE is …"."""
    starts: re.Pattern[bytes]
    """How its files start, unpacked."""
    has: tuple[bytes, ...]
    """Texts that are all in its first megabyte."""
    give: str
    """What to give instead; empty where the same tool has nothing better."""

    def is_of(self, head: bytes) -> bool:
        """Whether a file that starts with these bytes has the marks."""
        return self.starts.match(head) is not None and all(text in head for text in self.has)


def other_format(head: bytes) -> OtherFormat | None:
    """The format of a file that starts with these bytes, if it has the marks of another tool."""
    return next((known for known in _formats() if known.is_of(head)), None)


@cache
def _formats() -> tuple[OtherFormat, ...]:
    return tuple(
        OtherFormat(
            entry["is"],
            re.compile(entry["starts"].encode("latin-1")),
            tuple(part.encode() for part in entry.get("has", ())),
            entry.get("give", ""),
        )
        for entry in read_table("sources", "other_formats", dict[str, list[dict[str, Any]]])["format"]
    )
