"""Texts on which a regular expression is slow if it can be: what it repeats, many times, and then an end that fails."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

LETTERS = "a0_ .:<([-/\\\"'x\n=,%{A)]>é@#|&*\t;+"
ENDS = ("", "\x00", "\n")
UNBOUNDED = 1000
SHORT, LONGER, LONG = 300, 1200, 4800
GROWTH = 7
"""From one length to the next: four times in linear time, sixteen times in quadratic."""
MOST_ATTACKS, SUSPECTS, REPEATS = 300, 6, 9
ENOUGH_NS = 300_000_000
"""So long no linear pattern takes for all short texts: there are suspects by then."""
LIMIT_S = 5
"""Of the processor's time for one text: only exponential patterns take so long."""
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_CLASSES: dict[Any, Callable[[str], bool]] = {
    codes.CATEGORY_DIGIT: str.isdigit,
    codes.CATEGORY_NOT_DIGIT: lambda letter: not letter.isdigit(),
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_NOT_SPACE: lambda letter: not letter.isspace(),
    codes.CATEGORY_WORD: lambda letter: letter.isalnum() or letter == "_",
    codes.CATEGORY_NOT_WORD: lambda letter: not (letter.isalnum() or letter == "_"),
}


class TooSlowError(Exception):
    """The processor's time is up."""


def slow_text(pattern: re.Pattern[Any], method: str, longest: int = LONG) -> str:
    """The start of a text that takes more than linear time; empty if there is none of at most that length."""
    text = ""
    before = signal.signal(signal.SIGVTALRM, _stop)
    try:
        made = sorted(attacks(pattern))
        took: dict[tuple[str, str, str], int] = {}
        for attack in made[:: len(made) // MOST_ATTACKS + 1]:
            text = _text(attack, SHORT, longest)
            took[attack] = _nanoseconds(pattern, method, text)
            if sum(took.values()) > ENOUGH_NS:
                break
        for attack in sorted(took, key=lambda one: -took[one])[:SUSPECTS]:
            text = _text(attack, LONG, longest)
            if _grows(pattern, method, [_text(attack, length, longest) for length in (SHORT, LONGER, LONG)]):
                return text[:200]
    except TooSlowError:
        return text[:200]
    finally:
        signal.signal(signal.SIGVTALRM, before)
    return ""


def _grows(pattern: re.Pattern[Any], method: str, texts: list[str]) -> bool:
    """Whether every text takes much longer than the one before: whatever else the processor does, the least counts."""
    shorter = 0
    for text in texts:
        took = []
        for _ in range(REPEATS):
            took.append(_nanoseconds(pattern, method, text))
            if took[-1] <= GROWTH * shorter:
                return False
        shorter = min(took)
    return True


def _text(attack: tuple[str, str, str], length: int, longest: int) -> str:
    start, pump, end = attack
    return (start + pump * (length // len(pump)))[:longest] + end


def _stop(*_: object) -> None:
    raise TooSlowError


def _nanoseconds(pattern: re.Pattern[Any], method: str, text: str) -> int:
    told = text.encode() if isinstance(pattern.pattern, bytes) else text
    call = getattr(pattern, method)
    arguments = (told[:0], told) if method == "sub" else (told,)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    begin = time.thread_time_ns()
    try:
        found = call(*arguments)
        if method == "finditer":
            list(found)
        return time.thread_time_ns() - begin
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def attacks(pattern: re.Pattern[Any]) -> set[tuple[str, str, str]]:
    """What comes first, what is repeated, and the end."""
    made = set()
    for before, pumps in _repeated(parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE), [""]):
        for first, pump in product(before[:3], pumps):
            made |= {(first, pump), ("", first + pump), ("", pump), (first + pump, first or pump)}
    return {(first, pump, end) for first, pump in made if pump for end in ENDS}


def _repeated(nodes: Iterable[Any], before: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Of every repetition without a bound: texts that lead to it, and texts that it repeats."""
    for code, told in nodes:
        inner = _inside(code, told)
        if code in _REPEATS and told[1] >= UNBOUNDED:
            pumps = _matching(told[2])
            yield before, pumps + [one + other for one, other in product(pumps[:2], pumps[:5]) if one != other]
        for sequence in inner:
            yield from _repeated(sequence, before)
        before = [text + more for text, more in product(before[:2], _of_node(code, told)[:3])][:4] or before


def _inside(code: Any, told: Any) -> list[Any]:
    """The sequences within a node."""
    if code in _REPEATS:
        return [told[2]]
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [told[1]]
    if code is codes.BRANCH:
        return list(told[1])
    return [told[3]] if code is codes.SUBPATTERN else [told] if code is codes.ATOMIC_GROUP else []


def _matching(nodes: Iterable[Any]) -> list[str]:
    """A few texts that a sequence matches."""
    found = [""]
    for code, told in nodes:
        found = list(dict.fromkeys(one + other for one, other in product(found, _of_node(code, told))))[:6]
    return found


def _of_node(code: Any, told: Any) -> list[str]:
    if code is codes.LITERAL:
        return [chr(told)]
    if code is codes.NOT_LITERAL:
        return [letter for letter in LETTERS if ord(letter) != told][:6]
    if code is codes.ANY:
        return list(LETTERS[:6])
    if code is codes.IN:
        asked = [*LETTERS, *(chr(one[1]) for one in told if one[0] is codes.LITERAL)]
        asked += [chr(one[1][0]) for one in told if one[0] is codes.RANGE]
        return list(dict.fromkeys(letter for letter in asked if _is_in(told, letter)))[:6]
    if code in _REPEATS:
        return [text * min(max(told[0], 1), told[1], 50) for text in _matching(told[2])]
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [""]
    return [text for sequence in _inside(code, told) for text in _matching(sequence)[:3]][:12] or [""]


def _is_in(members: Iterable[Any], letter: str) -> bool:
    wanted = True
    for code, told in members:
        if code is codes.NEGATE:
            wanted = False
        elif (
            (code is codes.LITERAL and ord(letter) == told)
            or (code is codes.RANGE and told[0] <= ord(letter) <= told[1])
            or (code is codes.CATEGORY and _CLASSES[told](letter))
        ):
            return wanted
    return not wanted
