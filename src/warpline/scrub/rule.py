"""One pattern of text that leaks, and its replacement."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from warpline.scrub.kinds import Kind
from warpline.scrub.pseudonyms import Pseudonyms


@dataclass(frozen=True, slots=True)
class Rule:
    """Replaces matches of ``pattern``; a replacement of None, or by the same text, is not a leak."""

    kind: Kind
    pattern: re.Pattern[str]
    replacement: Callable[[re.Match[str], Pseudonyms], str | None]
    needles: tuple[str, ...]
    """Lower-case words, one of which is in every match, to skip most texts quickly; empty if there are none."""

    def may_match(self, lowered: str) -> bool:
        """Whether a lower-case text can contain a match."""
        return not self.needles or any(needle in lowered for needle in self.needles)

    def apply(self, text: str, names: Pseudonyms, found: list[Kind]) -> str:
        """Replace all matches in the text, and add each of them to ``found``."""

        def replaced(match: re.Match[str]) -> str:
            new = self.replacement(match, names)
            if new is None or new == match[0]:
                return match[0]
            found.append(self.kind)
            return new

        return self.pattern.sub(replaced, text)
