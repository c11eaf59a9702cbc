"""Takes a trace apart that a script merged from those of several ranks: by the rank that each event names.

Scripts write it in one of three ways: `rank` in the arguments of each event (with its own ids as `pid_raw` and so on),
a label before the process id (`[TP00-DP01] 4321`, `rank3 4321`), or the name of the process (`Rank 3`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import msgspec

from warpline.errors import UnreadableFile
from warpline.sources.detect import HEAD_BYTES
from warpline.sources.unpack import Packing, Unpacked, packing_of, unpacked_head

OUTER_FIRST = ("pp", "dp", "ep", "tp")
"""Ranks count the tensor-parallel place fastest."""
_MARKS = re.compile(rb'"(?:pid|correlation)_raw"\s*:|"pid"\s*:\s*"(?:\[(?:TP|DP|PP|EP)\d|(?i:rank)[ _-]?\d)')
"""What only scripts that merge write."""
_HINTS = re.compile(rb'"process_(?:name|labels)"[^{}]{0,200}\{[^{}]{0,100}"(?i:rank)[ _:-]?\d|"rank"\s*:\s*\d')
"""What they also write, like others."""
_LABEL = re.compile(r"(?i)\[((?:(?:TP|DP|PP|EP)\d{1,5}-?)+)\]\s*(.*)")
_PLACE = re.compile(r"(?i)(TP|DP|PP|EP)(\d{1,5})")
_RANK = re.compile(r"(?i)\brank[ _:-]?(\d{1,6})\b[\s:_-]*(.*)")

Place = tuple[tuple[str, int], ...]
"""The place in each dimension, or `(("rank", 3),)`."""


def may_be_merged(path: Path) -> bool:
    """Whether a file may be several ranks merged: by its first bytes, and its last ones where it is not packed."""
    if not path.is_file():  # a pipe may wait for its writer without end
        return False
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            text = _text(head)
            if packing_of(head) is Packing.PLAIN and text:
                file.seek(max(path.stat().st_size - HEAD_BYTES, len(head)))
                text += file.read(HEAD_BYTES)
    except OSError:
        return False
    _, events, rest = text.partition(b'"traceEvents"')
    return bool(_MARKS.search(text) or _HINTS.search(rest if events else text))


def is_merged(head: bytes) -> bool:
    """Whether a file that starts with these bytes is several ranks merged."""
    return bool(_MARKS.search(_text(head)))


def _text(head: bytes) -> bytes:
    """The first bytes of a JSON file, unpacked; empty if it is none."""
    packing = packing_of(head)
    try:
        text = head if packing is Packing.PLAIN else unpacked_head(head, packing, HEAD_BYTES)[0]
    except ValueError:
        return b""
    return text if text.lstrip()[:1] in {b"{", b"["} else b""


@contextmanager
def split_by_rank(path: Path) -> Iterator[dict[int, Path]]:
    """A file for each rank of a merged one, as long as they are needed; empty if it holds one rank only."""
    with TemporaryDirectory(prefix="warpline-") as folder:
        yield take_apart(path, Path(folder))


def take_apart(path: Path, folder: Path) -> dict[int, Path]:
    """Write a file for each rank of a merged one into a folder; none if it holds one rank only."""
    header, events = _read(path)
    names = _process_names(events)
    places = list(dict.fromkeys(filter(None, (_place(msgspec.json.decode(event), names) for event in events))))
    if len(places) < 2:
        return {}
    ranks = _numbered(places)
    known = header.pop("distributedInfo", None)
    world = known.get("world_size") if isinstance(known, dict) else None
    size = max(max(ranks.values()) + 1, world if type(world) is int else 0)
    files = {rank: folder / f"rank{rank}.json" for rank in sorted(ranks.values())}
    with ExitStack() as stack:
        opened = {rank: stack.enter_context(file.open("wb")) for rank, file in files.items()}
        for rank, file in opened.items():
            own = header | {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": size}}
            file.write(msgspec.json.encode(own)[:-1] + b',"traceEvents":[')
        _write_events(events, names, ranks, opened)
        for file in opened.values():
            file.write(b"]}")
    return files


def _read(path: Path) -> tuple[dict[str, Any], list[msgspec.Raw]]:
    """The header and the events of a file; events stay text, so that memory is bounded by the file."""
    content = b"".join(Unpacked(path))
    if not content.isascii():
        content = content.decode(errors="replace").encode()
    try:
        if content.lstrip()[:1] == b"[":
            return {}, msgspec.json.decode(content, type=list[msgspec.Raw])
        found = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
        events = msgspec.json.decode(found.pop("traceEvents", msgspec.Raw(b"[]")), type=list[msgspec.Raw])
        return {key: msgspec.json.decode(value) for key, value in found.items()}, events
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UnreadableFile(
            "damaged-merge",
            f"{path.name} is several ranks merged, but damaged: {error}",
            "give the folder of the ranks' own files",
        ) from error


def _process_names(events: Sequence[msgspec.Raw]) -> dict[Any, Place]:
    """The rank of each process whose name or label says it."""
    found: dict[Any, Place] = {}
    for raw in events:
        if b"process_" not in bytes(raw):
            continue
        event = msgspec.json.decode(raw)
        arguments = _arguments(event)
        text = str(arguments.get("name") or arguments.get("labels") or "")
        match = _RANK.search(text)
        if event.get("name") in {"process_name", "process_labels"} and match:
            found[_key(event.get("pid"))] = (("rank", int(match[1])),)
    return found


def _place(event: Any, names: Mapping[Any, Place]) -> Place | None:
    """Whose event it is; None if it does not say."""
    rank, pid = _arguments(event).get("rank"), event.get("pid") if isinstance(event, dict) else None
    if type(rank) is int and rank >= 0:
        return (("rank", rank),)
    if isinstance(pid, str):
        label = _LABEL.match(pid)
        if label:
            return tuple(sorted((name.lower(), int(at)) for name, at in _PLACE.findall(label[1])))
        number = _RANK.match(pid)
        if number:
            return (("rank", int(number[1])),)
    return names.get(_key(pid))


def _key(pid: Any) -> Any:
    return pid if isinstance(pid, int | str) else None


def _arguments(event: Any) -> dict[str, Any]:
    found = event.get("args") if isinstance(event, dict) else None
    return found if isinstance(found, dict) else {}


def _numbered(places: Sequence[Place]) -> dict[Place, int]:
    """The rank of each place."""
    if all(place[0][0] == "rank" for place in places):
        return {place: place[0][1] for place in places}
    return dict(zip(places, ranks_of_places([dict(place) for place in places]), strict=True))


def ranks_of_places(places: Sequence[Mapping[str, int]]) -> list[int]:
    """The rank of each place, of all the places of a job: dimensions of size one do not count."""
    sizes: dict[str, int] = {}
    for place in places:
        for name, at in place.items():
            sizes[name] = max(sizes.get(name, 1), at + 1)
    found = []
    for place in places:
        rank = 0
        for name in OUTER_FIRST:
            rank = rank * sizes.get(name, 1) + place.get(name, 0)
        found.append(rank)
    return found


def _write_events(
    events: Sequence[msgspec.Raw],
    names: Mapping[Any, Place],
    ranks: Mapping[Place, int],
    files: Mapping[int, BinaryIO],
) -> None:
    """Write each event into the file of its rank, with its own ids."""
    begun = set()
    for raw in events:
        event = msgspec.json.decode(raw)
        place = _place(event, names)
        if place is None:
            continue
        rank = ranks[place]
        if rank in begun:
            files[rank].write(b",\n")
        begun.add(rank)
        files[rank].write(msgspec.json.encode(_restored(event)))


def _restored(event: dict[str, Any]) -> dict[str, Any]:
    """The event with the ids it had before it was merged."""
    arguments = _arguments(event)
    for name in [name for name in arguments if name.endswith("_raw")]:
        value, own = arguments.pop(name), name.removesuffix("_raw")
        if own in arguments:
            arguments[own] = value
        elif own in event:
            event[own] = value
    arguments.pop("rank", None)
    pid = event.get("pid")
    match = (_LABEL.match(pid) or _RANK.match(pid)) if isinstance(pid, str) else None
    if match:
        rest = match[2]
        event["pid"] = int(rest) if rest.isdecimal() and len(rest) < 19 else rest
    return event
