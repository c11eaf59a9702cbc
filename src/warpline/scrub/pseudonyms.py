"""Pseudonyms: one for each text of a file, by order of first appearance.

The order gives nothing away and needs no key: unlike a hash, a pseudonym cannot be tested against a guess. The same
file always gives the same pseudonyms.
"""

from __future__ import annotations

from warpline.scrub.vocabulary import CODE_LETTERS


class Pseudonyms:
    """The pseudonym of each text, by group."""

    def __init__(self) -> None:
        self._known: dict[str, dict[object, int]] = {}

    def number(self, group: str, value: object) -> int:
        """The number of a value within its group, from 0."""
        known = self._known.setdefault(group, {})
        return known.setdefault(value, len(known))

    def code(self, group: str, value: object) -> str:
        """The same in letters: B, C, … Z, BB, BC."""
        return letters(self.number(group, value))


def letters(number: int) -> str:
    """A number as letters without a gap: after Z comes BB.

    >>> letters(0), letters(11), letters(12)
    ('B', 'Z', 'BB')
    """
    text, number = "", number + 1
    while number:
        number, digit = divmod(number - 1, len(CODE_LETTERS))
        text = CODE_LETTERS[digit] + text
    return text
