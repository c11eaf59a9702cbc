"""The timeline: tracks of all devices and threads, and the facts that explain their rows."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from warpline.findings.diagnosis import Diagnosis
from warpline.inert import inert
from warpline.records import dataclass
from warpline.reports.findings import in_order
from warpline.reports.page.contract import Spot, Step, Timeline
from warpline.reports.page.device_tracks import DeviceTracks, cause_words
from warpline.reports.page.host_tracks import HostTracks
from warpline.reports.page.names import Names
from warpline.reports.page.planes import block, deflated
from warpline.reports.page.rows import Pack
from warpline.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class DrawnTimeline:
    """The timeline of a trace: its rows, and what explains them."""

    head: Timeline
    pack: Pack

    def blocks(self) -> tuple[str, str]:
        """The head with the rows of the first paint, and Python frames: most of a trace, and folded at first."""
        early = self.head.early_parts
        zero, parts = self.head.zero_ns, self.pack.parts
        return block(_with_rows(self.head, self.pack, early)), block(self.pack.packed(zero, early, parts))

    def least_for(self, rows: int) -> int:
        """The duration that so many rows at most have; 0 if there are no more rows."""
        durations = self.pack.durations()
        return 0 if len(durations) <= rows else int(np.partition(durations, -rows)[-rows]) + 1

    def part(self, least_ns: int, start_ns: int = 0, end_ns: int = 0) -> bytes:
        """Rows that last this long, and all between two times on the page, in one block that is not base64."""
        zero = self.head.zero_ns
        chosen = self.pack.only(least_ns, zero + start_ns, zero + end_ns)
        head = replace(
            self.head,
            events=chosen.count,
            tracks=chosen.tracks,
            least_ns=least_ns,
            detailed=(start_ns, end_ns) if end_ns > start_ns else None,
            early_parts=chosen.parts,
        )
        return deflated(_with_rows(head, chosen, chosen.parts))


def _with_rows(head: Timeline, pack: Pack, parts: int) -> bytes:
    text = msgspec.json.encode(head)
    return len(text).to_bytes(4, "little") + text + pack.packed(head.zero_ns, 0, parts)


def drawn_timeline(diagnosis: Diagnosis) -> DrawnTimeline:
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
        least_ns=0,
        detailed=None,
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
    return DrawnTimeline(head, pack)


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
