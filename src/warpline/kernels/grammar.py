"""Small parsers shared by several families: tokens, shapes and instruction digits."""

from __future__ import annotations

import re

INSTRUCTIONS = {
    "884": "8x8x4",
    "1684": "16x8x4",
    "1688": "16x8x8",
    "16816": "16x8x16",
    "16832": "16x8x32",
    "16864": "16x8x64",
    "168128": "16x8x128",
    "168256": "16x8x256",
    "8816": "8x8x16",
    "8832": "8x8x32",
    "88128": "8x8x128",
    "161616": "16x16x16",
    "32816": "32x8x16",
    "83216": "8x32x16",
}
"""Digits of a matrix instruction, m n k concatenated: ambiguous, hence a list and not a rule."""

ACCUMULATORS = {"h": "f16", "s": "f32", "d": "f64", "i": "s32", "c": "cf32", "z": "cf64"}
"""The BLAS letter before the instruction digits is the accumulator."""

GENERATIONS = {
    "kepler": "sm35",
    "maxwell": "sm50",
    "pascal": "sm60",
    "volta": "sm70",
    "turing": "sm75",
    "ampere": "sm80",
    "ada": "sm89",
    "hopper": "sm90",
    "blackwell": "sm100",
}

SHAPE2 = re.compile(r"\d{1,4}x\d{1,4}")
SHAPE3 = re.compile(r"\d{1,4}x\d{1,4}x\d{1,4}")


def tokens_of(text: str, truncated: bool) -> list[str]:
    """Tokens between underscores; the last one of a truncated name is dropped, because it may be incomplete."""
    tokens = [token for token in text.split("_") if token]
    return tokens[:-1] if truncated and tokens else tokens


def is_integer(text: str) -> bool:
    """Whether a template argument is a plain integer."""
    return text.lstrip("-").isdigit()


def sm_number(arch: str | None) -> int | None:
    """``sm90`` -> 90."""
    if arch is None or not arch.startswith("sm"):
        return None
    digits = arch[2:].rstrip("af")
    return int(digits) if digits.isdigit() else None


def inside(text: str, opener: str) -> str | None:
    """The text between the angle brackets after ``opener`` (which ends in ``<``), also in truncated names."""
    start = text.find(opener)
    if start < 0:
        return None
    start += len(opener)
    depth = 1
    for at in range(start, len(text)):
        char = text[at]
        if char == "<":
            depth += 1
        elif char == ">" and text[at - 1] != "-":
            depth -= 1
            if depth == 0:
                return text[start:at]
    return text[start:]


def head(text: str) -> str:
    """The identifier that a type or functor starts with, without namespaces and arguments."""
    end = len(text)
    for mark in ("<", "(", "::{"):
        found = text.find(mark)
        if 0 <= found < end:
            end = found
    return text[:end].strip().rsplit("::", 1)[-1].rsplit(" ", 1)[-1]
