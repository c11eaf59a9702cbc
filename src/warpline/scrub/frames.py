"""Python frames: those of libraries keep their place in the package, those of the program become pseudonyms.

``/home/user/env/lib/python3.11/site-packages/torch/nn/modules/linear.py(114): forward`` becomes
``/lib/python3.11/site-packages/torch/nn/modules/linear.py(114): forward``, and ``/home/user/engine/train.py(12): main``
becomes ``/fileB.py(12): main``: lines stay, and whether the path was absolute.
"""

from __future__ import annotations

import re
import sys

from warpline.library_names import LIBRARIES
from warpline.quote import redacted
from warpline.scrub.names import PIECE, RANGE_TELLS, NameScrubber, is_harmless
from warpline.scrub.vocabulary import is_known

_ALSO_PUBLIC = "ray|warpline|torchtune|sglang|megatron|nvtx|pynvml|requests|urllib3|yaml|packaging|psutil"
"""Packages that users edit, or whose names a user's own file may have: their paths give nothing away, but their frames
may be the user's."""
_PUBLIC = frozenset(f"{LIBRARIES}|{_ALSO_PUBLIC}".split("|"))
PACKAGES = _PUBLIC | frozenset(sys.stdlib_module_names)
"""Public packages, and Python's own modules."""
_CHECKOUT = re.compile(rf"[/\\](?=(?:{'|'.join(sorted(_PUBLIC | {'multiprocessing', 'importlib'}))})[/\\])")
"""Where a public package begins in the path of its checkout."""

_FRAME = re.compile(r"(?P<file>.+?)\((?P<line>[0-9]{1,7})\): (?P<function>.*)", re.DOTALL)
_XLA_FRAME = re.compile(r"\$(?P<file>\S+):(?P<line>[0-9]{1,7}) (?P<function>.+)", re.DOTALL)
_BUILT_IN = re.compile(
    r"<built-in (function|method) ([\w.]{0,200})(?: of ([\w.\[\] -]{1,200}) object at 0x([0-9a-fA-F]{1,16}))?>"
)
_MODULE = re.compile(r"nn\.Module: (\w{1,120})")
_PYTHON = r"lib(?:64)?[/\\]python\d(?:\.\d{1,2})?[/\\]"
_LIBRARY_ROOT = re.compile(rf"(?:^|[/\\])(?:({_PYTHON})?((?:site|dist)-packages[/\\])|({_PYTHON}))")
_FROZEN = re.compile(r"<(?:frozen [\w.]{1,60}|string|stdin|unknown|eval_with_key>[.\w]{0,12}|attrs \w{0,20})>?")
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
        if found := _FRAME.fullmatch(text):
            return f"{self._file(found['file'])}({found['line']}): {self._function(found['function'], found['file'])}"
        if found := _XLA_FRAME.fullmatch(text):
            return f"${self._file(found['file'])}:{found['line']} {self._function(found['function'], found['file'])}"
        if re.fullmatch(r"<[\w .\-]{1,80}>", text) and all(map(is_known, PIECE.findall(text))):
            return text
        # What is built in begins with a bracket, and modules with their mark: analyses tell them by that.
        for start, end in (("<", ">"), ("nn.Module: ", "")):
            if text.startswith(start):
                inner = text.removeprefix(start).removesuffix(end)
                return start + self._names.range(inner) + end
        return self._names.range(text) if text else text

    def _file(self, path: str) -> str:
        if _FROZEN.fullmatch(path):
            return self._names.pieces(path)
        root, rest = _split(path)
        if rest is not None:
            first = re.split(r"[/\\.]", rest)[0]
            if first in PACKAGES:
                return root + first + self._names.pieces(rest[len(first) :])
            return root + self._foreign(rest)
        if self._names.keep_names:
            return redacted(path)
        if _is_ours(path):
            return path
        absolute = "/" if re.match(r"[/\\~]|[A-Za-z]:", path) else ""
        ending = next((end for end in (".py", ".pyx", ".so") if path.endswith(end)), "")
        return absolute + self._coded("file", path) + ending

    def _foreign(self, rest: str) -> str:
        """A path within a package that is not public."""
        if self._names.keep_names:
            return redacted(rest)
        package, slash, inner = rest.partition("/")
        if _is_ours(package):
            return package + slash + self._names.pieces(inner)
        name = f"package{self._names.pseudonyms.code('package', package)}"
        return f"{name}/{self._coded('file', inner)}.py" if inner else f"{name}.py"

    def _function(self, text: str, file: str) -> str:
        if text.startswith("<") and re.fullmatch(r"<\w{1,20}>", text):
            return self._names.pieces(text)
        if is_harmless(text):
            return text
        if _is_public(file) or _FROZEN.fullmatch(file):
            return self._names.pieces(text) if re.fullmatch(r"[\w.<>]{1,120}", text) else self._coded("function", text)
        if self._names.keep_names:
            return redacted(text)
        return text if _is_ours(text) else self._coded("function", text)

    def _coded(self, group: str, text: str) -> str:
        told = dict.fromkeys(found.lower() for found in RANGE_TELLS.findall(text))
        return "_".join([f"{group}{self._names.pseudonyms.code(group, text)}", *told])

    def _address(self, text: str) -> str:
        """An address of memory: only whether two are the same matters."""
        value = int(text, 16)
        return f"{value if value < 1 << 16 else self._names.pseudonyms.number('address', value) + (1 << 12):x}"


def _split(path: str) -> tuple[str, str | None]:
    """The root that may be shown, and the path within a library; None for a file of the program."""
    roots = list(_LIBRARY_ROOT.finditer(path))
    if roots:
        found = roots[-1]
        lead = "/" if found.start() or path.startswith(("/", "\\")) else ""
        root = lead + "".join(part for part in found.groups() if part)
        return root.replace("\\", "/"), path[found.end() :].replace("\\", "/")
    if re.split(r"[/\\.]", path)[0] in PACKAGES:
        return "", path
    checkout = _CHECKOUT.search(path)
    return ("/", path[checkout.end() :].replace("\\", "/")) if checkout is not None else ("", None)


def _is_public(path: str) -> bool:
    """Whether a path is within a public package."""
    rest = _split(path)[1]
    return rest is not None and re.split(r"[/\\.]", rest)[0] in PACKAGES


def _is_ours(text: str) -> bool:
    """Whether a path or a function is already a pseudonym."""
    found = re.fullmatch(r"/?(?:file|function|package)[A-Z]{1,6}(?:_[a-z_]++)?(?:\.pyx?|\.so)?", text)
    return found is not None and all(map(is_known, PIECE.findall(text)))
