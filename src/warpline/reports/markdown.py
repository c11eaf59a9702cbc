"""Sections as Markdown, for an issue, a pull request or a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from warpline.reports.sections import (
    Bar,
    Commands,
    Content,
    Fact,
    Facts,
    Figure,
    Findings,
    Note,
    Notes,
    Report,
    Section,
    Table,
    Text,
    sanitised,
)
from warpline.reports.values import shown
from warpline.units import duration, share

_ACTIVE = re.compile(r"([\\`*_{}\[\]<>|#~$])|(:)(?=//)|(?<=\bwww)(\.)", re.IGNORECASE)
"""Characters of Markdown's markup, of tables, HTML and formulas, and those that make a link of an address."""
_LIST = re.compile(r"(\s*+)(?:([-+=])|([0-9]{1,9}+)([.)]))(?=[-=\s]|$)")
"""The beginning of a list or of a heading's line."""
_MENTION = re.compile(r"(?<![\w@])@(?=\w)")
"""The beginning of @name: code hosts notify that person unless a zero-width space parts the two."""
_FENCE = re.compile(r"`{3,}")


def render(report: Report) -> str:
    """The whole report; markup in a file's text is escaped."""
    report = sanitised(report)
    blocks = [f"# {escaped(report.title)}"] if report.title else []
    for section in report.sections:
        blocks += _section(section)
    return "\n\n".join(blocks) + "\n"


def escaped(text: str) -> str:
    """Escape the text for Markdown: no file's text is a link, a mention, an image, a table's border, HTML or a list."""
    safe = _ACTIVE.sub(lambda found: f"\\{found[0]}", text.replace("&", "&amp;"))
    safe = _MENTION.sub("@&#8203;", safe)
    start = _LIST.match(safe)
    if start is None:
        return safe
    spaces, sign, number, point = start.groups(default="")
    return f"{spaces}{number}\\{sign}{point}{safe[start.end() :]}"


def _fenced(language: str, text: str) -> str:
    """A block of code, which no line of the text can end."""
    fence = "`" * max([3, *(len(run) + 1 for run in _FENCE.findall(text))])
    return f"{fence}{language}\n{text}\n{fence}"


def _section(section: Section) -> Iterator[str]:
    if section.title:
        yield f"## {escaped(section.title)}"
    for content in section.content:
        yield from _content(content)


def _content(content: Content) -> Iterator[str]:
    match content:
        case Text():
            yield f"**{escaped(content.text)}**" if content.tone == "strong" else escaped(content.text)
        case Facts():
            yield _facts(content.facts)
        case Notes():
            yield "\n".join(line for note in content.notes for line in _note(note))
        case Bar():
            parts = "\n".join(
                f"| {escaped(part.name)} | {duration(part.value_ns)} | {share(part.value_ns, content.whole_ns)} |"
                for part in content.parts
            )
            yield f"| part | time | share |\n|---|---:|---:|\n{parts}"
            if content.caption:
                yield escaped(content.caption)
        case Figure():
            yield _fenced("text", content.text)
            if content.caption:
                yield escaped(content.caption)
        case Table():
            yield _table(content)
            if content.hidden_note:
                yield f"({escaped(content.hidden_note)})"
        case Findings():
            for entry in content.entries:
                verify = f"Verify: {entry.verify}" if entry.verify else ""
                lines = [f"**{escaped(entry.name)}**: {escaped(entry.text)}", _facts(entry.facts)]
                lines += map(escaped, (entry.where, entry.how, verify))
                yield "\n\n".join(line for line in lines if line)
        case Commands():
            lines = [f"$ {one.command}" + (f"  # {one.purpose}" if one.purpose else "") for one in content.commands]
            yield _fenced("console", "\n".join(lines))


def _facts(facts: Sequence[Fact]) -> str:
    return "\n".join(f"- {escaped(fact.label)}: {escaped(fact.text)}" for fact in facts)


def _note(note: Note) -> Iterator[str]:
    code = note.code.replace("`", "'")
    yield f"- {note.severity}: " + (f"`{code}`: " if code else "") + escaped(note.text)
    yield from (f"  {line}" for line in (escaped(note.means), *(f"→ {escaped(one)}" for one in note.do)) if line)


def _table(table: Table) -> str:
    head = " | ".join(escaped(column.title) for column in table.columns)
    rule = "|".join("---:" if column.is_right else "---" for column in table.columns)
    rows = [
        " | ".join(escaped(shown(value, column.unit)) for value, column in zip(row, table.columns, strict=True))
        for row in table.rows
    ]
    return "\n".join([f"| {head} |", f"|{rule}|", *(f"| {row} |" for row in rows)])
