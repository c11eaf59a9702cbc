"""Sections as JSON: titles, columns with units, and raw values."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from warpline.reports.sections import Content, Report, Table

SCHEMA = "warpline.report/1"


def render(report: Report) -> dict[str, Any]:
    """The report as a document of schema `warpline.report/1`."""
    return {
        "schema": SCHEMA,
        "title": report.title,
        "sections": [
            {"name": section.name, "title": section.title, "content": [_content(part) for part in section.content]}
            for section in report.sections
        ],
    }


def _content(content: Content) -> dict[str, Any]:
    kind = type(content).__name__.lower()
    if not isinstance(content, Table):
        return {"kind": kind, **to_builtins(content)}
    names = [column.name for column in content.columns]
    cells = to_builtins(content)["rows"]
    return {
        "kind": kind,
        "columns": [
            {"name": column.name, "title": column.title, "unit": column.unit, "key": column.key}
            for column in content.columns
        ],
        "rows": [dict(zip(names, row, strict=True)) for row in cells],
        "hidden": content.hidden,
        "hidden_note": content.hidden_note,
    }
