"""The timeline: tracks of all devices and threads, and the facts that explain their rows."""

from __future__ import annotations

import msgspec

from warpline.findings.diagnosis import Diagnosis
from warpline.inert import inert
from warpline.records import dataclass
from warpline.reports.findings import in_order
from warpline.reports.page.contract import Spot, Step, Timeline
from warpline.reports.page.device_tracks import DeviceTracks, cause_words
from warpline.reports.page.host_tracks import HostTracks
from warpline.reports.page.names import Names
from warpline.reports.page.planes import deflated
from warpline.reports.page.rows import Pack
from warpline.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class PackedTimeline:
    """The timeline as the page's two blocks of data."""

    head: Timeline
    first: str
    """The head, and the rows that the first paint needs."""
    second: str
    """Python frames: most of a trace, and folded at first."""


def packed_timeline(diagnosis: Diagnosis) -> PackedTimeline:
    """The timeline of the diagnosed trace."""
    trace, pack, names = diagnosis.trace, Pack(), Names()
    host, devices = HostTracks(trace, pack, names), DeviceTracks(trace, pack, names)
    ops = host.add_ops()
    calls = host.add_api(ops)
    host.add_ranges()
    operations = devices.add_streams(ops, calls)
    devices.add_syncs(calls)
    devices.add_idle(diagnosis.gaps, operations)
    early = pack.parts
    host.add_python()
    zero, end = pack.extent() or (trace.window.start_ns, trace.window.end_ns)
    head = Timeline(
        zero_ns=zero,
        length_ns=end - zero,
        window=(trace.window.start_ns - zero, trace.window.end_ns - zero),
        events=pack.count,
        early_parts=early,
        names=names.all,
        tracks=pack.tracks,
        threads=host.threads(),
        steps=_steps(trace, zero, end),
        launches=devices.launches,
        inputs=host.inputs,
        identities=names.identities,
        causes=list(cause_words()),
        spots=_spots(diagnosis, names),
    )
    text = msgspec.json.encode(head)
    first = deflated(len(text).to_bytes(4, "little") + text + pack.packed(zero, 0, early))
    return PackedTimeline(head, first, deflated(pack.packed(zero, early, pack.parts)))


def _steps(trace: Trace, zero: int, end: int) -> list[Step]:
    rows = trace.steps.select("name", "start_ns", "end_ns").iter_rows()
    return [
        Step(inert(name or ""), start - zero, stop - zero) for name, start, stop in rows if stop > zero and start < end
    ]


def _spots(diagnosis: Diagnosis, names: Names) -> list[Spot]:
    """Where each finding is seen, in the order of the page."""
    judgement = diagnosis.judgement
    found = in_order(judgement.findings, judgement.verdict) if judgement else []
    return [
        Spot(number, names.with_text({place.op for place in finding.where if place.op}), finding.cause)
        for number, finding in enumerate(found)
    ]
