"""Every regular expression of the package takes time in proportion to its text, whatever the text is."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import slow_texts
from slow_texts import LONG, slow_text

import warpline
from warpline.analyses import gpu_metrics, words
from warpline.analyses.parts import roles as part_roles
from warpline.doctor import messages
from warpline.hardware import vocabulary
from warpline.hardware.chips import chips
from warpline.hardware.counters import explain, replace
from warpline.hardware.counters.names import MAX_NAME_CHARS
from warpline.scrub import kineto_fields
from warpline.sources import detect

SOURCE = Path(warpline.__file__).parent
METHODS = {"search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
NEEDS_OTHERS = {"warpline.bench.tiles", "warpline.ui.hugging_face", "warpline.ui.lightning"}
"""Modules that only import beside triton, transformers and lightning; they have no patterns."""


class Driven(NamedTuple):
    """A pattern, how it is used, and the length of its texts."""

    where: str
    pattern: re.Pattern[Any]
    method: str
    longest: int = LONG


def _in_tables() -> Iterator[tuple[str, list[Any], str, int, int]]:
    """Patterns that are texts in tables: the module that has them, their method, flags, and the length of texts."""
    counters = "hardware.counters"
    yield f"{counters}.explain", [entry.name for entry in explain.meanings()], "fullmatch", 0, MAX_NAME_CHARS
    yield f"{counters}.explain", list(explain._table().details), "search", 0, MAX_NAME_CHARS
    yield f"{counters}.replace", [rule.name for rule in replace.rules()], "fullmatch", 0, MAX_NAME_CHARS
    yield "hardware.chips", [pattern for chip in chips() for pattern in chip.patterns], "fullmatch", re.IGNORECASE, LONG
    yield "analyses.gpu_metrics", [pattern for _, pattern in gpu_metrics.UNITS], "search", 0, LONG
    yield "analyses.parts.roles", [pattern for _, pattern in part_roles._NAMES], "search", re.IGNORECASE, LONG
    yield "analyses.parts.roles", [pattern for _, pattern in part_roles._OPS], "search", 0, LONG
    lines = [line.pattern for kind in words._lines().values() for line in kind]
    yield "analyses.words", [line.pattern for line in lines], "fullmatch", re.DOTALL, LONG
    yield "doctor.messages", [message.pattern for message in messages.known_messages()], "search", re.IGNORECASE, LONG
    yield "front.query", [r"\bkernels\b"], "search", re.IGNORECASE, LONG
    starts = [known.starts.pattern.decode("latin-1") for known in detect._formats()]
    yield "sources.detect", starts, "match", 0, LONG
    yield "hardware.vocabulary", [vocabulary._pattern().pattern], "sub", 0, LONG
    yield "scrub.kineto_fields", list(kineto_fields.TEXTS.values()), "fullmatch", re.ASCII, LONG
    yield "scrub.messages", [r"\d{4}\.\d{1,2}\.\d{1,3}(?:\.\d{1,4})?"], "match", 0, LONG


@cache
def _sources() -> dict[str, tuple[ModuleType, list[ast.AST]]]:
    """The modules with patterns, and their syntax."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        name = ".".join(("warpline", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        text = file.read_text(encoding="utf-8")
        if re.search(r"\bre\.[a-z]+\(", text) and name not in NEEDS_OTHERS:
            found[name] = importlib.import_module(name), list(ast.walk(ast.parse(text)))
    return found


def _uses() -> dict[str, set[str]]:
    """The methods that are called on a name: on a private one in its module, on others anywhere."""
    found = defaultdict(set)
    for module, (_, nodes) in _sources().items():
        for node in nodes:
            if isinstance(node, ast.Attribute) and node.attr in METHODS and isinstance(node.value, ast.Name):
                name = node.value.id
                found[module + name if name[0] == "_" else name].add("sub" if node.attr == "subn" else node.attr)
    return found


@cache
def _driven() -> tuple[list[Driven], set[str]]:
    """All patterns that are written where they are used or compiled; and modules whose patterns are elsewhere."""
    found, elsewhere, uses = [], set(), _uses()
    for name, (module, nodes) in _sources().items():
        names = {
            id(node.value): name + target.id if target.id[0] == "_" else target.id
            for node in nodes
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        for node in nodes:
            match node:
                case ast.Call(ast.Attribute(ast.Name("re"), method), [asked, *more]) if method in {"compile", *METHODS}:
                    pass
                case _:
                    continue
            given = more[-1:] if len(more) == (1 if method == "compile" else 2) and method != "sub" else []
            flags = [word.value for word in node.keywords if word.arg == "flags"] or given
            try:
                text, *flag = (_value(one, module) for one in (asked, *flags))
            except NameError:
                elsewhere.add(name.removeprefix("warpline."))
                continue
            pattern = re.compile(text, *flag)
            called = uses[names.get(id(node), "")] or {"search", "fullmatch"} if method == "compile" else {method}
            found += [Driven(f"{name}:{node.lineno}", pattern, one) for one in sorted(called)]
    return found, elsewhere


def _value(expression: ast.expr, module: ModuleType) -> Any:
    return eval(compile(ast.Expression(expression), "pattern", "eval"), dict(vars(module)))


def test_patterns_in_the_code_take_linear_time() -> None:
    driven, _ = _driven()
    slow = {one.where: text for one in driven if (text := slow_text(one.pattern, one.method))}
    assert len(driven) > 400
    assert not slow


def test_patterns_in_tables_take_linear_time() -> None:
    tables = list(_in_tables())
    slow = {
        pattern: text
        for _, patterns, method, flags, longest in tables
        for pattern in patterns
        if (text := slow_text(re.compile(pattern, flags), method, longest))
    }
    assert not slow
    assert {where for where, *_ in tables} == _driven()[1]


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"[\w.:]*\w+__[\w.:]+", "search"),
        (r"kernel[A-Z]{1,6}(?:_[a-z_]+)*", "fullmatch"),
        (r"\b[\w.+-]+@[\w.-]+", "sub"),
        (rb"[,\n][\x00-\x20]*(\"key\")", "search"),
    ],
)
def test_a_slow_pattern_is_found(pattern: str | bytes, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_texts, "LIMIT_S", 0.5)
    assert slow_text(re.compile(pattern), method)
