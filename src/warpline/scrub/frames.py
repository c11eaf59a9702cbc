"""Python frames: those of libraries keep their place in the package, those of the program become pseudonyms.

``/home/user/env/lib/python3.11/site-packages/torch/nn/modules/linear.py(114): forward`` becomes
``/lib/python3.11/site-packages/torch/nn/modules/linear.py(114): forward``, and ``/home/user/engine/train.py(12): main``
becomes ``/fileB.py(12): main``: lines stay, and whether the path was absolute.
"""

from __future__ import annotations

import re
import sys

from warpline.library_names import LIBRARIES
from warpline.scrub.names import RANGE_TELLS, NameScrubber, is_harmless

_INSTALLED = frozenset(
    f"{LIBRARIES}|ray|warpline|torchtune|megatron|nvtx|pynvml|requests|urllib3|yaml|packaging|psutil".split("|")
) | frozenset(sys.stdlib_module_names)
"""Public packages and Python's own modules: what is said of them below the folder of installed packages is public."""
_ORDINARY = frozenset(
    ("accelerate", "lightning", "apex", "datasets", "tokenizers", "ray", "trl", "aiter", "keras", "flax")
)
"""Public packages that a folder of the program may be called as well."""
_IMPORTED = frozenset(LIBRARIES.split("|")) - _ORDINARY
"""Packages that nobody else has: torch shortens their paths to begin with the package."""
_PYTHON_PACKAGES = frozenset(("multiprocessing", "concurrent", "asyncio", "importlib"))
_PYTHON_FILE = re.compile(
    r"(\w{1,40})\.py|(\w{1,40})/(?:futures/)?\w{1,40}\.py|importlib\._bootstrap(?:_external)?", re.ASCII
)
_OWN_FILE = re.compile(r"(?:.*[/\\])?(warpline/capture/\w{1,40}\.py)", re.ASCII)
_INNER = re.compile(r"(?:/\w{1,120}){0,20}(?:\.pyx?|\.so)?|\._bootstrap(?:_external)?", re.ASCII)
"""A path within a package: folders and a file, all of them identifiers."""

_FRAME = re.compile(r"(?P<file>.+?)\((?P<line>[0-9]{1,7})\): (?P<function>.*)", re.DOTALL)
_XLA_FRAME = re.compile(r"\$(?P<file>\S+):(?P<line>[0-9]{1,7}) (?P<function>.+)", re.DOTALL)
_BUILT_IN = re.compile(
    r"<built-in (function|method) (\w{0,200})"
    r"(?: of ((?:(?:torch|numpy|jaxlib|triton|builtins)(?:\.\w{1,60}){0,6}\.)?\w{1,200})"
    r" object at 0x([0-9a-fA-F]{1,16}))?>"
)
_MODULE = re.compile(r"nn\.Module: (\w{1,120})")
_PYTHON = r"lib(?:64)?[/\\]python\d(?:\.\d{1,2})?[/\\]"
_LIBRARY_ROOT = re.compile(rf"(?:^|[/\\])(?:({_PYTHON})?((?:site|dist)-packages[/\\])|({_PYTHON}))")
_FROZEN = re.compile(
    r"<(?:frozen (?:importlib\._bootstrap(?:_external)?|runpy|zipimport|codecs|abc|io|os|site|genericpath|posixpath)"
    r"|string|stdin|unknown|eval_with_key>(?:\.\d{1,6})?)>?"
)
MAX_FRAME_CHARS = 4096
MAX_REMEMBERED = 200_000


class FrameScrubber:
    """Replaces the frames of one file."""

    def __init__(self, names: NameScrubber) -> None:
        self._names = names
        self._known: dict[str, str] = {}

    def frame(self, text: str) -> str:
        """One frame."""
        known = self._known.get(text)
        if known is None:
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            known = self._known[text] = self._frame(text[:MAX_FRAME_CHARS])
        return known

    def stack(self, text: str) -> str:
        """Frames with semicolons between, as in ``Call stack``."""
        return ";".join(self.frame(part) for part in text.split(";"))

    def _frame(self, text: str) -> str:
        if found := _BUILT_IN.fullmatch(text):
            owner = f" of {self._names.pieces(found[3])} object at 0x{self._address(found[4])}" if found[3] else ""
            return f"<built-in {found[1]} {self._names.pieces(found[2])}{owner}>"
        if found := _MODULE.fullmatch(text):
            return f"nn.Module: {self._names.pieces(found[1])}"
        if found := _XLA_FRAME.fullmatch(text):
            return f"${self._file(found['file'])}:{found['line']} {self._function(found['function'], found['file'])}"
        if text.startswith("$"):
            return "$" + self._names.range(text[1:])
        if found := _FRAME.fullmatch(text):
            return f"{self._file(found['file'])}({found['line']}): {self._function(found['function'], found['file'])}"
        # Analyses tell what is built in, and modules, by how they begin.
        if text.startswith("nn.Module: "):
            return "nn.Module: " + self._names.call(text.removeprefix("nn.Module: "))
        if text.startswith("<"):
            return f"<{self._names.range(text.removeprefix('<').removesuffix('>'))}>"
        return self._names.range(text) if text else text

    def _file(self, path: str) -> str:
        if _FROZEN.fullmatch(path):
            return path
        root, rest = _split(path)
        if rest is not None:
            first = re.split(r"[/.]", rest)[0]
            inner = rest[len(first) :]
            if first not in _INSTALLED:
                return root + self._foreign(rest)
            if not root and first in _ORDINARY:
                return f"{first}/{self._coded('file', inner)}{_ending(path)}"
            return root + first + (self._names.pieces(inner) if _INNER.fullmatch(inner) else self._inside(inner))
        if self._names.keep_names:
            return self._names.kept_file(path)
        absolute = "/" if re.match(r"[/\\~]|[A-Za-z]:", path) else ""
        if own := _OWN_FILE.fullmatch(path):
            return absolute + self._names.pieces(own[1])
        return absolute + self._coded("file", path) + _ending(path)

    def _inside(self, inner: str) -> str:
        ending = _ending(inner)
        return f"/{self._names.call(inner.removesuffix(ending))}{ending}"

    def _foreign(self, rest: str) -> str:
        """A path within a package that is not public."""
        if self._names.keep_names:
            return self._names.kept_file(rest)
        package, _, inner = rest.partition("/")
        name = f"package{self._names.pseudonyms.code('package', package.removesuffix('.py'))}"
        return f"{name}/{self._coded('file', inner)}.py" if inner else f"{name}.py"

    def _function(self, text: str, file: str) -> str:
        if text.startswith("<") and re.fullmatch(r"<\w{1,20}>", text):
            return self._names.pieces(text)
        if is_harmless(text):
            return text
        if _is_public(file) or _FROZEN.fullmatch(file):
            return self._names.call(text)
        return self._names.kept(text) if self._names.keep_names else self._coded("function", text)

    def _coded(self, group: str, text: str) -> str:
        told = dict.fromkeys(found.lower() for found in RANGE_TELLS.findall(text))
        return "_".join([f"{group}{self._names.pseudonyms.code(group, text)}", *told])

    def _address(self, text: str) -> str:
        """An address of memory: only whether two are the same matters."""
        value = int(text, 16)
        return f"{value if value < 1 << 16 else self._names.pseudonyms.number('address', value) + (1 << 12):x}"


def _split(path: str) -> tuple[str, str | None]:
    """The root that may be shown, and the path within a library; None for a file of the program.

    A package counts where packages are installed. Elsewhere a folder may have its name: ``/home/ray/release/plan.py``.
    """
    roots = list(_LIBRARY_ROOT.finditer(path))
    if roots:
        found = roots[-1]
        lead = "/" if found.start() or path.startswith(("/", "\\")) else ""
        root = lead + "".join(part for part in found.groups() if part)
        return root.replace("\\", "/"), path[found.end() :].replace("\\", "/")
    first = re.split(r"[/\\.]", path)[0]
    python = _PYTHON_FILE.fullmatch(path)
    is_pythons = python and (
        python[1] in sys.stdlib_module_names or python[2] in _PYTHON_PACKAGES or not python.lastindex
    )
    return "", path if first in _IMPORTED | _ORDINARY or is_pythons else None


def _is_public(path: str) -> bool:
    """Whether a path is within a public package."""
    root, rest = _split(path)
    first = re.split(r"[/.]", rest)[0] if rest is not None else ""
    return first in _INSTALLED and (bool(root) or first not in _ORDINARY)


def _ending(path: str) -> str:
    return next((end for end in (".py", ".pyx", ".so") if path.endswith(end)), "")
