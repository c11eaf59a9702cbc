"""Health entries: what is wrong or doubtful about a profile; every report shows them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Severity = Literal["info", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class HealthEntry(Struct, frozen=True):
    """One entry: ``error`` means that answers are missing or wrong, ``warning`` that some are doubtful."""

    code: str
    """Stable kebab-case word, for example ``truncated-file``."""
    severity: Severity
    message: str
    """One sentence with numbers, for a person."""
