"""What a notebook shows of a result: one small card of HTML, every text escaped, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from warpline.sanitise import sanitise

# Colours come from the page, so that a card reads well on a light and on a dark one.
_CARD = "border:1px solid rgba(128,128,128,.4);border-radius:4px;padding:.6em .9em;max-width:60em;color:inherit"
_CELL = "text-align:left;vertical-align:top;padding:.15em 1em .15em 0;background:transparent;color:inherit"
_NUMBER = f"{_CELL};text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"
_NAME = f"{_CELL};opacity:.7;font-weight:400"
_HEAD = "font-weight:600;border-bottom:1px solid rgba(128,128,128,.4)"


def _safe(text: str) -> str:
    from html import escape  # noqa: PLC0415 - results are rarely shown in a notebook, and its names of signs are many

    return escape(sanitise(text))


def card(title: str, *parts: str) -> str:
    """A titled box around parts that are HTML already."""
    return f'<div style="{_CARD}"><div style="font-weight:600">{_safe(title)}</div>{"".join(parts)}</div>'


def paragraph(text: str) -> str:
    """A sentence."""
    return f'<p style="margin:.4em 0">{_safe(text)}</p>'


def facts(values: Mapping[str, str]) -> str:
    """Names and what they are, a row each."""
    rows = "".join(
        f'<tr><th style="{_NAME}">{_safe(name)}</th><td style="{_CELL}">{_safe(value)}</td></tr>'
        for name, value in values.items()
    )
    return f'<table style="border-collapse:collapse;margin:.4em 0">{rows}</table>'


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()) -> str:
    """A table; the columns named in `numbers` are aligned right."""
    styles = [_NUMBER if title in numbers else _CELL for title in titles]
    head = "".join(
        f'<th style="{style};{_HEAD}">{_safe(title)}</th>' for title, style in zip(titles, styles, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{style}">{_safe(text)}</td>' for text, style in zip(row, styles, strict=True))
        + "</tr>"
        for row in rows
    )
    return f'<table style="border-collapse:collapse;margin:.4em 0"><tr>{head}</tr>{body}</table>'
