"""Every mutation by name, for each kind of input."""

from __future__ import annotations

from tests.fuzz import (
    byte_mutators,
    kineto_shapes,
    kineto_structure,
    snapshot_mutators,
    source_mutators,
    sqlite_structure,
    texts,
)

KINETO = {**kineto_structure.MUTATIONS, **kineto_shapes.MUTATIONS}
SQLITE = sqlite_structure.MUTATIONS
LINES = texts.MUTATIONS
SOURCE = {**texts.MUTATIONS, **source_mutators.MUTATIONS}
SNAPSHOT = snapshot_mutators.MUTATIONS
BYTES = byte_mutators.MUTATIONS
