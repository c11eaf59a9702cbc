"""Names that try to act, hide or flood, in every file that `export` writes: they stay names, and the files stay valid."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hostile_files import EVIL
from kineto_files import annotation, frame, launched, op, write

from warpline.cli.main import run
from warpline.exports.formats import Format
from warpline.sanitise import sanitise

LONE = "lone\ud800surrogate\udfff"
LONG = "x" * 10_000_000
"""Readers cut such a name."""
SCRIPT = "</script></text><script>alert(1)</script>"
NAMES = (*EVIL, LONE, SCRIPT, LONG)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two steps, where every name is that of a range, a frame, an op and a kernel, in every format."""
    events = []
    for step in range(2):
        begin = 10_000.0 * step
        events.append(annotation(f"ProfilerStep#{step}", begin, 9_900))
        for place, name in enumerate(NAMES):
            at, number = begin + 10 + 400 * place, 100 * step + place + 1
            events += [
                annotation(name, at, 300),
                frame(name, at + 1, 290, number, None),
                op(name, at + 2, 200, external=number),
                *launched(name, at + 20, at + 60, 150, number),
            ]
    folder = tmp_path_factory.mktemp("hostile")
    wanted = [known for known in Format if known is not Format.PNG or find_spec("resvg_py")]
    files = [word for known in wanted for word in ("-o", str(folder / f"out{known}"))]
    assert run(["export", str(write(folder, events)), *files, "--no-why"]) == 0
    return folder


def text(content: bytes) -> None:
    shown = content.decode()
    assert {char for char in shown if char != "\n" and sanitise(char) != char} == set()


def timeline_json(content: bytes) -> None:
    text(content)
    names = {event.get("name") for event in json.loads(content)["traceEvents"]}
    assert {name for name in EVIL if name.isprintable()} <= names


def speedscope_json(content: bytes) -> None:
    text(content)
    assert len(content) < 1_000_000
    frames = {frame["name"] for frame in json.loads(content)["shared"]["frames"]}
    assert {name for name in EVIL if name.isprintable()} <= frames


def pftrace(content: bytes) -> None:
    messages = pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="needs `pip install perfetto protobuf`"
    )
    outer, trace = messages.Trace(), messages.Trace()
    outer.ParseFromString(content)
    for packet in outer.packet:
        trace.MergeFromString(zlib.decompress(packet.compressed_packets))
    names = {entry.name for packet in trace.packet for entry in packet.interned_data.event_names}
    assert {SCRIPT, *EVIL} <= names
    assert len(content) < 100_000


def svg(content: bytes) -> None:
    text(content)
    assert not [element for element in ElementTree.fromstring(content).iter() if "script" in element.tag]
    assert len(content) < 200_000, "a long name is cut"


def png(content: bytes) -> None:
    assert content.startswith(b"\x89PNG\r\n")
    assert len(content) < 1_000_000


CHECKS: dict[Format, Callable[[bytes], None]] = {
    Format.PFTRACE: pftrace,
    Format.PERFETTO_JSON: timeline_json,
    Format.PERFETTO_JSON_GZ: lambda content: timeline_json(gzip.decompress(content)),
    Format.SPEEDSCOPE: speedscope_json,
    Format.SVG: svg,
    Format.PNG: png,
}


def test_every_format_is_checked() -> None:
    assert set(CHECKS) == set(Format)


@pytest.mark.parametrize("known", CHECKS)
def test_names_stay_names(known: Format, folder: Path) -> None:
    file = folder / f"out{known}"
    if known is Format.PNG and not file.exists():
        pytest.skip("needs `pip install 'warpline[png]'`")
    CHECKS[known](file.read_bytes())
