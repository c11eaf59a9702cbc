"""What is wrong or odd about a profile, said before any answer drawn from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["info", "warning", "error"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class HealthEntry:
    """One remark: ``error`` means answers are missing or wrong, ``warning`` that some are doubtful."""

    code: str
    """Stable kebab-case word, for example ``truncated-file``."""
    severity: Severity
    message: str
    """One sentence with numbers, for a person."""
