"""Every spelling of a kernel's name -> one.

The same symbol reaches us mangled (CUPTI, nsys ``mangledName``), demangled by libstdc++ (Kineto), by
NVIDIA's demangler (nsys, ncu: ``<unnamed>``, ``(int)4``), by nvprof's older one (``int=4``), as a bare
identifier (nsys ``shortName``), or cut short (``key_averages().table()`` at 55 characters). The
canonical text has no return type, no parameter list and no anonymous namespaces, plain numbers for
template literals and ``{lambda(float)#1}`` for lambdas.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from warpline.kernels.mangled import demangle, scan

MAX_NAME = 16_384
"""Maximum number of characters read, as long as a name in a trace's columns. Kineto itself stops demangling at 8,192;
nothing that warpline decodes is beyond."""
MAX_IDENTIFIER = 2_048
"""The same for the function's own identifier; Tensile's, the longest, have under 1,000."""
MAX_ROUNDS = 8
CACHE_SIZE = 4_096
"""Different names of kernels that are kept: a trace has tens to hundreds."""

_DECORATION = re.compile(r"(?:\.kd|\s?\[clone [^\]]{0,80}\])$")
_ELLIPSIS = re.compile(r"(?<!\s)\s*+(?:\.\.\.|…)$")
_QUALIFIERS = re.compile(r"\b(?:const|void|T\d{1,3}::Params)\b|\s")
_ANONYMOUS = "(anonymous namespace)::"
_UNNAMED = re.compile(r"(?<=\w)<unnamed>::|<unnamed>::|\bunnamed>::|_GLOBAL__N_\w{0,200}+::")
_BOOL_CAST = re.compile(r"\(bool\)([01])\b|\bbool=([01])\b")
_CAST = re.compile(r"\([A-Za-z_][\w: ]{0,120}\)(?=-?\d)")
_TYPED = re.compile(r"\b(?:unsigned )?[A-Za-z_][\w:]{0,80}=(?=-?\d)")
_SUFFIX = re.compile(r"(?<![\w.])(-?\d+)(?:ull|ul|lu|ll|u|l)\b")
_LAMBDA = re.compile(r"\[?\blambda ?(\([^\[\]]{0,300}?\))? ?\(instance (\d+)\)\]")
_SPACED = re.compile(r"operator ?\(\)|->|[<>(){}\[\] ]")
_SCOPED = re.compile(r"operator ?\(\)|->|::|[<>(){}\[\]]")
_LISTED = re.compile(r"operator ?\(\)|->|[<>(){}\[\],]")
_OPENING = frozenset("<({[")
_CLOSING = frozenset(">)}]")
_SHIPPED_BY = re.compile(
    r"^(?:(?:cask_+)?_?\d+x_|cask_+)(?:(?:cudnn|cublas|trt)_(?:(?:infer|train)_)?(?=sm\d|cutlass_|xmma_))?"
    r"(?=[a-z]+_[a-z]|sm\d)(?!\w*::)"
)
"""Marks of the library and its major version before a kernel's own name: `_5x_cudnn_volta_scudnn_…` of cuDNN 5x (its
kernel library's number), `cask__5x_…` of CASK, cuDNN's kernel selector."""
_MEMORY = re.compile(r"\[?(?:CUDA )?mem(?:cpy|set)\b(?!\w)", re.IGNORECASE)


class NormalName(Struct, frozen=True):
    """A kernel's name, split as far as every family needs it."""

    raw: str
    text: str
    """Canonical text: qualified name with template arguments."""
    scope: str
    """The text before the last ``::`` of the qualified name, ending in ``::``; empty for a bare name."""
    base: str
    """The function's own identifier."""
    arguments: str
    """The text between the outermost angle brackets after ``base``; empty if there are none."""
    dialect: str
    truncated: bool
    """Whether the name was truncated: then its last part is unreliable."""


def normalise(name: str) -> NormalName:
    """Split a kernel's name, whatever tool printed it. Never raises."""
    text, truncated = name[:MAX_NAME], len(name) > MAX_NAME
    dialect = _dialect(text)
    for _ in range(MAX_ROUNDS):
        before = text
        text, cut = _canonical(text)
        truncated = truncated or cut
        if text == before:
            break
    scope, base, arguments, cut = _parts(text)
    cut = cut or len(base) > MAX_IDENTIFIER
    return NormalName(name, text, scope, base[:MAX_IDENTIFIER], arguments, dialect, truncated or cut)


@lru_cache(maxsize=CACHE_SIZE)
def one_spelling(name: str) -> str:
    """The canonical text without spaces and qualifiers, which demanglers put in different places: equal for the same
    kernel in the files of different tools."""
    return _QUALIFIERS.sub("", normalise(name).text)


def split_arguments(text: str) -> list[str]:
    """Template arguments of one level: split at commas outside brackets."""
    parts: list[str] = []
    depth = start = 0
    for mark in _LISTED.finditer(text):
        char = mark.group()
        if char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
        elif char == "," and depth <= 0:
            parts.append(text[start : mark.start()].strip())
            start = mark.end()
    last = text[start:].strip()
    if last or parts:
        parts.append(last)
    return parts


def _dialect(text: str) -> str:
    if text.startswith("_Z") or "__ZN" in text:
        return "mangled"
    if "(anonymous namespace)" in text or "{lambda(" in text:
        return "itanium"
    if "<unnamed>" in text or "[lambda" in text or "(int)" in text or "(bool)" in text or "T1::Params" in text:
        return "nvidia"
    if "int=" in text or "bool=" in text:
        return "nvprof"
    return "templated" if "<" in text else "plain"


def _canonical(text: str) -> tuple[str, bool]:
    text = " ".join(text.split())
    truncated = False
    if text.endswith(("...", "…")):
        text, truncated = _ELLIPSIS.sub("", text), True
    if text.endswith((".kd", "]")):
        text = _DECORATION.sub("", text)
    if _MEMORY.match(text):
        return text, truncated
    if text.startswith(("cask_", "_")) or "x_" in text[:4]:
        text = _SHIPPED_BY.sub("", text)
    if text.startswith("__nv_static_") and (start := text.find("__Z")) > 0:
        text = text[start + 1 :]
    if text.startswith("_Z"):
        demangled = demangle(text)
        return (demangled, truncated) if demangled is not None else (scan(text), True)
    text = text.replace(_ANONYMOUS, "")
    if "unnamed>" in text or "_GLOBAL__N_" in text:
        text = _UNNAMED.sub(lambda found: "<" if found.group() == "<unnamed>::" and _glued(found) else "", text)
    if "(instance " in text:
        text = _LAMBDA.sub(lambda found: f"{{lambda{found.group(1) or ''}#{found.group(2)}}}", text)
    text = _qualified(text)
    if "bool" in text:
        text = _BOOL_CAST.sub(lambda found: "true" if "1" in found.group() else "false", text)
    if ")" in text:
        text = _CAST.sub("", text)
    if "=" in text:
        text = _TYPED.sub("", text)
    if "<" in text:
        text = _SUFFIX.sub(r"\1", text).replace("> >", ">>").replace("operator ()", "operator()")
    return text.strip(), truncated


def _glued(found: re.Match[str]) -> bool:
    """``Cat<unnamed>::Type<2>``: a tool that strips namespaces removed a bracket with them."""
    start = found.start()
    return start > 0 and (found.string[start - 1].isalnum() or found.string[start - 1] == "_")


def _qualified(text: str) -> str:
    """Drop the parameter list and the return type, respecting brackets.

    A kernel is a function in a namespace, so the first parenthesis outside angle brackets opens its parameters, and the
    text before the last space outside brackets is its return type.
    """
    if "(" not in text and " " not in text:
        return text
    depth = start = 0
    end = len(text)
    for mark in _SPACED.finditer(text):
        char = mark.group()
        if char in _OPENING:
            if char == "(" and depth == 0:
                if mark.start() > start:
                    end = mark.start()
                    break
                continue
            depth += 1
        elif char in _CLOSING:
            depth -= depth > 0
        elif char == " " and depth == 0 and mark.end() < end and text[mark.end()] not in "(<":
            start = mark.end()
    return text[start:end].strip()


def _parts(text: str) -> tuple[str, str, str, bool]:
    depth = 0
    scope_end, opened, closed = 0, -1, -1
    for mark in _SCOPED.finditer(text):
        char = mark.group()
        if char in _OPENING:
            if depth == 0 and char == "<":
                opened, closed = mark.end(), -1
            depth += 1
        elif char in _CLOSING:
            if depth == 1 and char == ">":
                closed = mark.start()
            depth -= depth > 0
        elif char == "::" and depth == 0:
            scope_end, opened, closed = mark.end(), -1, -1
    cut = depth > 0
    if opened < 0:
        return text[:scope_end], text[scope_end:], "", cut
    base = text[scope_end : opened - 1]
    return text[:scope_end], base, text[opened : closed if closed >= 0 else len(text)], cut
