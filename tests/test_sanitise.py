"""Text from a file is shown, never obeyed."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warpline
from warpline.cli.write import json_text
from warpline.errors import WarplineError
from warpline.sanitise import sanitise, sanitise_lines
from warpline.sources.valid_text import valid_json

ANY_TEXT = st.text(st.characters())  # with lone surrogates


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[bold]kernel[/red]", "[bold]kernel[/red]"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("c1 \x9b2J", "c1 \\x9b2J"),
        ("nul \x00, del \x7f", "nul \\x00, del \\x7f"),
        ("two\nlines\tand a tab", "two\\nlines\\tand a tab"),
        ("left\u202eright", "left\\u202eright"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("filler \u3164, selector \ufe0f", "filler \\u3164, selector \\ufe0f"),
        ("e\u0301 and " + "e" + "\u0301" * 6, "e\u0301 and e" + "\u0301" * 4 + "\\u0301\\u0301"),
        ("half \ud800", "half \\ud800"),
        ("ядро 核", "ядро 核"),
        ("::error file=a.py::text", "\\x3a:error file=a.py::text"),
        ("  ::stop-commands::x", "  \\x3a:stop-commands::x"),
        ("a ##[error]b ##vso[task.x]c", "a \\x23#[error]b \\x23#vso[task.x]c"),
        ("::at::native::add ## [1]", "::at::native::add ## [1]"),
    ],
)
def test_what_a_terminal_would_act_on_is_made_visible(text: str, shown: str) -> None:
    assert sanitise(text) == shown


@given(ANY_TEXT)
def test_sanitised_text_is_printable_can_be_written_and_is_not_changed_again(text: str) -> None:
    once = sanitise(text)
    assert once.isprintable()
    once.encode()
    assert sanitise(once) == once
    assert sanitise_lines(text).replace("\n", "").isprintable()
    assert sanitise_lines(text).count("\n") == text.count("\n")


@given(st.dictionaries(ANY_TEXT, ANY_TEXT), st.booleans())
def test_json_is_exact_and_its_text_is_sanitised(answer: dict[str, str], ascii_only: bool) -> None:
    text = json_text(answer, ascii_only=ascii_only)
    assert json.loads(text) == valid_json(answer)
    assert text.replace("\n", "").isprintable()
    text.encode("ascii" if ascii_only else "utf-8")
    msgspec.json.decode(text)


def test_an_error_is_one_sanitised_line_whatever_it_quotes() -> None:
    error = WarplineError("bad", "file a\nb \x1b]0;x\x07 [red] \udcff", "try \u202e")
    assert error.line() == "bad: file a b \\x1b]0;x\\x07 [red] \\udcff; try \\u202e"


SOURCES = sorted(Path(warpline.__file__).parent.glob("cli/*.py")) + sorted(
    Path(warpline.__file__).parent.glob("reports/*.py")
)


@pytest.mark.parametrize("source", SOURCES)
def test_only_the_seam_writes_to_the_terminal(source: Path) -> None:
    """Every other module of the command line prints through `warpline.cli.write`, `warpline.cli.output` and `warpline.reports.console`."""
    if source.name in {"write.py", "output.py", "console.py"}:
        return
    calls = {ast.unparse(node.func) for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Call)}
    banned = re.compile(
        r"(click\.)?s?echo|print|sys\.std(out|err)\.write|(rich\.)?(console\.)?Console|Progress|.*\.status"
    )
    assert not [call for call in calls if banned.fullmatch(call)]
