"""Explanations of names: which names are known, and what is said about them."""

from __future__ import annotations

import difflib
import re
from importlib import import_module
from typing import Any

from msgspec import Struct, to_builtins

from warpline.analyses.stats import REPORTS
from warpline.analyses.words import KINDS, names_of, words_of
from warpline.compare.step_numbers import MEANINGS
from warpline.doctor.failures import known_failures
from warpline.fixes.registry import all_fixes
from warpline.hardware.counters.explain import explain
from warpline.hardware.counters.table import catalogue
from warpline.kernels import identify
from warpline.lint.rules import RULES
from warpline.reports.pages import concept, concepts, lesson, lessons, reason, without_links
from warpline.work.registry import find_model

SCHEMA = "warpline.explain/1"
_TITLES = {
    "api": "CUDA or HIP call",
    "os": "call of the operating system",
    "class": "kernel class",
    "cause": "cause",
    "health": "health code",
}
_WHEN = {
    "once": "once per process, library or object",
    "step": "in every step",
    "wait": "waits",
    "ask": "a query",
}
NEAR = 5
_PLAIN_WORDS = re.compile(r"[a-z]{1,40}|[A-Za-z]{1,40}(?: [a-z]{1,40}){1,5}")
"""Such as `cache` and `KV cache`: words of the language, not names of kernels, though a pattern may fit them."""


class Meaning(Struct, frozen=True):
    """What one name means."""

    name: str
    kind: str
    """CUDA or HIP call, kernel class, fix, finding, …"""
    text: str
    when: str | None = None
    more: str | None = None
    """The command that says more."""

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return to_builtins(self)


def meanings(name: str) -> tuple[Meaning, ...]:
    """All meanings of a name: `memory` is a kernel class and a cause. Empty if it is unknown."""
    found: list[Meaning] = []
    for kind in (kind for kind in KINDS if kind != "op"):
        words = words_of(name, kind)
        if words is not None:
            when = _WHEN[words.when] if kind in {"api", "os"} else None
            more = "docs/health.md" if kind == "health" else None
            found.append(Meaning(name, _TITLES[kind], without_links(words.text), when, more))
    found += _of_fixes(name)
    found += _of_pages(name)
    if name in REPORTS:
        report = REPORTS[name]
        text = f"{report.title}: {(report.build.__doc__ or '').strip()}"
        found.append(Meaning(name, "report of nsys stats", text, None, f"warpline stats TRACE -r {name}"))
    if name in MEANINGS:
        found.append(
            Meaning(name, "number of the gate", MEANINGS[name], None, f"warpline gate TRACE --budget '{name}<=LIMIT'")
        )
    if name in known_failures():
        failure = known_failures()[name]
        text = f"{failure.cause} What to do: {'; '.join(failure.do)}."
        found.append(Meaning(name, "failure of profiling", text, None, "docs/doctor.md"))
    for rule in RULES:
        if rule.code == name:
            text = f"{rule.meaning} To fix it, {rule.fix}."
            found.append(Meaning(name, "lint code", text, None, "docs/commands/lint.md"))
    return tuple(found) or _of_op(name) or _of_metric(name) or _of_kernel(name)


def _of_fixes(name: str) -> list[Meaning]:
    found = []
    for fix in all_fixes().values():
        if fix.name == name:
            text = f"{fix.summary} Effort: {fix.effort.replace('_', ' ')}."
            found.append(Meaning(name, "fix", text, None, f"warpline whatif TRACE --fix {name}"))
        for rule in fix.findings:
            if rule.name == name:
                text = f"{rule.summary}. Cause: {rule.cause}. Fix: {fix.name}. {rule.advice.pytorch}"
                found.append(Meaning(name, "finding", text, None, f"docs/findings/{name}.md"))
    return found


def _of_op(name: str) -> tuple[Meaning, ...]:
    """What a framework op does, by the model of its work."""
    model = find_model(name) if "::" in name else None
    if model is None:
        words = words_of(name, "op")
        return () if words is None else (Meaning(name, "op", words.text, None, "warpline ops TRACE"),)
    family = model.__module__.rpartition(".")[2]
    about = (import_module(model.__module__).__doc__ or "").partition("\n")[0]
    own = (model.__doc__ or "").partition("\n")[0]
    return (Meaning(name, f"op, family {family}", f"{about} This op: {own}", None, "docs/work-models.md"),)


def _of_pages(name: str) -> list[Meaning]:
    """Concepts, reasons inside a kernel, and lessons."""
    found = []
    known = concept(name)
    if known is not None:
        found.append(Meaning(name, "concept", without_links(known)))
    inside = reason(name)
    if inside is not None:
        found.append(Meaning(name, "reason inside a kernel", inside, None, "warpline dive REPORT"))
    text = lesson(name)
    if text is not None:
        found.append(Meaning(name, "lesson", text))
    if name in {"lesson", "lessons"}:
        longest = max(map(len, lessons()))
        listed = "".join(f"\n  warpline explain {one:{longest}}  {title}" for one, title in lessons().items())
        found.append(Meaning(name, "lessons", f"five short stories on recordings of the repository:{listed}"))
    if name in {"concept", "concepts"}:
        found.append(Meaning(name, "the concepts", ", ".join(concepts())))
    return found


def _of_metric(name: str) -> tuple[Meaning, ...]:
    if "__" not in name:
        return ()
    one = explain(name, None, catalogue(None))
    if one.state == "unknown" or not one.what:
        return ()
    good = f" Good: {one.good}." if one.good else ""
    return (Meaning(name, "metric of Nsight Compute", f"counts {one.what}.{good}", None, f"warpline metric {name}"),)


def _of_kernel(name: str) -> tuple[Meaning, ...]:
    if _PLAIN_WORDS.fullmatch(name):
        return ()
    one = identify(name)
    words = words_of(one.kernel_class, "class")
    if one.kernel_class in {"unknown", "other"} or words is None:
        return ()
    return (Meaning(name, f"kernel, class {one.kernel_class}", words.text, None, f"warpline kernel '{name}'"),)


def near(name: str) -> list[str]:
    """Known names that look like it, the closest first."""
    known = [*(word for kind in KINDS for word in names_of(kind)), *REPORTS, *all_fixes(), *_SOME_CALLS]
    known += [*concepts(), *lessons(), *MEANINGS, *known_failures()]
    known += [*(rule.name for fix in all_fixes().values() for rule in fix.findings), *(rule.code for rule in RULES)]
    return difflib.get_close_matches(name, dict.fromkeys(known), NEAR, 0.6)


_SOME_CALLS = (
    *("cuLibraryLoadData", "cuModuleLoadData", "cudaLaunchKernel", "cuLaunchKernel", "cuLaunchKernelEx"),
    *("cudaMemcpyAsync", "cudaMemcpy", "cudaMemsetAsync", "cudaMalloc", "cudaMallocAsync", "cudaHostAlloc", "cudaFree"),
    *("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaEventRecord", "cudaEventQuery"),
    *("cudaStreamWaitEvent", "cudaGraphLaunch", "cudaGraphInstantiate", "cudaStreamBeginCapture", "cudaSetDevice"),
)
"""Calls that most traces have, for near matches: the words of calls are found by pattern."""


def explained(one: Meaning) -> str:
    """A meaning as two lines of text."""
    details = " · ".join(filter(None, (one.kind, one.when, one.more)))
    return f"{one.name}: {one.text}\n  {details}\n"
