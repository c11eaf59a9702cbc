"""Formats by the end of a file's name, and how each is written."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Literal

from msgspec import Struct

from warpline.analyses.roofline.table import roofline_table
from warpline.analyses.stacks import all_stacks
from warpline.atomic_write import atomic_file
from warpline.errors import UsageError, WarplineError
from warpline.exports.chrome import chrome_json
from warpline.exports.pftrace import pftrace
from warpline.exports.pictures import check_png, png, step_picture, time_picture
from warpline.exports.speedscope import speedscope
from warpline.exports.timeline import viewer_timeline
from warpline.findings.diagnosis import Diagnosis, diagnose
from warpline.replay.representative_steps import in_warm_steps
from warpline.reports.roofline_plot import svg as roofline_svg
from warpline.sanitise import sanitise_json
from warpline.trace.trace import Trace

Picture = Literal["timeline", "time", "roofline"]


class Format(StrEnum):
    """The end of the file's name."""

    PFTRACE = ".pftrace"
    PERFETTO_JSON = ".perfetto.json"
    PERFETTO_JSON_GZ = ".perfetto.json.gz"
    SPEEDSCOPE = ".speedscope.json"
    SVG = ".svg"
    PNG = ".png"


class Exported(Struct, frozen=True):
    """A file that was written."""

    file: Path
    format: Format
    size_bytes: int
    tracks: int = 0
    """Tracks of a timeline, or profiles of flame graphs."""
    bars: int = 0
    """Bars of a timeline, or distinct stacks of flame graphs."""
    arrows: int = 0


def export_format(file: Path) -> Format:
    """The format that the file's name asks for; raises where this machine cannot write it."""
    name = file.name.lower()
    for known in Format:
        if name.endswith(known):
            if known is Format.PNG:
                check_png()
            return known
    hint = f"end the name in {', '.join(Format)}"
    raise UsageError("unknown-format", f"cannot tell the format of {file.name}", hint)


def export(trace: Trace, file: Path, picture: Picture = "timeline", why: bool | None = None) -> Exported:
    """Write the trace, or the steps in view, in the format that the file's name asks for.

    `why` is that of `diagnose`: whether the trace is replayed for findings, which a timeline shows.
    """
    known = export_format(file)
    if known is Format.SPEEDSCOPE:
        return _write_stacks(trace, file)
    if known in {Format.SVG, Format.PNG}:
        drawn = _drawn(trace, picture, why)
        return _put(file, known, [drawn.encode() if known is Format.SVG else png(drawn)])
    return _write_timeline(diagnose(trace, why), file, known)


def _write_timeline(diagnosis: Diagnosis, file: Path, known: Format) -> Exported:
    shown = viewer_timeline(diagnosis)
    parts = (
        pftrace(shown) if known is Format.PFTRACE else (part.encode("utf-8", "replace") for part in chrome_json(shown))
    )
    return _put(file, known, parts, len(shown.tracks), shown.bar_count, shown.arrow_count)


def _write_stacks(trace: Trace, file: Path) -> Exported:
    profiles = all_stacks(trace)
    if not profiles:
        raise WarplineError("no-stacks", "the trace has no events on a CPU thread and no GPU activity", "record more")
    text = sanitise_json(json.dumps(speedscope(profiles, trace.file.name), ensure_ascii=False))
    stacks = sum(int((profile.self_ns > 0).sum()) for profile in profiles)
    return _put(file, Format.SPEEDSCOPE, [text.encode("utf-8", "replace")], len(profiles), stacks)


def _drawn(trace: Trace, picture: Picture, why: bool | None) -> str:
    if picture == "roofline":
        table = roofline_table(in_warm_steps(trace))
        return roofline_svg(table, f"{trace.file.name} on {table.device}")
    draw: Callable[[Diagnosis], str] = step_picture if picture == "timeline" else time_picture
    return draw(diagnose(trace, why))


def _put(
    file: Path, known: Format, parts: Iterable[bytes], tracks: int = 0, bars: int = 0, arrows: int = 0
) -> Exported:
    try:
        with atomic_file(file) as part, part.open("wb") as plain:
            if known is Format.PERFETTO_JSON_GZ:
                with gzip.GzipFile("", "wb", 6, plain, mtime=0) as packed:
                    packed.writelines(parts)
            else:
                plain.writelines(parts)
        return Exported(file, known, file.stat().st_size, tracks, bars, arrows)
    except OSError as error:
        raise WarplineError("cannot-write", f"{file}: {error.strerror}", "name another file") from error
