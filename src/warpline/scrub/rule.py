"""One pattern of text that leaks, and what takes its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from warpline.scrub.kinds import Kind
from warpline.scrub.pseudonyms import Pseudonyms


@dataclass(frozen=True, slots=True)
class Rule:
    """Replaces what ``pattern`` finds; a replacement of None, or by the same text, is no leak."""

    kind: Kind
    pattern: re.Pattern[str]
    replacement: Callable[[re.Match[str], Pseudonyms], str | None]
    needles: tuple[str, ...]
    """One of these, in small letters, is in every match: a quick way to pass over most texts; empty where none is."""

    def may_match(self, lowered: str) -> bool:
        """Whether a text, given in small letters, can hold a match."""
        return not self.needles or any(needle in lowered for needle in self.needles)

    def apply(self, text: str, names: Pseudonyms, found: list[Kind]) -> str:
        """The text with all matches replaced, each of which is added to ``found``."""

        def replaced(match: re.Match[str]) -> str:
            new = self.replacement(match, names)
            if new is None or new == match[0]:
                return match[0]
            found.append(self.kind)
            return new

        return self.pattern.sub(replaced, text)
