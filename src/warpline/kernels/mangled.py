"""A reader of Itanium-mangled names that survives what demanglers refuse.

Profilers keep long CUTLASS names mangled, because libstdc++'s demangler fails above about 1 kB of text,
and compilers emit pieces (``DF16b``, ``Tn``) that older demanglers do not know. ``demangle`` rebuilds the
function's qualified name with its template arguments, with substitutions resolved; the parameter list
is dropped. Where the grammar leaves us, ``scan`` pulls the identifiers and template literals out of the
string: that is enough for tile, stages, data type and architecture.

Longer than most modules, because the grammar is one subject.
"""

from __future__ import annotations

import re
from collections.abc import Callable

MAX_DEPTH = 150
"""Maximum nesting; real names stay well below it, CUTLASS 3 reaches about 40."""
MAX_OUTPUT = 400_000
"""Maximum number of characters built in total: substitutions can grow a name exponentially."""
MAX_SUBSTITUTION = 3_000
"""A longer substitution is printed as its template's name only; nothing that warpline reads is that deep."""

_BUILTIN = {
    "v": "void",
    "w": "wchar_t",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "n": "__int128",
    "o": "unsigned __int128",
    "f": "float",
    "d": "double",
    "e": "long double",
    "g": "__float128",
    "z": "...",
}
_STANDARD = {
    "t": "std",
    "a": "std::allocator",
    "b": "std::basic_string",
    "s": "std::string",
    "i": "std::istream",
    "o": "std::ostream",
    "d": "std::iostream",
}
_UNARY = {"ps", "ng", "ad", "de", "co", "nt", "sz", "st", "az", "at"}
_BINARY = {"pl", "mi", "ml", "dv", "rm", "an", "or", "eo", "ls", "rs", "eq", "ne", "lt", "gt", "le", "ge", "aa", "oo"}
_LITERAL = re.compile(r"L([a-z])(n?)(\d+)E")
_DIGITS = re.compile(r"\d+")
_SEQUENCE = re.compile(r"[0-9A-Z]*_")
_NUMBER = re.compile(r"n?\d+")


class _Unreadable(Exception):
    """The string is outside the grammar that this parser knows."""


def demangle(name: str) -> str | None:
    """The qualified name with template arguments of a mangled function; None if it cannot be parsed."""
    reader = _NameReader(name)
    try:
        return reader.encoding(2, whole=False)
    except (_Unreadable, IndexError, ValueError):
        return None


def renamed(name: str, rename: Callable[[str], str]) -> str | None:
    """The mangled name with another identifier for each of its own, and without parameters; None if it cannot be
    parsed."""
    reader = _Renamer(name)
    try:
        reader.encoding(2, whole=False)
    except (_Unreadable, IndexError, ValueError):
        return None
    pieces, end = [], 0
    for start, word in sorted(reader.found.items()):
        after = start + len(str(len(word))) + len(word)
        new = rename(word)
        pieces.append(f"{name[end:start]}{len(new)}{new}")
        end = after
    return "".join(pieces) + name[end : reader.at] + "v"


def scan(name: str) -> str:
    """The identifiers and literals of a mangled name in order, as text that looks like a template."""
    pieces: list[str] = []
    path: list[str] = []
    at, end, open_template = 2, len(name), False
    while at < end:
        char = name[at]
        if char.isdigit():
            found = _DIGITS.match(name, at)
            assert found is not None
            size = int(found.group()) if found.end() - at < 6 else 0
            word = name[found.end() : found.end() + size]
            at = found.end() + size
            if not word or word.startswith("_GLOBAL__N_"):
                continue
            (pieces if open_template else path).append(word)
        elif (literal := _LITERAL.match(name, at)) is not None:
            value = ("-" if literal.group(2) else "") + literal.group(3)
            if literal.group(1) == "b":
                value = "true" if value == "1" else "false"
            if pieces and pieces[-1].endswith(">"):
                pieces[-1] = f"{pieces[-1][:-1]}, {value}>"
            elif pieces and name[at - 1] == "I":
                pieces[-1] += f"<{value}>"
            else:
                pieces.append(value)
            at = literal.end()
        else:
            open_template = open_template or (char == "I" and bool(path))
            at += 1
    qualified = "::".join(path)
    return f"{qualified}<{', '.join(pieces)}>" if pieces else qualified


class _NameReader:
    """Recursive descent over the Itanium grammar; every method reads and advances ``self.at``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.subs: list[str] = []
        self.built = 0
        self.depth = 0

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def eat(self, piece: str) -> bool:
        if self.text.startswith(piece, self.at):
            self.at += len(piece)
            return True
        return False

    def need(self, piece: str) -> None:
        if not self.eat(piece):
            raise _Unreadable(self.at)

    def go_deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _Unreadable(self.at)

    def grow(self, text: str) -> str:
        self.built += len(text)
        if self.built > MAX_OUTPUT:
            raise _Unreadable(self.at)
        return text

    def remember(self, text: str) -> str:
        self.subs.append(text if len(text) <= MAX_SUBSTITUTION else text.split("<", 1)[0])
        return text

    def encoding(self, start: int | None = None, whole: bool = True) -> str:
        if start is not None:
            self.at = start
        name = self.name()
        if whole:
            while self.peek() not in ("E", "", ".", "@"):
                self.type()
        return name

    def name(self) -> str:
        char = self.peek()
        if char == "N":
            return self.nested()
        if char == "Z":
            return self.local()
        if char == "S" and self.text[self.at + 1 : self.at + 2] != "t":
            base = self.substitution()
        else:
            base = ("std::" if self.eat("St") else "") + self.unqualified()
            if self.peek() == "I":
                self.remember(base)
        if self.peek() == "I":
            base = self.grow(base + self.arguments())
        return base

    def nested(self) -> str:
        self.need("N")
        while self.peek() in ("r", "V", "K", "R", "O"):
            self.at += 1
        text = ""
        while not self.eat("E"):
            char = self.peek()
            if char == "S" and self.text[self.at + 1 : self.at + 2] != "t":
                text = self.substitution()
                continue
            if char == "I":
                text = self.grow(text + self.arguments())
            elif char == "T" and self.text[self.at + 1 : self.at + 2] in "_0123456789":
                text = self.parameter()
            elif char == "D" and self.text[self.at + 1 : self.at + 2] in "tT":
                text = self.decltype()
            elif char == "M":
                self.at += 1
                continue
            else:
                part = "std" if self.eat("St") else self.unqualified()
                text = self.grow(f"{text}::{part}" if text and part else text or part)
                if part == "std":
                    continue
            if self.peek() != "E":
                self.remember(text)
        return text

    def local(self) -> str:
        self.need("Z")
        self.go_deeper()
        function = self.encoding()
        self.need("E")
        self.depth -= 1
        if self.eat("s"):
            self.discriminator()
            return function
        if self.eat("d"):
            self.number()
            self.need("_")
        entity = self.name()
        self.discriminator()
        return self.grow(f"{function}::{entity}")

    def discriminator(self) -> None:
        if self.eat("__"):
            self.number()
            self.need("_")
        elif self.peek() == "_" and self.text[self.at + 1 : self.at + 2].isdigit():
            self.at += 2

    def number(self) -> str:
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found.group().replace("n", "-")

    def unqualified(self) -> str:
        self.eat("L")
        char = self.peek()
        if char.isdigit():
            text = self.source_name()
        elif self.eat("Ul"):
            types = []
            while not self.eat("E"):
                types.append(self.type())
            count = self.number()
            self.need("_")
            shown = ", ".join(kind for kind in types if kind != "void")
            text = f"{{lambda({shown})#{int(count) + 2 if count else 1}}}"
        elif self.eat("Ut"):
            self.number()
            self.need("_")
            text = "{unnamed}"
        elif char in ("C", "D") and self.text[self.at + 1 : self.at + 2].isdigit():
            self.at += 2
            text = "{constructor}"
        elif char.islower():
            code = self.text[self.at : self.at + 2]
            self.at += 2
            text = "operator()" if code == "cl" else f"operator {self.type()}" if code == "cv" else "operator"
        else:
            raise _Unreadable(self.at)
        while self.eat("B"):
            self.source_name()
        return text

    def source_name(self) -> str:
        found = _DIGITS.match(self.text, self.at)
        if found is None or found.end() - self.at > 5:
            raise _Unreadable(self.at)
        size = int(found.group())
        word = self.text[found.end() : found.end() + size]
        if len(word) < size:
            self.at = len(self.text)
            raise _Unreadable(self.at)
        self.at = found.end() + size
        return "" if word.startswith("_GLOBAL__N_") else word

    def substitution(self) -> str:
        self.need("S")
        char = self.peek()
        if char in _STANDARD:
            self.at += 1
            return _STANDARD[char]
        found = _SEQUENCE.match(self.text, self.at)
        if found is None or len(found.group()) > 6:
            raise _Unreadable(self.at)
        self.at = found.end()
        digits = found.group()[:-1]
        return self.grow(self.subs[int(digits, 36) + 1 if digits else 0])

    def parameter(self) -> str:
        self.need("T")
        digits = self.number()
        self.need("_")
        return f"T{int(digits) + 2 if digits else 1}"

    def arguments(self) -> str:
        self.need("I")
        self.go_deeper()
        shown: list[str] = []
        while not self.eat("E"):
            self.argument(shown)
        self.depth -= 1
        return f"<{', '.join(shown)}>"

    def argument(self, shown: list[str]) -> None:
        char = self.peek()
        if char == "L":
            shown.append(self.literal())
        elif char == "X":
            self.at += 1
            shown.append(self.expression())
            self.need("E")
        elif char == "J":
            self.at += 1
            while not self.eat("E"):
                self.argument(shown)
        elif self.eat("Tn"):
            self.type()
        else:
            shown.append(self.type())

    def literal(self) -> str:
        self.need("L")
        if self.eat("_Z"):
            name = self.encoding()
            self.need("E")
            return f"&{name}"
        kind = self.type()
        end = self.text.index("E", self.at)
        value = self.text[self.at : end].replace("n", "-", 1)
        self.at = end + 1
        if kind == "bool":
            return "true" if value == "1" else "false"
        return value or "nullptr"

    def expression(self) -> str:
        char = self.peek()
        self.go_deeper()
        code = self.text[self.at : self.at + 2]
        if char == "L":
            text = self.literal()
        elif char == "T":
            text = self.parameter()
        elif code == "sr":
            self.at += 2
            scope = self.type()
            text = f"{scope}::{self.unqualified()}"
            if self.peek() == "I":
                text += self.arguments()
        elif code in _UNARY:
            self.at += 2
            text = self.type() if code in ("st", "at") else self.expression()
        elif code in _BINARY:
            self.at += 2
            text = f"{self.expression()}, {self.expression()}"
        else:
            raise _Unreadable(self.at)
        self.depth -= 1
        return self.grow(text)

    def decltype(self) -> str:
        self.at += 2
        text = self.expression()
        self.need("E")
        return f"decltype({text})"

    def type(self) -> str:
        self.go_deeper()
        text = self._type()
        self.depth -= 1
        return text

    def _type(self) -> str:
        char = self.peek()
        if char in _BUILTIN:
            self.at += 1
            return _BUILTIN[char]
        if char in ("r", "V", "K"):
            while self.peek() in ("r", "V", "K"):
                self.at += 1
            return self.remember(self.grow(f"{self.type()} const"))
        if char in ("P", "R", "O"):
            self.at += 1
            mark = {"P": "*", "R": "&", "O": "&&"}[char]
            return self.remember(self.grow(self.type() + mark))
        if char == "S" and self.text[self.at + 1 : self.at + 2] != "t":
            text = self.substitution()
            return self.remember(self.grow(text + self.arguments())) if self.peek() == "I" else text
        if char == "T" and self.text[self.at + 1 : self.at + 2] in "_0123456789":
            text = self.remember(self.parameter())
            return self.remember(text + self.arguments()) if self.peek() == "I" else text
        if char == "D":
            return self.d_type()
        if char == "F":
            self.at += 1
            self.eat("Y")
            shown = []
            while not self.eat("E"):
                shown.append(self.type())
            return self.remember(self.grow(f"{shown[0]}({', '.join(shown[1:])})" if shown else "()"))
        if char == "A":
            self.at += 1
            size = self.number()
            self.need("_")
            return self.remember(self.grow(f"{self.type()}[{size}]"))
        if char == "M":
            self.at += 1
            scope = self.type()
            return self.remember(self.grow(f"{self.type()} {scope}::*"))
        if char in ("u", "U"):
            self.at += 1
            word = self.source_name()
            return self.remember(word) if char == "u" else self.type()
        return self.remember(self.name())

    def d_type(self) -> str:
        kind = self.text[self.at + 1 : self.at + 2]
        if kind == "p":
            self.at += 2
            return self.remember(self.type())
        if kind == "F":
            end = self.at + 2
            while self.text[end : end + 1].isdigit():
                end += 1
            tail = self.text[end : end + 1]
            self.at = end + 1
            return "__bf16" if tail == "b" else "_Float16"
        if kind in ("t", "T"):
            return self.remember(self.decltype())
        if kind == "v":
            self.at += 2
            size = self.number()
            self.need("_")
            return self.remember(f"{self.type()} vector({size})")
        words = {"n": "decltype(nullptr)", "h": "_Float16", "a": "auto", "c": "auto", "i": "char32_t", "s": "char16_t"}
        if kind not in words:
            raise _Unreadable(self.at)
        self.at += 2
        return words[kind]


class _Renamer(_NameReader):
    """Notes where each identifier stands."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.found: dict[int, str] = {}

    def source_name(self) -> str:
        start = self.at
        shown = super().source_name()
        digits = _DIGITS.match(self.text, start)
        if digits is not None:
            if digits.group().startswith("0"):
                raise _Unreadable(start)
            self.found[start] = self.text[digits.end() : self.at]
        return shown
