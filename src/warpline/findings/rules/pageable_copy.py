"""Copies from pageable memory block the CPU and run at a fraction of the bandwidth."""

from __future__ import annotations

from warpline.findings.evidence import Evidence
from warpline.findings.rule import Claim, Rule
from warpline.findings.words import in_function, several
from warpline.replay.interventions.transfers import FEW_NUMBERS_BYTES
from warpline.replay.patterns.copies import SMALL_COPY_BYTES
from warpline.replay.whatif import Prediction
from warpline.trace.columns import Bools
from warpline.units import duration, size

UPLOAD = "DataLoader(…, pin_memory=True) and batch.to('cuda', non_blocking=True)"
DOWNLOAD = "host = torch.empty(shape, pin_memory=True), made once, and host.copy_(x, non_blocking=True) for results"


def look(evidence: Evidence, prediction: Prediction) -> Claim | None:
    """Makes the claim where the evidence supports it."""
    scene = evidence.scene
    # A small copy to the host is a number somebody looks at, one to the device a number somebody has: the wait matters.
    direction, copy = scene.work_text("copy_kind"), scene.kind == "memcpy"
    up = copy & (direction == "HtoD") & (scene.work_text("source_memory") == "Pageable")
    down = copy & (direction == "DtoH") & (scene.work_text("target_memory") == "Pageable")
    up, down = up & (scene.bytes > FEW_NUMBERS_BYTES), down & (scene.bytes > SMALL_COPY_BYTES)
    copies = up | down
    if not evidence.per_step(copies):
        return None
    total = float(scene.bytes[evidence.in_steps(copies)].sum()) / evidence.steps
    way = "from and to" if up.any() and down.any() else "from" if up.any() else "to"
    return Claim(
        f"{several(evidence.per_step(copies), 'copy', 'copies')} a step ({size(total)}, "
        f"{duration(evidence.time_per_step(copies))}) {way} pageable memory: each blocks the CPU until it is staged.",
        evidence.places(copies),
        "; ".join(
            _advice(evidence, nodes, text)
            for nodes, text in ((up, UPLOAD), (down, DOWNLOAD))
            if evidence.per_step(nodes)
        ),
    )


def _advice(evidence: Evidence, copies: Bools, text: str) -> str:
    """What to write for copies of one direction, and in which function most of them are."""
    places = evidence.places(copies)
    return text + in_function(places[0].spot if places else "")


RULE = Rule(
    name="pageable_copy",
    cause="transfer",
    fix="pin_memory",
    how=f"{UPLOAD}; {DOWNLOAD}",
    look=look,
    least_gain=0.0,
)
