"""Scrub a torch.profiler trace as a stream.

The text is split at its quotation marks, so that invalid JSON, which torch itself sometimes writes, can be read too: if
a mark is missing, the parts between texts are scrubbed like texts. There are few distinct texts, and each is scrubbed
once. The first pass learns the names of people and machines; the second replaces them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from warpline.scrub.kinds import Kind, Tally
from warpline.scrub.kineto_keys import keyed_value, kind_in_header, kind_of, learn_keyed
from warpline.scrub.kineto_places import Places, Regions, regions
from warpline.scrub.text import Scrubber

PIECE_BYTES = 4 << 20
MAX_PIECE_BYTES = 64 << 20
"""A piece this long without the end of an event is split anywhere."""
MAX_CACHE_BYTES = 64 << 20
"""Memory for the results of distinct texts, including Python's overhead."""
STRING_OVERHEAD_BYTES = 120
MAX_KEY_BYTES = 64
MIN_LEAK_BYTES = 5

_BETWEEN_EVENTS = re.compile(rb"\}\s*,\s*(?=\{)")
_NUMBERS = b"0123456789.,:[]{} \n\t\r+-eE"
_NO_TEXT = re.compile(rb"(?:tru|fals|null|NaN|Infinity|inf|nan)*")
"""What remains of values between texts after digits and exponents are removed."""
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def event_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Split the text between events."""
    pending: list[bytes] = []
    size = 0
    for piece in pieces:
        pending.append(piece)
        size += len(piece)
        if size < PIECE_BYTES:
            continue
        text = b"".join(pending)
        # Only the end is searched: an event is short.
        ends = [match.end() for match in _BETWEEN_EVENTS.finditer(text, max(0, len(text) - (64 << 10)))]
        if not ends and size > MAX_PIECE_BYTES:
            ends = [len(text)]
        cut = ends[-1] if ends else 0
        if cut:
            yield text[:cut]
        pending = [text[cut:]]
        size = len(text) - cut
    yield b"".join(pending)


# Escaped quotation marks must not split a text. A byte that never occurs in UTF-8 replaces them meanwhile.
def _hidden(text: bytes) -> bytes:
    return text.replace(b"\xff", b"\xff\x03").replace(b"\\\\", b"\xff\x01").replace(b'\\"', b"\xff\x02")


def _shown(text: bytes) -> bytes:
    if b"\xff" not in text:
        return text
    return text.replace(b"\xff\x02", b'\\"').replace(b"\xff\x01", b"\\\\").replace(b"\xff\x03", b"\xff")


def decoded(raw: bytes) -> str:
    """The text of a JSON string, even if it is invalid."""
    text = _shown(raw).decode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        code = int(match[1], 16)
        # Halves of a surrogate pair stay as written.
        return match[0] if 0xD800 <= code < 0xE000 else chr(code)
    return _PLAIN.get(match[2], match[2])


def encoded(text: str) -> bytes:
    """The body of a JSON string, with escaped marks replaced as in the input."""
    escaped = json.dumps(text, ensure_ascii=False)[1:-1]
    return _hidden(escaped.encode("utf-8", "surrogateescape"))


@dataclass(slots=True)
class TraceScrubber:
    """Scrubs one trace, piece by piece."""

    scrubber: Scrubber
    tally: Tally
    _known: dict[bytes, tuple[bytes, tuple[Kind, ...]] | None] = field(default_factory=dict)
    """The result of each text; None if it does not leak."""
    _keys: dict[bytes, tuple[Kind | None, Kind]] = field(default_factory=dict)
    """Keys whose values always leak: their kind within an event, and outside."""
    _seen: set[bytes] = field(default_factory=set)
    _remembered_bytes: int = 0
    _in_events: bool = False

    def learn(self, piece: bytes) -> None:
        """The first pass: learn names from a piece."""
        parts = _hidden(piece).split(b'"')
        texts = _texts(parts)
        fresh = [text for text in texts if text not in self._seen]
        for part in fresh:
            if len(part) > 2:
                text = decoded(part)
                self.scrubber.learn(text.replace("\0", "\n"))
                self._note_key(part, text)
        self._seen.update(fresh)
        if self._too_much(fresh):
            self._seen.clear()
        for index, kind in self._keyed(parts, texts, self._regions(parts)):
            if parts[index + 1].strip() == b":" and index + 2 < len(parts):
                learn_keyed(kind, decoded(parts[index + 2]), self.scrubber)

    def _note_key(self, part: bytes, text: str) -> None:
        kind = kind_in_header(text) if len(text) < MAX_KEY_BYTES else None
        if kind is not None:
            self._keys[part] = (kind_of(text), kind)

    def again(self) -> None:
        """Reset to the start of the file, for the second pass."""
        self._in_events = False
        self._seen.clear()
        self._remembered_bytes = 0

    def _too_much(self, texts: list[bytes]) -> bool:
        """Whether remembered results must be dropped because new names were learnt."""
        self._remembered_bytes += sum(map(len, texts)) + STRING_OVERHEAD_BYTES * len(texts)
        if self._remembered_bytes <= MAX_CACHE_BYTES:
            return False
        self._remembered_bytes = 0
        return True

    def _regions(self, parts: list[bytes]) -> Regions:
        found = regions(parts, self._in_events)
        self._in_events = self._in_events or found.start < len(parts)
        return found

    def _keyed(self, parts: list[bytes], texts: dict[bytes, None], where: Regions) -> list[tuple[int, Kind]]:
        """Kinds of the sensitive keys of a piece, without the kinds to keep."""
        if texts.keys().isdisjoint(self._keys):
            return []
        found = []
        for index, part in enumerate(parts[:-1]):
            if part in self._keys and parts[index + 1].lstrip()[:1] == b":":
                kind = self._keys[part][0 if where.in_events(index) else 1]
                if kind is not None and kind not in self.scrubber.keep:
                    found.append((index, kind))
        return found

    def clean(self, piece: bytes) -> bytes:
        """The second pass: return the scrubbed piece."""
        parts = _hidden(piece).split(b'"')
        where = self._regions(parts)
        texts = _texts(parts)
        leaks = self._leaking(texts)
        keyed = self._keyed(parts, texts, where)
        if not leaks and not keyed:
            return piece
        places = Places(list(parts), where)
        new: list[bytes | None] = list(parts)
        by_key = self._clean_keyed(parts, new, keyed)
        for index, part in enumerate(parts):
            if index in by_key:
                kind, times = by_key[index]
                self.tally.add([kind], places.of(index), times)
            elif part in leaks and new[index] is part:
                new[index], kinds = leaks[part]
                self.tally.add(kinds, places.of(index))
        return _shown(b'"'.join(part for part in new if part is not None))

    def _leaking(self, texts: dict[bytes, None]) -> dict[bytes, tuple[bytes, tuple[Kind, ...]]]:
        found = {}
        for text in texts:
            if len(text) < MIN_LEAK_BYTES:
                continue
            try:
                result = self._known[text]
            except KeyError:
                cleaned, kinds = self.scrubber.clean(decoded(text))
                result = (encoded(cleaned), kinds) if kinds else None
                if self._too_much([text]):
                    self._known.clear()
                self._known[text] = result
            if result is not None:
                found[text] = result
        return found

    def _clean_keyed(
        self, parts: list[bytes], new: list[bytes | None], keyed: list[tuple[int, Kind]]
    ) -> dict[int, tuple[Kind, int]]:
        """Scrub the values of sensitive keys; return the kind and the number of leaks for each text or key."""
        done: dict[int, tuple[Kind, int]] = {}
        for index, kind in reversed(keyed):
            start = parts[index + 1].lstrip()[1:].lstrip()[:1]
            if start == b"" and index + 2 < len(parts):
                self._clean_one(parts, new, index + 2, kind, done)
            elif start in (b"{", b"[") and kind in (Kind.ENVIRONMENT, Kind.COMMAND):
                times = _emptied(parts, new, index + 1)
                if times:
                    done = {here: entry for here, entry in done.items() if new[here] is not None}
                    done[index] = (kind, times)
            elif start == b"[":
                for here in range(index + 2, len(parts) - 1, 2):
                    self._clean_one(parts, new, here, kind, done)
                    if parts[here + 1].strip() != b",":
                        break
        return done

    def _clean_one(
        self, parts: list[bytes], new: list[bytes | None], index: int, kind: Kind, done: dict[int, tuple[Kind, int]]
    ) -> None:
        old = decoded(parts[index])
        text = keyed_value(kind, old, self.scrubber)
        if text != old:
            new[index] = encoded(text)
            done[index] = (kind, 1)


def _emptied(parts: list[bytes], new: list[bytes | None], gap: int) -> int:
    """Empty the object or list that opens in the part ``gap``; return the number of texts removed."""
    opening = parts[gap].index(b"{") if b"{" in parts[gap] else parts[gap].index(b"[")
    depth = 0
    for index in range(gap, len(parts), 2):
        for position, char in enumerate(parts[index]):
            if index == gap and position < opening:
                continue
            depth += (char in b"{[") - (char in b"}]")
            if depth == 0:
                head, closing = parts[gap][: opening + 1], parts[index][position:]
                if index == gap:
                    return 0
                new[gap] = head + closing
                new[gap + 1 : index + 1] = [None] * (index - gap)
                return (index - gap) // 2
    # The piece ends first, as in a truncated file: remove all of it.
    new[gap] = parts[gap][: opening + 1]
    new[gap + 1 :] = [None] * (len(parts) - gap - 1)
    return (len(parts) - gap) // 2


def _texts(parts: list[bytes]) -> dict[bytes, None]:
    """The distinct texts in order; all parts if a missing quotation mark has swapped texts and separators."""
    between = b"".join(parts[::2]).translate(None, _NUMBERS)
    return dict.fromkeys(parts[1::2] if _NO_TEXT.fullmatch(between) else parts)
