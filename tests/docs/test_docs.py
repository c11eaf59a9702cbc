"""The documentation says what the code does: tables, health codes, commands.

`WARPLINE_UPDATE=1 pytest tests/docs` rewrites the generated part of docs/tables.md.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import snapshot_files
from paths import ROOT

from warpline.cli.main import VERBS, app, run
from warpline.front.tables import columns_of
from warpline.front.trace import Trace
from warpline.trace.schema import TABLES

SOURCE = ROOT / "src" / "warpline"
START, END = "<!-- tables: WARPLINE_UPDATE=1 pytest tests/docs writes them -->\n", "<!-- end -->\n"


def tables_text() -> str:
    parts = []
    for name in TABLES:
        rows = "".join(
            f"| `{column}` | {about.dtype.__name__} | {about.meaning} |\n" for column, about in columns_of(name).items()
        )
        summary = (getattr(Trace, name).__doc__ or "").partition("\n")[0]
        parts.append(f"## {name}\n\n{summary}\n\n| column | type | meaning |\n|---|---|---|\n{rows}\n")
    return "".join(parts)


def test_every_table_and_column_is_documented() -> None:
    page = ROOT / "docs" / "tables.md"
    head, rest = page.read_text().split(START)
    written, tail = rest.split(END)
    if os.environ.get("WARPLINE_UPDATE"):
        page.write_text(head + START + tables_text() + END + tail)
        written = tables_text()
    assert written == tables_text(), "docs/tables.md is behind the schema: WARPLINE_UPDATE=1 pytest tests/docs"


def health_codes() -> set[str]:
    found: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        found |= set(re.findall(r'HealthEntry\(\s*"([a-z0-9-]+)"', file.read_text()))
    return found


def test_every_health_code_is_documented() -> None:
    page = (ROOT / "docs" / "health.md").read_text()
    documented = set(re.findall(r"^\| `([a-z0-9-]+)`", page, flags=re.MULTILINE))
    assert documented == health_codes()


PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]


@pytest.mark.parametrize("page", PAGES)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_imports_exists(page: Path) -> None:
    for line in re.findall(r"^from warpline[\w.]* import .+$", page.read_text(), flags=re.MULTILINE):
        try:
            exec(line, {})
        except ModuleNotFoundError as missing:
            assert not (missing.name or "").startswith("warpline"), line


DEMO = str(SOURCE / "data" / "demo.json.xz")
ANSWERS = {
    "bench": ["--list"],
    "budget": [DEMO],
    "compare": [DEMO, DEMO],
    "device": ["H200"],
    "diagnose": [DEMO],
    "doctor": ["nsys profile python train.py"],
    "explain": ["cuLibraryLoadData", "cuLibraryLoadDat"],
    "gate": [DEMO, "--budget", "step_ms<=100"],
    "history": ["demo"],
    "kernel": ["cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4"],
    "lint": [str(ROOT / "docs" / "examples" / "slow_loop.py")],
    "ops": [DEMO, "--group", "shape"],
    "parts": [DEMO],
    "path": [DEMO],
    "report": [DEMO, "-o", os.devnull, "-f"],
    "roofline": [DEMO],
    "scrub": ["--check", DEMO],
    "sql": [DEMO],
    "whatif": [DEMO, "--fix", "cuda_graph"],
}
BY_NAME = {
    "gate": {"numbers"},
    "device": {"tensor", "vector", "bandwidth", "values"},
    "kernel": {"reasons"},
    "roofline": {"ceilings"},
}
"""Parts of an answer whose keys are names of types, links or fields."""


def fields(answer: Any, by_name: set[str]) -> Iterator[str]:
    """The names of all fields of an answer."""
    if isinstance(answer, list):
        for item in answer:
            yield from fields(item, by_name)
    elif isinstance(answer, dict):
        for name, value in answer.items():
            yield name
            yield from fields(list(value.values()) if name in by_name and value else value, by_name)


@pytest.mark.parametrize("command", [*ANSWERS, "memory"])
def test_every_field_of_an_answer_is_documented(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if command == "history":
        run(["gate", DEMO, "--budget", "step_ms<=100", "--name", "demo"])
        capsys.readouterr()
    given = ANSWERS[command] if command in ANSWERS else [str(snapshot_files.write(tmp_path, snapshot_files.leaking()))]
    run([command, *given, "--json"])
    answer = json.loads(capsys.readouterr().out)
    page = (ROOT / "docs" / "commands" / f"{command}.md").read_text()
    documented = set(re.findall(r"\w+", page))
    assert set(fields(answer, BY_NAME.get(command, set()))) - {"schema"} <= documented
    if isinstance(answer, dict):
        assert answer["schema"] in page


COMMANDS = {name: app.get_command(click.Context(app), name) for name in VERBS}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_documented(command: str) -> None:
    words = set(re.findall(r"--[a-z][a-z-]+", (ROOT / "docs" / "commands" / f"{command}.md").read_text()))
    options = [{*option.opts, *option.secondary_opts} for option in COMMANDS[command].params]
    assert [names for names in options if any(name.startswith("--") for name in names) and not names & words] == []
