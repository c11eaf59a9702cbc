"""The words that may pass: those of public libraries (``known_*.txt``), and never a person's, a site's or a secret.

A name is made of pieces: runs of letters and digits. A piece passes if all its words are known. A random key, a
password, an account or a project is no such piece, whatever it looks like.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path

MAX_DIGITS = 5
"""Longer numbers may be a PIN, a telephone number or a card; sizes and versions in names are shorter."""
MAX_SHAPE_DIGITS = 6
"""In a known shape with a word in it: ``s161616gemm``."""
MAX_WORD_DIGITS = 4
MIN_LONG_NUMBER_WORDS = 2
"""One word and a year is what passwords are made of; four digits need more words."""
MAX_PIECE_DIGITS = 14
"""Digits beside the words of one piece, as in ``conv2d`` or ``QkvBfloat16H128P64Q8``; as many numbers as words."""
MIN_WORD_SHARE = 0.6
"""Share of a piece's letters that words of three letters or more must have: random text has short runs."""
MAX_PIECE_CHARS = 120
_SCALAR_TYPES = """
    562949953487106 562949953487363 1125899906843648 1125899906844672 1125899906908677 1125899906908928
    1125899906909952 1125899906909960 1125899906910725 1125899907892224 1125899923621888 2814749767106568
    2814749767172868
"""
CONSTANTS = frozenset(
    ("2147483647", "4294967295", "9223372036854775807", "18446744073709551615", *_SCALAR_TYPES.split())
)
"""Limits of integers, and the data types of vLLM as the bits of its `ScalarType`: both stand in template arguments."""
_LONG_INTEGER = re.compile(r"(\d+)u?l{1,2}", re.ASCII)
"""An integer of C++ with its suffix."""

CODE_LETTERS = "BCDFGJKQVWXZ"
"""Letters of pseudonyms. Not digits, because analyses group ranges by their names without digits; no vowels, so that
no pseudonym spells a word."""
_PSEUDONYM = re.compile(
    rf"(?:name|Name|range|domain|file|package|function|thread|process|category|text)[{CODE_LETTERS}]{{1,6}}"
)
_WORD = re.compile(r"MoE|LoRA|ViT|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NUMBER = re.compile(r"\d+")
_LONG_WORD = re.compile(r"[a-z]{3}")
_SUFFIX = re.compile(r"(?:de|d|e|c)?")


@cache
def _words() -> frozenset[str]:
    """Lower-case words of three letters or more."""
    return _lines("known_words.txt")


@cache
def _shapes() -> frozenset[str]:
    """Lower-case pieces with shorter words or digits in them, each number as ``#``: ``#x#x#``, ``sm#``."""
    return _lines("known_shapes.txt")


def _lines(file: str) -> frozenset[str]:
    return frozenset(Path(__file__).with_name(file).read_text("ascii").splitlines())


@lru_cache(maxsize=100_000)
def is_known(piece: str) -> bool:
    """Whether a run of letters and digits may pass.

    >>> [is_known(piece) for piece in ("elementwise", "Conv2d", "sm90", "hunter2", "4111111111111111")]
    [True, True, True, False, False]
    """
    if len(piece) > MAX_PIECE_CHARS or not piece.isascii():
        return False
    if piece.isdigit():
        return len(piece) <= MAX_DIGITS or piece in CONSTANTS
    if (found := _LONG_INTEGER.fullmatch(piece)) and found[1] in CONSTANTS:
        return True
    if _PSEUDONYM.fullmatch(piece):
        return False  # a name that looks like a pseudonym gets one too, so that the two are not taken for each other
    lowered = piece.lower()
    if lowered in _words():
        return True
    numbers = _NUMBER.findall(piece)
    most = MAX_SHAPE_DIGITS if _LONG_WORD.search(lowered) else MAX_DIGITS
    if all(len(number) <= most for number in numbers) and _NUMBER.sub("#", lowered) in _shapes():
        return True
    return _is_made_of_words(piece, numbers) or _is_signature(piece)


def _is_made_of_words(piece: str, numbers: list[str]) -> bool:
    words = _words()
    parts = [part.lower() for part in _WORD.findall(piece) if not part.isdigit()]
    long = [part for part in parts if len(part) > 2]
    if not all(part in words for part in long) or sum(map(len, long)) < MIN_WORD_SHARE * sum(map(len, parts)):
        return False
    # Two letters that no library writes may be the initials of a person.
    if not all({part, f"{part}#"} & _shapes() for part in parts if len(part) == 2):
        return False
    few = len(numbers) <= max(len(long), 1) and sum(map(len, numbers)) <= MAX_PIECE_DIGITS
    most = MAX_WORD_DIGITS - (len(long) < MIN_LONG_NUMBER_WORDS)
    return few and bool(long) and all(len(number) <= most for number in numbers)


def _is_signature(piece: str) -> bool:
    """Whether a piece is Triton's older suffix, ``0d1d2de3``: the numbers of the arguments in order."""
    number, at = int(piece[:1] == "1"), 0
    while at < len(piece) and piece.startswith(str(number), at):
        at = _SUFFIX.match(piece, at + len(str(number))).end()  # type: ignore[union-attr]  # matches always
        number += 1
    return at == len(piece) and number > 1


def known_words(text: str) -> bool:
    """Whether every piece of a text may pass."""
    return all(map(is_known, re.findall(r"[^\W_]+", text)))
