"""Sections as HTML: plain elements with classes, no style and no script, every text escaped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

from msgspec.structs import replace

from warpline.reports.sections import (
    MIN_NAMED_SHARE,
    Bar,
    Column,
    Commands,
    Content,
    Explained,
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
)
from warpline.reports.values import shown
from warpline.sanitise import sanitise
from warpline.units import duration, several, share

BAR_WIDTH = 10_000
"""Units of a bar's drawing; the page stretches it."""
_TYPED = re.compile(r"`([^`]+)`")
_NOT_A_WORD = re.compile(r"[^a-z0-9]+")


def render(report: Report) -> str:
    """The whole report as a heading and sections."""
    title = [f"<h1>{text(report.title)}</h1>"] if report.title else []
    return "\n".join([*title, *map(section, report.sections)]) + "\n"


def text(words: str) -> str:
    """Text of a file or of a report as the text of an element, never of an attribute: nothing in it is markup."""
    return escape(sanitise(words), quote=False)


def prose(words: str) -> str:
    """The same, where `backticks` mark what to type."""
    return _TYPED.sub(r"<code>\1</code>", text(words))


def word(name: str) -> str:
    """A name as a part of a class or an id."""
    return _NOT_A_WORD.sub("-", name.lower()).strip("-")


def section(one: Section, within: Sequence[Section] = ()) -> str:
    """One section with its title, and others folded within it."""
    name, inner = word(one.name), "\n".join([_inner(one), *map(folded, within)])
    kind = "section answer" if one.is_lead else "section"
    if not one.title:
        return f'<section id="{name}" class="{kind}" aria-label="{name.capitalize()}">{inner}</section>'
    return f'<section id="{name}" class="{kind}"><h2>{text(one.title)}</h2>\n{inner}</section>'


def folded(one: Section, is_open: bool = False) -> str:
    """One section that shows only its title until a reader opens it."""
    shown, title = " open" * is_open, text(one.title)
    return f'<details id="{word(one.name)}"{shown}><summary>{title}</summary>{_inner(one)}</details>'


def folded_notes(one: Section) -> str:
    """A section of notes, open only if one is an error; its title has their number, and the codes of those in doubt."""
    notes = [note for content in one.content if isinstance(content, Notes) for note in content.notes]
    counted = Counter(note.severity for note in notes)
    kinds = [several(counted[severity], severity) for severity in ("error", "warning") if counted[severity]]
    codes = dict.fromkeys(note.code for note in notes if note.severity != "info")
    named = f"{' and '.join(kinds)} ({', '.join(codes)})" if kinds else several(len(notes), "note")
    return folded(replace(one, title=f"{one.title}: {named}"), is_open=counted["error"] > 0)


def _inner(one: Section) -> str:
    return "\n".join(element for content in one.content for element in _elements(content))


def _elements(content: Content) -> Iterator[str]:
    match content:
        case Text(tone="strong"):
            first, stop, rest = content.text.partition(". ")
            yield f'<p class="strong">{text(first + stop.strip())}</p>'
            if rest:
                yield f'<p class="lead">{text(rest)}</p>'
        case Text():
            yield f'<p class="{content.tone}">{text(content.text)}</p>'
        case Facts():
            yield _facts(content.facts)
        case Notes():
            yield f'<ul class="notes">{"".join(map(_note, content.notes))}</ul>'
        case Bar():
            yield _bar(content)
        case Figure():
            caption = f"<figcaption>{text(content.caption)}</figcaption>" if content.caption else ""
            drawn = "\n".join(map(text, content.text.split("\n")))
            yield f"<figure><pre>{drawn}</pre>{caption}</figure>"
        case Table():
            yield _table(content)
        case Findings():
            yield f'<div class="cards">{"".join(map(_finding, content.entries))}</div>'
        case Commands():
            items = "".join(
                f"<li><code>{text(one.command)}</code> {text(one.purpose)}</li>" for one in content.commands
            )
            yield f'<ul class="commands">{items}</ul>'


def _facts(facts: Sequence[Fact]) -> str:
    pairs = (f"<div><dt>{text(fact.label)}</dt><dd>{text(fact.text)}</dd></div>" for fact in facts)
    return f"<dl>{''.join(pairs)}</dl>"


def _finding(entry: Explained) -> str:
    lines = [f"<p>{text(entry.text)}</p>"]
    lines += [f'<p class="how">{text(entry.how)}</p>'] if entry.how else []
    lines += [f'<p class="quiet">{text(entry.where)}</p>'] if entry.where else []
    lines += [f'<p class="quiet">Verify: {prose(entry.verify)}</p>'] if entry.verify else []
    facts = _facts(entry.facts) if entry.facts else ""
    return f'<article class="finding"><h3>{text(entry.name)}</h3><div>{"".join(lines)}</div>{facts}</article>'


def _note(note: Note) -> str:
    code = f"<code>{text(note.code)}</code> " if note.code else ""
    means = f'<p class="quiet">{text(note.means)}</p>' if note.means else ""
    actions = "".join(f'<p class="advice">→ {text(action)}</p>' for action in note.do)
    return f'<li class="{note.severity}"><b>{note.severity}</b> {code}{text(note.text)}{means}{actions}</li>'


def _bar(content: Bar) -> str:
    """A bar drawn to scale, whose parts sum to the whole, and a legend of the larger ones with their times."""
    drawn, listed, before, small_ns = [], list[str](), 0, 0
    for part in content.parts:
        kind, length = word(part.name), f"{duration(part.value_ns)}, {share(part.value_ns, content.whole_ns)}"
        left, right = (BAR_WIDTH * ns / max(content.whole_ns, 1) for ns in (before, before + part.value_ns))
        before += part.value_ns
        if not part.value_ns:
            continue
        title = f"{text(part.name)}: {length}"
        drawn.append(
            f'<rect class="part {kind}" x="{left:.1f}" width="{right - left:.1f}" height="10">'
            f"<title>{title}</title></rect>"
        )
        if part.value_ns < MIN_NAMED_SHARE * content.whole_ns:
            small_ns += part.value_ns
            continue
        listed.append(_legend(part.name, part.value_ns, content.whole_ns))
    if small_ns:
        listed.append(_legend("other", small_ns, content.whole_ns))
    caption = f"<figcaption>{text(content.caption)}</figcaption>" if content.caption else ""
    return (
        f'<figure class="bar"><svg viewBox="0 0 {BAR_WIDTH} 10" preserveAspectRatio="none" aria-hidden="true">'
        f'{"".join(drawn)}</svg><ul class="legend">{"".join(listed)}</ul>{caption}</figure>'
    )


def _legend(name: str, part_ns: int, whole_ns: int) -> str:
    swatch = f'<rect class="part {word(name)}" width="1" height="1"/>'
    drawn = f'<svg class="swatch" viewBox="0 0 1 1" aria-hidden="true">{swatch}</svg>'
    return f"<li>{drawn}{text(name)} <b>{share(part_ns, whole_ns)}</b> <span>{duration(part_ns)}</span></li>"


def _table(content: Table) -> str:
    """A table; numbers are aligned right."""
    head = "".join(f'<th scope="col"{_side(column)}>{text(column.title)}</th>' for column in content.columns)
    cells = zip(*(_cells(content, at) for at in range(len(content.columns))), strict=True)
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    note = f'<p class="quiet">({text(content.hidden_note)})</p>' if content.hidden_note else ""
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{note}'


def _cells(content: Table, at: int) -> Iterator[str]:
    """The cells of one column."""
    column, values = content.columns[at], [row[at] for row in content.rows]
    largest = max((value for value in values if isinstance(value, int | float)), default=0)
    for value in values:
        drawn = ""
        if column.has_bars and isinstance(value, int | float) and largest > 0:
            drawn = (
                '<svg class="cell-bar" viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">'
                f'<rect width="{value / largest:.4f}" height="1"/></svg> '
            )
        yield f"<td{_side(column)}>{drawn}{text(shown(value, column.unit))}</td>"


def _side(column: Column) -> str:
    return ' class="number"' if column.is_right else ""
