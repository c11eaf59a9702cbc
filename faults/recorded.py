"""The recorded cases: what their manifests say, where their recordings lie, and which variants are kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.jobs import FAULTY, FIXED, PLAIN
from faults.programs import SUITES

RECORDINGS = Path(__file__).parent / "recordings"
"""One folder a suite."""
MANIFEST = "faults.json"
SUITES_KEPT_WHOLE = ("planted", "held_out")
"""Suites of which every variant is kept. Of the others only the variant that the score reads is, for the size of the
checkout. These two are the first that were recorded; neither was chosen by its score."""
FORMER_FOLDER, PROGRAMS_FOLDER = "warpline/lab/faults/", "faults/programs/"
"""Where the programs lay when most of the recordings were made, and where they lie now."""


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """One case of a suite, as it was measured."""

    suite: str
    folder: Path
    entry: dict[str, Any]
    """What the manifest says of it."""

    @property
    def name(self) -> str:
        """Its name, which no other case has."""
        return str(self.entry["name"])

    @property
    def is_kept(self) -> bool:
        """Whether its recordings are part of the checkout; the largest of some suites are not."""
        return bool(self.entry.get("kept", True))

    @property
    def scored_variant(self) -> str:
        """The faulty program as most people record it: without Python stacks, where there are two recordings."""
        return PLAIN if self.entry["stacks"] else FAULTY

    @property
    def kept_variants(self) -> tuple[str, ...]:
        """The variants whose recordings are part of the checkout."""
        if not self.is_kept:
            return ()
        if self.suite in SUITES_KEPT_WHOLE:
            return (FAULTY, FIXED, PLAIN) if self.entry["stacks"] else (FAULTY, FIXED)
        return (self.scored_variant,)

    @property
    def kept_with_stacks(self) -> bool:
        """Whether the checkout has a recording with Python stacks."""
        return bool(self.entry["stacks"]) and FAULTY in self.kept_variants

    @property
    def timed_fixes(self) -> dict[str, dict[str, int]]:
        """What the stopwatch showed with each fix that was tried."""
        times: dict[str, dict[str, int]] = dict(self.entry["other_fixes"])
        if self.entry["innocent"] and self.entry["innocent_step_ns"]:
            times[self.entry["innocent"]] = self.entry["innocent_step_ns"]
        if self.entry["fix"]:
            times[self.entry["fix"]] = self.entry["bare_step_ns"]["fixed"]
        return times

    def recording(self, variant: str) -> Path:
        """The file of a variant, whether or not it is kept."""
        suffix = "" if variant == FAULTY else f".{variant}"
        return self.folder / f"{self.name}{suffix}.json.gz"


def recorded_suites() -> list[str]:
    """The suites that were recorded; one that is written and waits for its recording is left out."""
    return [suite for suite in SUITES if (RECORDINGS / suite / MANIFEST).exists()]


def manifest_of(suite: str) -> dict[str, Any]:
    """What was measured of a suite."""
    manifest: dict[str, Any] = json.loads((RECORDINGS / suite / MANIFEST).read_text(encoding="utf-8"))
    return manifest


def recorded_cases(*suites: str) -> Iterator[RecordedCase]:
    """The cases of some suites, or of all, in the order in which they are written."""
    for suite in suites or recorded_suites():
        for entry in manifest_of(suite)["cases"]:
            yield RecordedCase(suite, RECORDINGS / suite, entry)


def program_file(recorded: str) -> str:
    """The path of a program's file from the repository's root, for a path as a recording or a manifest has it."""
    before, found, name = recorded.partition(FORMER_FOLDER)
    return PROGRAMS_FOLDER + name if found and before in ("", "src/") else recorded
