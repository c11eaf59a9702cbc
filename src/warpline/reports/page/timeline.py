"""The timeline: tracks of all devices and threads, and the facts that explain their rows."""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from warpline.analyses.roofline.pieces import GpuWork
from warpline.analyses.stacks import thread_title
from warpline.dive.model import Dive
from warpline.findings.diagnosis import Diagnosis
from warpline.reports.findings import in_order
from warpline.reports.page.bars import Bars, cause_words
from warpline.reports.page.contract import Particulars, Spot, Step, Timeline
from warpline.reports.page.inside import answers, kernel_of_row
from warpline.reports.page.names import NameTable
from warpline.reports.page.planes import block, deflated
from warpline.reports.page.rows import Pack
from warpline.reports.sections import sanitised
from warpline.trace.steps.choice import completed
from warpline.trace.trace import Trace


class DrawnTimeline(Struct, frozen=True):
    """The timeline of a trace: its rows, and what explains them."""

    head: Timeline
    particulars: Particulars
    pack: Pack

    def blocks(self) -> tuple[str, str]:
        """What the first picture needs, and the rest: Python frames are most of a trace, and folded at first."""
        return block(_first(self.head, self.pack)), block(_rest(self.head, self.particulars, self.pack))

    def least_for(self, rows: int) -> int:
        """The duration that so many rows at most have; 0 if there are no more rows."""
        durations = self.pack.durations()
        return 0 if len(durations) <= rows else int(np.partition(durations, -rows)[-rows]) + 1

    def packed(self) -> bytes:
        """Both blocks in one, as bytes."""
        return deflated(_first(self.head, self.pack) + _rest(self.head, self.particulars, self.pack))

    def only(self, least_ns: int, start_ns: int = 0, end_ns: int = 0) -> DrawnTimeline:
        """Rows that last this long, and all between two times on the page."""
        zero = self.head.zero_ns
        chosen = self.pack.only(least_ns, zero + start_ns, zero + end_ns)
        head = replace(
            self.head,
            events=chosen.count,
            tracks=chosen.tracks,
            least_ns=least_ns,
            detailed=(start_ns, end_ns) if end_ns > start_ns else None,
        )
        return DrawnTimeline(head, self.particulars, chosen)


def _first(head: Timeline, pack: Pack) -> bytes:
    return _text(head) + pack.pictures(head.zero_ns, 0, head.early_parts)


def _rest(head: Timeline, particulars: Particulars, pack: Pack) -> bytes:
    early, parts = head.early_parts, pack.parts
    later = pack.pictures(head.zero_ns, early, parts) + pack.relations(early, parts)
    return _text(particulars) + pack.relations(0, early) + later


def _text(record: Timeline | Particulars) -> bytes:
    text = msgspec.json.encode(record)
    return len(text).to_bytes(4, "little") + text


def drawn_timeline(diagnosis: Diagnosis, work: GpuWork, dive: Dive | None = None) -> DrawnTimeline:
    """The timeline of the diagnosed trace, whose kernels lead to what a report of Nsight Compute says of them."""
    trace, bars = diagnosis.trace, Bars(work, kernel_of_row(dive))
    bars.add_ops()
    bars.add_api()
    bars.add_ranges()
    bars.add_streams()
    bars.add_syncs()
    bars.add_idle(diagnosis.gaps)
    early = bars.pack.parts
    bars.add_python()
    zero, end = bars.pack.extent() or (trace.window.start_ns, trace.window.end_ns)
    particulars = Particulars(
        launches=bars.launches,
        inputs=bars.inputs,
        identities=bars.names.identities,
        spots=_spots(diagnosis, bars.names),
        inside=answers(dive, trace, bars.names, zero),
    )
    head = Timeline(
        zero_ns=zero,
        length_ns=end - zero,
        window=_opening(trace, zero),
        events=bars.pack.count,
        least_ns=0,
        detailed=None,
        early_parts=early,
        names=bars.names.all,
        tracks=bars.pack.tracks,
        threads=[thread_title(trace, thread) for thread in range(len(trace.threads))],
        steps=_steps(trace, zero, end),
        causes=list(cause_words()),
    )
    return DrawnTimeline(sanitised(head), sanitised(particulars), bars.pack)


def _opening(trace: Trace, zero: int) -> tuple[int, int]:
    """The steps in view, from the first to the last; what was analysed where there are none."""
    steps, (_, ends) = trace.steps_in_view, trace.step_spans
    if not len(steps):
        return trace.window.start_ns - zero, trace.window.end_ns - zero
    return int(steps.start_ns.min()) - zero, int(ends.max()) - zero


def _steps(trace: Trace, zero: int, end: int) -> list[Step]:
    steps = trace.all_steps
    starts, ends = completed(steps, trace.gpu, trace.api)
    shown = np.flatnonzero((steps.end_ns > zero) & (steps.start_ns < end))
    return [
        Step(f"step {row}", int(steps.start_ns[row]) - zero, int(steps.end_ns[row]) - zero, length)
        for row, length in zip(shown.tolist(), (ends - starts)[shown].tolist(), strict=True)
    ]


def _spots(diagnosis: Diagnosis, names: NameTable) -> list[Spot]:
    """Where each finding is seen, in the order of the page."""
    judgement = diagnosis.judgement
    found = in_order(judgement.findings, judgement.verdict) if judgement else []
    return [
        Spot(number, names.with_text({place.op for place in finding.where if place.op}), finding.cause)
        for number, finding in enumerate(found)
    ]
