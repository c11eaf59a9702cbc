"""Why an nsys recording is empty or incomplete, from its diagnostics, program output, CUDA processes and sizes."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec.structs import replace

from warpline.doctor.advice import check_of, health_table
from warpline.doctor.failures import known_failure
from warpline.doctor.messages import Message, read_messages
from warpline.doctor.model import Check
from warpline.sources.health import HealthEntry
from warpline.sources.nsys.evidence import RecordedEvidence, read_evidence
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace
from warpline.units import several, size

LARGE_PROFILE_BYTES = 1_000_000_000
CONTAINER_CLIENTS = {"docker", "podman", "nerdctl", "kubectl", "docker-compose", "crictl"}
"""Programs that run the program through a daemon; apptainer and enroot run it directly."""
_LARGE_TABLES = {
    "OSRT_API": "operating-system calls",
    "OSRT_CALLCHAINS": "their backtraces",
    "SCHED_EVENTS": "context switches",
    "COMPOSITE_EVENTS": "CPU samples",
    "SAMPLING_CALLCHAINS": "CPU backtraces",
}
_REPORTED_BY_THE_READER = {
    "program-failed",
    "process-without-cuda",
    "driver-newer-than-nsys",
    "recording-cut-short",
}
"""Failures that the reader reports as health entries, because it knows what was recorded."""
_RANKS = re.compile(
    r"(?:--nproc[-_]per[-_]node|--tensor[-_]parallel[-_]size|--data[-_]parallel[-_]size|--num[-_]processes|--tp(?:-size)?"
    r"|-tp|-np)[ =](\d{1,4})\b"
)


def examine_recording(path: Path) -> list[Check]:
    """All checks about an SQLite export."""
    trace = open_trace(path)
    evidence = read_evidence(path)
    # The trace decides, as in every other command; the evidence only says which processes ran kernels.
    kernels = bool(trace.gpu.kind.equal("kernel", "graph").any())
    entries = trace.health_entries
    codes = {entry.code for entry in entries}
    symptoms = health_table().symptoms
    checks = [check_of(entry, codes, kernels) for entry in entries if entry.code not in symptoms]
    checks = _from_texts(evidence, checks, kernels)
    if not kernels:
        checks = _with_cause(trace, evidence, checks, _first_message(entries))
    checks += _ranks(evidence) + _weight(path, evidence)
    return [*_once(checks), contents(trace)]


def contents(trace: Trace) -> Check:
    """What was recorded, layer by layer from the operating system down to the GPU, and what was not."""
    kinds = trace.gpu.kind
    layers = (
        (len(trace.osrt), "operating-system call", "operating-system calls"),
        (len(trace.ops), "PyTorch op", "PyTorch ops"),
        (len(trace.ranges), "range", "NVTX or profiler ranges"),
        (len(trace.api), "CUDA call", "CUDA calls"),
        (int(kinds.equal("kernel", "graph").sum()), "kernel", "kernels"),
        (int(kinds.equal("memcpy", "memset").sum()), "copy", "copies and memsets"),
    )
    seen = ", ".join(several(count, one, many) for count, one, many in layers if count)
    absent = ", ".join(many for count, _, many in layers if not count)
    return Check("contents", "ok", seen or "no event", f"Not in the file: {absent}." if absent else "")


def _first_message(entries: list[HealthEntry]) -> str:
    """The reader's message that there is no kernel."""
    symptoms = health_table().symptoms
    return next((entry.message for entry in entries if entry.code in symptoms), "No kernel was recorded.")


def _from_texts(evidence: RecordedEvidence, checks: list[Check], kernels: bool) -> list[Check]:
    """Add failures that only the program's output or nsys's diagnostics show."""

    def unjudged(message: Message) -> bool:
        return message.failure not in _REPORTED_BY_THE_READER

    known = {check.failure for check in checks}
    texts = "\n".join([*evidence.outputs, *evidence.remarks])
    more = [check for check in read_messages(texts, unjudged) if check.failure not in known]
    if kernels:
        more = [_survived(check) for check in more]
    # If the profiler's own failure killed the program, the program did not fail by itself.
    if any(check.failure == known_failure("old-nsys-on-new-glibc").number for check in more):
        checks = [check for check in checks if check.failure != known_failure("program-failed").number]
    return more + checks


def _survived(check: Check) -> Check:
    """A failure within the program, in a recording that has its kernels: a warning."""
    if check.state != "problem":
        return check
    means = f"{check.means} This recording still has its kernels."
    return replace(check, state="warning", means=means)


def _with_cause(trace: Trace, evidence: RecordedEvidence, checks: list[Check], message: str) -> list[Check]:
    """Add the most likely cause of an empty recording."""
    facts = evidence.facts
    if facts.stopped_by_limit and facts.limit_ms is not None:
        limit = f"the recording was stopped by its time limit of {facts.limit_ms / 1e3:g} s"
        checks = [check for check in checks if check.failure != known_failure("recording-cut-short").number]
        lost = next((text for text in evidence.remarks if "CUPTI buffers" in text), "")
        handed = re.search(r"(?<!\d)(\d++) of (\d++)", lost)
        buffers = f", and CUPTI had delivered {handed[1]} of {handed[2]} buffers" if handed else ""
        checks.append(known_failure("recording-cut-short").found(f"{limit}{buffers}", "problem"))
    if any(check.state == "problem" for check in checks):
        return checks
    words = [word.rpartition("/")[2] for word in facts.command.split()]
    client = next((word for word in words[:3] if word in CONTAINER_CLIENTS), "")
    if client and not len(trace.api):
        return [*checks, known_failure("outside-the-container").found(f"the recorded program is {client}: {message}")]
    if facts.collected and "Cuda" not in facts.collected:
        check = Check("cuda-not-traced", "problem", message, "", ("nsys profile -t cuda,nvtx …",))
        return [*checks, check]
    if len(trace.api):
        means = "The program initialised CUDA but launched nothing during the recording: it stopped early, or waited."
        do = ("record until the first step is done: remove or raise --duration",)
        return [*checks, Check("nothing-launched", "problem", message, means, do)]
    return [*checks, known_failure("process-without-cuda").found(message)]


def _ranks(evidence: RecordedEvidence) -> list[Check]:
    """A program of several ranks in which only some have kernels."""
    requested = [int(number) for number in _RANKS.findall(evidence.facts.command)]
    recorded = len(evidence.kernel_processes)
    if not requested or not recorded or recorded >= max(requested):
        return []
    seen = f"the command starts {max(requested)} processes, but only {recorded} recorded kernels"
    return [known_failure("forked-workers").found(seen, "warning")]


def _weight(path: Path, evidence: RecordedEvidence) -> list[Check]:
    """A check if the recording is too large to open easily, with the tables that make it so."""
    length = path.stat().st_size
    if length < LARGE_PROFILE_BYTES:
        return []
    noisy = sorted(
        ((count, _LARGE_TABLES[table]) for table, count in evidence.rows.items() if table in _LARGE_TABLES),
        reverse=True,
    )
    what = "; ".join(f"{count:,} {name}" for count, name in noisy[:3])
    return [known_failure("too-large").found(f"the file size is {size(length)}{f': {what}' if what else ''}")]


def _once(checks: list[Check]) -> list[Check]:
    """Each failure once; the first has the best evidence."""
    by_name: dict[tuple[str, str], Check] = {}
    for check in checks:
        key = (check.name, "" if check.failure else check.seen)
        by_name.setdefault(key, check)
    return list(by_name.values())
