"""One vocabulary for each platform: texts are written in NVIDIA's words, and said in AMD's for a program on ROCm."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from warpline.package_data import read_table

Platform = Literal["cuda", "hip"]
Said = TypeVar("Said")


def platform(*, is_amd: bool) -> Platform:
    """The platform of AMD's devices, or of NVIDIA's."""
    return "hip" if is_amd else "cuda"


def in_words_of(platform: Platform, value: Said) -> Said:
    """The value with every text in it, however deep, in the platform's words.

    >>> in_words_of("hip", "one CUDA graph, from cudaStreamBeginCapture on")
    'one HIP graph, from hipStreamBeginCapture on'
    """
    return _said(value) if platform == "hip" else value


def _said(value: Any) -> Any:
    match value:
        case str():
            return _pattern().sub(_in_hip, value)
        case tuple():
            return tuple(_said(one) for one in value)
        case list():
            return [_said(one) for one in value]
        case dict():
            return {key: _said(one) for key, one in value.items()}
        case Struct():
            return replace(value, **{name: _said(getattr(value, name)) for name in value.__struct_fields__})
    return value


def _in_hip(found: re.Match[str]) -> str:
    words, starts = _tables()
    text = found[0]
    if text in words:
        return words[text]
    start = next(one for one in starts if text.startswith(one))
    return starts[start] + text.removeprefix(start)


@cache
def _pattern() -> re.Pattern[str]:
    """A phrase of the table, which may be in the plural, or an identifier that begins as those of CUDA do; no part of a
    path or of a qualified name."""
    words, starts = _tables()
    phrases = "|".join(re.escape(one) for one in sorted(words, key=len, reverse=True))
    names = "|".join(rf"{re.escape(one)}(?=[A-Z])\w+" for one in starts)
    return re.compile(rf"(?<![\w./:-])(?:(?:{phrases})(?=s?(?!\w))(?!/)|{names})")


@cache
def _tables() -> tuple[dict[str, str], dict[str, str]]:
    tables = read_table("hardware", "hip_words", dict[str, dict[str, str]])
    return tables["words"], tables["starts"]
