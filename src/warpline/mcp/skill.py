"""The page that tells an agent how to use warpline."""

from __future__ import annotations

from importlib.resources import files


def skill_text() -> str:
    """The page, as Markdown."""
    return (files("warpline.mcp") / "skill.md").read_text(encoding="utf-8")
