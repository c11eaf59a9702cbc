"""Makes text from a file safe to show: what a terminal would act on or hide is written as a visible escape.

Names of kernels, ranges, threads and files can hold anything: escape sequences that change the title or the clipboard,
marks that reverse the text, characters without width. Every text on the terminal, in CSV, Markdown and SVG, and in
error lines passes `sanitise`. Markup needs no escape here, because no renderer interprets text as markup.
"""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that Python calls printable and that show nothing: joiners, fillers, blanks and variation selectors."""
_MARKS = "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0]"
_PILE = re.compile(f"((?:{_MARKS}){{4}})((?:{_MARKS})+)")
"""More than four marks on one character, which would cover the lines above and below."""
_CONTROLS = re.compile(r"[^\n\x20-\x7e]")
_COMMAND_LINE = re.compile(
    r"^([ \t]*):(?=:(?:add-mask|add-matcher|add-path|debug|echo|endgroup|error|group|notice|remove-matcher|save-state"
    r"|set-env|set-output|stop-commands|warning)\b[^:\n]*::)",
    flags=re.MULTILINE,
)
"""What the runner of GitHub obeys at the start of a line (`::error::`). Names of functions may begin with `::`, so only
the commands count."""
_COMMAND = re.compile(r"#(?=#(?:vso)?\[)")
"""What the runners of GitHub (`##[error]`) and Azure (`##vso[…]`) obey anywhere in a program's output."""


def sanitise(text: str) -> str:
    """The text with every character that a terminal would act on or not show as an escape: `\\x1b`, `\\n`, `\\u202e`.
    The first character of a command to a CI runner is an escape, too.

    Text that has passed once is not changed again.
    """
    text = _without_commands(text)
    if text.isascii() and text.isprintable():
        return text
    visible = text if text.isprintable() else "".join(char if char.isprintable() else _escaped(char) for char in text)
    visible = _HIDDEN.sub(lambda found: _escaped(found[0]), visible)
    return _PILE.sub(lambda found: found[1] + "".join(map(_escaped, found[2])), visible)


def sanitise_lines(text: str) -> str:
    """The same for text of several lines: newlines stay."""
    if not _CONTROLS.search(text):
        return _without_commands(text)
    return "\n".join(map(sanitise, text.split("\n")))


def sanitise_json(text: str, *, ascii_only: bool = False) -> str:
    """JSON text in which such characters (or all but ASCII) are escapes: `\\u001b`. It means exactly the same."""
    # No line of JSON begins with `::`.
    text = _COMMAND.sub(r"\\u0023", text)
    if not _CONTROLS.search(text):
        return text
    # Outside of strings, JSON has only ASCII and white space.
    return _CONTROLS.sub(
        lambda found: found[0] if not ascii_only and sanitise(found[0]) == found[0] else _json_escaped(found[0]), text
    )


def _without_commands(text: str) -> str:
    return _COMMAND.sub(r"\\x23", _COMMAND_LINE.sub(r"\1\\x3a", text))


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode("ascii")


def _json_escaped(char: str) -> str:
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + ((code - 0x10000) >> 10):04x}\\u{0xDC00 + ((code - 0x10000) & 0x3FF):04x}"
