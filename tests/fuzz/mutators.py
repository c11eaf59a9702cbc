"""Every mutation by name, for each kind of input."""

from __future__ import annotations

from tests.fuzz import byte_mutators, kineto_structure, sqlite_structure, texts

KINETO = kineto_structure.MUTATIONS
SQLITE = sqlite_structure.MUTATIONS
LINES = texts.MUTATIONS
BYTES = byte_mutators.MUTATIONS
