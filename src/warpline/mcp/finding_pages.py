"""The pages about findings, which a client can read as resources."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from warpline.errors import UsageError


def _folder() -> Traversable:
    """In the wheel beside this module; in a checkout they are part of the docs."""
    packaged = files("warpline.mcp") / "findings"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "docs" / "findings"


def finding_names() -> list[str]:
    """Every finding that has a page."""
    pages = [page.name for page in _folder().iterdir() if page.name.endswith(".md")]
    return sorted(name.removesuffix(".md") for name in pages if name != "README.md")


def finding_page(name: str) -> str:
    """What a finding means, how it is measured, when it is wrong, how to fix it and how to verify that."""
    if name not in finding_names():
        raise UsageError("no-such-finding", f"there is no page about {name!r}", "list the resources")
    return (_folder() / f"{name}.md").read_text(encoding="utf-8")
