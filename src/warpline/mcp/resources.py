"""Pages that a client can read: how to use warpline, and what each finding means."""

from __future__ import annotations

from importlib.resources import files

from warpline.errors import UsageError
from warpline.reports.pages import pages_folder


def skill_text() -> str:
    """How an agent uses warpline, as Markdown."""
    return (files("warpline.mcp") / "skill.md").read_text(encoding="utf-8")


def finding_names() -> list[str]:
    """Every finding that has a page."""
    pages = [page.name for page in (pages_folder() / "findings").iterdir() if page.name.endswith(".md")]
    return sorted(name.removesuffix(".md") for name in pages if name != "README.md")


def finding_page(name: str) -> str:
    """What a finding means, how it is measured, when it is wrong, how to fix it and how to verify that."""
    if name not in finding_names():
        raise UsageError("no-such-finding", f"there is no page about {name!r}", "list the resources")
    return (pages_folder() / "findings" / f"{name}.md").read_text(encoding="utf-8")
