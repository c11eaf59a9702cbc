"""Checks of JSON values by type: each gives the value that may be written, or DROPPED."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

from warpline.scrub.vocabulary import CONSTANTS
from warpline.sources.kineto.decimals import parse_decimal
from warpline.sources.kineto.events import MISSING

Check = Callable[[Any], Any]


class _Dropped:
    """The mark of a value that is not written."""


DROPPED: Final = _Dropped()
MAX_ID: Final = 1 << 32
"""CUPTI's ids have 32 bits. Larger ones (handles, addresses of threads) are renumbered."""
MAX_SIZE: Final = 1 << 45
"""35 TB. Bytes, elements and dimensions stay far below; a card does not."""
MAX_MICROS: Final = 4_200_000_000_000_000
"""The year 2103: far enough from today for readers to take it for impossible, and below the number of a card."""
MAX_DURATION_MICROS: Final = 500_000_000_000_000
"""Sixteen years, beyond which readers take a duration for impossible."""
MAX_NUMBER_DIGITS, SHORT_DIGITS = 9, 6
"""A measured number of more digits is written with fewer: a card has sixteen."""
MAX_NESTING = 4

_NUMBER = re.compile(r"-?\d{1,19}(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_SMALL_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_VERSION = re.compile(r"\d{1,4}(?:\.\d{1,4}){0,2}", re.ASCII)
"""Four numbers would be an address."""
MAX_VERSION: Final = 10**8
"""A driver of HIP is 60342134."""
_PHASES = frozenset(("", *"BEXiICbnesftPNODMvVRcr"))
_SCALARS = (
    r"float|double|int|long|short|char|bool|long int|long long(?: int)?|short int|(?:un)?signed char"
    r"|unsigned (?:int|(?:short|long)(?: int)?)|u?int(?:8|16|32|64)(?:_t)?"
    r"|Half|BFloat16|Float|Double|Int|Long|Short|Char|Byte|Bool|Float[48]_e\dm\d(?:fn|fnuz|uz|fn_x2)?|Float8_e8m0fnu"
    r"|Bits\w{1,8}|U?Int\d{1,2}|Q(?:U?Int(?:8|32|4x2|2x4))|q(?:u?int(?:8|32|4x2|2x4))"
    r"|Complex(?:Half|Float|Double)|bfloat16|float(?:16|32|64)|float8_e\dm\d(?:fn|fnuz)?|half"
)
TYPE = re.compile(
    rf"(?:c10::|at::|std::)?(?:{_SCALARS})|(?:c10::|std::)?complex<(?:c10::)?(?:{_SCALARS})>"
    r"|(?:Scalar|Tensor|Generic|Int|Double|Bool|Optional\w{0,10})?List|Scalar|Tensor|Tuple|Device|Generator|String|None(?:Type)?|Layout"
    r"|Dict|Object|Stream|Storage|Capsule|SymInt|SymFloat|nullptr \(uninitialized\)|Undefined|",
    re.ASCII,
)
"""Data types as torch writes them."""
_PLAIN = """
    floor trunc mean sum none linear nearest bilinear bicubic trilinear reflect replicate constant circular zeros border
    tanh relu gelu silu sigmoid cuda cpu same valid exact max min prod amax amin left right lower upper
"""
PLAIN_WORDS = frozenset(_PLAIN.split())
"""Texts that ops of torch take as arguments."""
_ENTRY = re.compile(
    r" ?[\[(]{0,4}(?:-?\d{1,12}(?:\.\d{0,20})?(?:[eE][+-]?\d{1,3})?|9223372036854775807|True|False|None|inf|nan)?"
    r"[\])]{0,4}",
    re.ASCII,
)


def is_float(value: Any) -> bool:
    """Whether a value is a number with a fraction, which is kept as written."""
    return type(value) is msgspec.Raw


def time(value: Any) -> Any:
    """A moment in microseconds, exact: a number or a quoted one. One beyond the bound becomes the bound."""
    return _micros(value, MAX_MICROS)


def duration(value: Any) -> Any:
    """A duration in microseconds, likewise."""
    return _micros(value, MAX_DURATION_MICROS)


def _micros(value: Any, most: int) -> Any:
    if type(value) is int:
        if -most <= value <= most:
            return value
        spelled = b"%d" % value
    elif is_float(value):
        spelled = bytes(value)
        if abs(float(spelled)) <= most:
            return value
    elif isinstance(value, str):
        if _NUMBER.fullmatch(value) and abs(float(value)) <= most:
            return value
        spelled = value.encode("utf-8", "replace")
    else:
        return DROPPED
    # What a reader takes for no number is absent; any other is written in its plain form.
    nanoseconds = parse_decimal(spelled, 3)
    if nanoseconds == MISSING:
        return DROPPED
    if abs(nanoseconds) > 1000 * most:
        return most + 1 if nanoseconds > 0 else -most - 1
    return msgspec.Raw(f"{'-' * (nanoseconds < 0)}{abs(nanoseconds) // 1000}.{abs(nanoseconds) % 1000:03}".encode())


def number(value: Any) -> Any:
    """A measured number of any size, such as an occupancy."""
    if type(value) is int:
        return value if -MAX_SIZE < value < MAX_SIZE else DROPPED
    if not is_float(value) or abs(float(bytes(value))) >= MAX_SIZE:
        return DROPPED
    spelled = bytes(value).decode("ascii", "replace")
    short = with_few_digits(spelled)
    return value if short == spelled else msgspec.Raw(short.encode())


def with_few_digits(spelled: str) -> str:
    """A measured number without the digits beyond those that a measurement has."""
    long = sum(map(str.isdigit, spelled)) > MAX_NUMBER_DIGITS
    return f"{float(spelled):.{SHORT_DIGITS}g}" if long else spelled


def size(value: Any) -> Any:
    """A number of bytes, elements or registers; older profilers quote it."""
    if isinstance(value, str) and _SMALL_NUMBER.fullmatch(value):
        return value
    return number(value)


def flag(value: Any) -> Any:
    """A truth value."""
    return value if isinstance(value, bool) or value in (0, 1) else DROPPED


def triple(value: Any) -> Any:
    """A grid or a block: three numbers, also inside a string."""
    if isinstance(value, str):
        inner = value[1:-1].split(",") if value[:1] == "[" and value[-1:] == "]" else []
        return value if len(inner) == 3 and all(_SMALL_NUMBER.fullmatch(part.strip()) for part in inner) else DROPPED
    if isinstance(value, list) and len(value) == 3 and all(size(part) is not DROPPED for part in value):
        return value
    return DROPPED


def shapes(value: Any, depth: int = 0) -> Any:
    """Dimensions or strides: lists of lists of numbers."""
    if type(value) is not list or depth > MAX_NESTING:
        return DROPPED
    for entry in value:
        if type(entry) is int:
            if not -MAX_SIZE < entry < MAX_SIZE:
                return DROPPED
        elif entry and shapes(entry, depth + 1) is DROPPED:
            return DROPPED
    return value


def types(value: Any) -> Any:
    """Names of data types; one that is not known becomes empty, as torch writes what it cannot name."""
    if type(value) is not list:
        return DROPPED
    try:
        return value if _are_types(tuple(value)) else [_type(entry, 0) for entry in value]
    except TypeError:  # a list within the list
        return [_type(entry, 0) for entry in value]


@lru_cache(maxsize=10_000)
def _are_types(entries: tuple[Any, ...]) -> bool:
    """Whether all names pass; the same few lists stand in most events."""
    return all(isinstance(entry, str) and _type(entry, 0) == entry for entry in entries)


def _type(entry: Any, depth: int) -> Any:
    if isinstance(entry, list) and depth < MAX_NESTING:
        return [_type(inner, depth + 1) for inner in entry]
    return entry if isinstance(entry, str) and TYPE.fullmatch(entry) else ""


def inputs(value: Any) -> Any:
    """Values of an op's scalar arguments; texts other than a known word become empty."""
    if type(value) is not list:
        return DROPPED
    new = [entry if type(entry) is str and _is_plain(entry) else "" for entry in value]
    return value if new == value else new


@lru_cache(maxsize=10_000)
def _is_plain(text: str) -> bool:
    if (
        text in ("", "None", "True", "False", "inf", "-inf", "nan")
        or text in CONSTANTS
        or _SMALL_NUMBER.fullmatch(text)
    ):
        return True
    if text[0] in "[(":
        return all(map(_ENTRY.fullmatch, text.split(",")))
    return text in PLAIN_WORDS


def version(value: Any) -> Any:
    """A version, as a number or as text: 13000, 2.27.3."""
    if type(value) is int:
        return value if 0 <= value < MAX_VERSION else DROPPED
    spelled = bytes(value).decode("ascii", "replace") if is_float(value) else value
    return value if isinstance(spelled, str) and _VERSION.fullmatch(spelled) else DROPPED


def phase(value: Any) -> Any:
    """The kind of an event: of a longer text, readers look at the first letter."""
    if not isinstance(value, str):
        return DROPPED
    return value if value in _PHASES else value[0] if value[0] in _PHASES else DROPPED


def one_of(*words: str) -> Check:
    """One of these words."""
    known = frozenset(words)
    return lambda value: value if isinstance(value, str) and value in known else DROPPED


def bounded(low: int, high: int) -> Check:
    """A whole number within a range."""
    return lambda value: value if type(value) is int and low <= value <= high else DROPPED
