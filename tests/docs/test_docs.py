"""The documentation says what the code does: tables, health codes, commands.

`WARPLINE_UPDATE=1 pytest tests/docs` rewrites the generated parts of docs/tables.md and docs/commands/README.md.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import snapshot_files
from paths import DATA, ROOT

from warpline.cli.main import app, run
from warpline.cli.verbs import GROUPS, VERBS
from warpline.front.tables import columns_of
from warpline.sources.registry import SOURCES, what_is_read
from warpline.trace.schema import TABLES

SOURCE = ROOT / "src" / "warpline"
START, END = "<!-- {}: WARPLINE_UPDATE=1 pytest tests/docs writes them -->\n", "<!-- end -->\n"
COMMON = ROOT / "docs" / "commands" / "README.md"


def tables_text() -> str:
    parts = []
    for name, table in TABLES.items():
        rows = "".join(
            f"| `{column}` | {about.dtype.__name__} | {about.meaning} |\n" for column, about in columns_of(name).items()
        )
        summary = (table.__doc__ or "").partition("\n")[0]
        parts.append(f"## {name}\n\n{summary}\n\n| column | type | meaning |\n|---|---|---|\n{rows}\n")
    return "".join(parts)


def commands_text() -> str:
    rows = (f"| [`{name}`]({name}.md) | {verb.help} |\n" for name, verb in VERBS.items())
    return f"| command | |\n|---|---|\n{''.join(rows)}"


def sources_text() -> str:
    return "".join(f"- {one}\n" for one in what_is_read(SOURCES).split("; "))


def test_the_readme_lists_every_verb_in_its_group() -> None:
    assert sorted(VERBS) == sorted(name for names in GROUPS.values() for name in names)
    for group, names in GROUPS.items():
        part = (ROOT / "README.md").read_text().split(f"**{group}**\n")[1].partition("\n**")[0]
        missing = [name for name in names if f"docs/commands/{name}.md" not in part]
        assert not missing, f"README.md, {group}: add a row for {', '.join(missing)}"


@pytest.mark.parametrize(
    ("page", "what", "text"),
    [
        (ROOT / "docs" / "tables.md", "tables", tables_text),
        (COMMON, "commands", commands_text),
        (ROOT / "README.md", "sources", sources_text),
    ],
    ids=["tables", "commands", "sources"],
)
def test_every_table_column_command_and_source_is_listed(page: Path, what: str, text: Callable[[], str]) -> None:
    start = START.format(what)
    head, rest = page.read_text().split(start)
    written, tail = rest.split(END)
    if os.environ.get("WARPLINE_UPDATE"):
        page.write_text(head + start + text() + END + tail)
        written = text()
    assert written == text(), f"{page.name} is behind the code: WARPLINE_UPDATE=1 pytest tests/docs"


def test_every_folder_of_the_package_is_in_the_layout() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.MULTILINE)
    folders = {file.parent.name for file in SOURCE.glob("*/__init__.py")}
    assert folders - set(re.findall(r"`(\w+)`", " ".join(rows))) == set(), "say in CONTRIBUTING.md what these hold"


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
    text = page.read_text()
    for line in re.findall(r"^from warpline[\w.]* import .+$", text, flags=re.MULTILINE):
        try:
            exec(line, {})
        except ModuleNotFoundError as missing:
            module = missing.name or ""
            file = f"`{module.removeprefix('warpline.').replace('.', '/')}.py`"
            assert not module.startswith("warpline") or file in text, line  # a file that the page writes


DEMO = str(SOURCE / "data" / "demo.json.xz")
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


COMMANDS = {name: app.get_command(click.Context(app), name) for name in VERBS}
NOT_RUN = {
    "run": "runs a program",
    "try": "runs a program; tests/trial checks its fields",
    "demo": "answers as diagnose does",
    "stats": "has the columns of nsys stats",
    "watch": "answers in lines; tests/ui/test_watch.py checks their fields",
}
ANSWERING = [
    name
    for name, command in COMMANDS.items()
    if name not in NOT_RUN and any("--json" in option.opts for option in command.params)
]


def page_of(command: str) -> str:
    file = ROOT / "docs" / "commands" / f"{command}.md"
    assert file.exists(), f"write docs/commands/{file.name}: every option, and every field of the JSON"
    return file.read_text()


@pytest.mark.parametrize("command", ANSWERING)
def test_every_field_of_an_answer_is_documented(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = snapshot_files.write(tmp_path, snapshot_files.leaking())
    files = {
        "TRACE": str(snapshot) if command == "memory" else DEMO,
        "REPORT": str(DATA / "ncu" / "triton.raw.csv.xz"),
        "SOURCE": str(ROOT / "docs" / "examples" / "slow_loop.py"),
        "OUTPUT": str(tmp_path / "output"),
    }
    if command == "history":
        run(VERBS["gate"].words(**files))
        capsys.readouterr()
    run([*VERBS[command].words(**files), "--json"])
    answer = json.loads(capsys.readouterr().out)
    page = page_of(command)
    documented = {"schema", *re.findall(r"\w+", page)}
    missing = set(fields(answer, BY_NAME.get(command, set()))) - documented
    assert missing == set(), f"describe these fields of the JSON in docs/commands/{command}.md"
    if isinstance(answer, dict):
        assert answer["schema"] in page


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_documented(command: str) -> None:
    pages = page_of(command) + COMMON.read_text()
    words = set(re.findall(r"--[a-z][a-z-]+", pages))
    options = [{*option.opts, *option.secondary_opts} for option in COMMANDS[command].params]
    assert [names for names in options if any(name.startswith("--") for name in names) and not names & words] == []
