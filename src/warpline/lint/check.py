"""All rules on one file, without what its comments ignore."""

from __future__ import annotations

import os
import re
import tokenize
from io import StringIO
from pathlib import Path

from warpline.errors import UnreadableFile
from warpline.lint.model import LintFinding
from warpline.lint.rules import RULES
from warpline.lint.source_file import SourceFile

_GPU_IMPORT = re.compile(
    r"^[ \t]{0,80}(?:from|import) (?:[\w, ]{0,200}\b)?"
    r"(?:torch|jax|cupy|numba|cuda|tensorflow|triton|pycuda|lightning|pytorch_lightning|transformers|diffusers|accelerate)\b",
    re.MULTILINE,
)
_IGNORE = re.compile(r"#\s*warpline:\s*ignore(?:\[([^\]]*)\])?")
MAX_BYTES = 4 << 20
NOT_PROGRAMS = frozenset(["__pycache__", "node_modules", "site-packages"])
"""Folders of other people's code, which a walk leaves out."""


def python_files(path: Path) -> list[Path]:
    """The file itself, or the Python files of a folder and its folders, in order."""
    if not path.is_dir():
        return [path]
    found: list[Path] = []
    for folder, inside, names in os.walk(path):
        inside[:] = sorted(name for name in inside if not name.startswith(".") and name not in NOT_PROGRAMS)
        found += [Path(folder, name) for name in sorted(names) if name.endswith(".py")]
    if not found:
        raise UnreadableFile("no-python", f"{path} holds no Python file", "name a folder with programs")
    return found


def lint_file(path: Path) -> list[LintFinding]:
    """The findings in a Python file, in the order of its lines. The file is parsed, never executed."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UnreadableFile("cannot-read", f"{path}: {error.strerror}", "name a Python file") from error
    if len(raw) > MAX_BYTES:
        raise UnreadableFile("too-large", f"{path} has over {MAX_BYTES >> 20} MiB", "name a program, not data")
    try:
        return lint_text(raw.decode("utf-8", "replace").removeprefix("\ufeff"), str(path))
    except (MemoryError, RecursionError):  # Python's parser raises either where code is nested too deeply
        reason = f"{path} is nested too deeply for Python's parser, or needs more memory than there is"
        raise UnreadableFile("too-deep", reason, "name a program, not generated code") from None


def imports_gpu_library(path: Path) -> bool:
    """Whether a file imports a library whose code runs on a GPU."""
    return _GPU_IMPORT.search(path.read_text(encoding="utf-8", errors="replace")) is not None


def lint_text(text: str, file: str = "<text>") -> list[LintFinding]:
    """The findings in a program's text.

    >>> lint_text("import torch\\nfor x in xs:\\n    print(model(x.cuda()).item())")
    """
    try:
        program = SourceFile(text)
    except SyntaxError as error:
        place = f"{file}:{error.lineno}" if error.lineno else file
        raise UnreadableFile(
            "not-python",
            f"{place} is not valid Python: {error.msg}",
            "correct it, or export a notebook to a script first",
        ) from None
    except ValueError as error:
        raise UnreadableFile("not-python", f"{file} is not valid Python: {error}", "name a Python file") from None
    ignored = _ignored(text)
    found = {
        (spot.line, rule.code): LintFinding(file, spot.line, spot.column, rule.code, spot.message, rule.fix)
        for rule in RULES
        for spot in rule.find(program)
        if not (codes := ignored.get(spot.line, frozenset())) & {rule.code, "*"} or not codes
    }
    return [found[key] for key in sorted(found)]


def _ignored(text: str) -> dict[int, frozenset[str]]:
    """By line: the codes that a comment there ignores, `*` for all."""
    found: dict[int, frozenset[str]] = {}
    if not _IGNORE.search(text):  # to find comments takes long in a file of one long line
        return found
    try:
        for token in tokenize.generate_tokens(StringIO(text).readline):
            match = _IGNORE.search(token.string) if token.type == tokenize.COMMENT else None
            if match:
                codes = {code.strip() for code in (match[1] or "*").split(",")} - {""}
                found[token.start[0]] = frozenset(codes or {"*"})
    except (tokenize.TokenError, SyntaxError):
        pass
    return found
