"""Pages of the documentation that `warpline explain` prints: concepts, lessons, and reasons inside a kernel."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_SHORT_PARTS = re.compile(r"\*\*(?:What it is|How to fix)\.\*\* (?:```\w*\n)?(.+)")
_SEE = re.compile(r"See \[([^\[\]]+)\]\(([\w/-]{1,80}\.md)\)")
_LINK = re.compile(r"\[([^\[\]]+)\]\([^()\[\]]*\)")


def pages_folder() -> Traversable:
    """The pages: in the package, or in a clone's docs."""
    packaged = files("warpline") / "pages"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "docs"


def _with_page(text: str) -> str:
    """Where a paragraph ends with a page to read, which page that is: a terminal shows no links."""
    return _SEE.sub(r"See [\1](\2) (docs/\2)", text)


@cache
def concepts() -> dict[str, str]:
    """Each concept's name and its paragraph."""
    _, *parts = _HEADING.split((pages_folder() / "concepts.md").read_text(encoding="utf-8"))
    return {name: _with_page(" ".join(text.split())) for name, text in zip(parts[::2], parts[1::2], strict=True)}


def concept(name: str) -> str | None:
    """The paragraph of a concept, by one of the names in its heading: in any case, with spaces, dashes or underscores,
    as a plural too, and in American spelling."""
    wanted = _plain(name)
    known = {_plain(one): text for heading, text in concepts().items() for one in _names(heading)}
    return known.get(wanted) or known.get(wanted.removesuffix("s"))


def _names(heading: str) -> list[str]:
    """`DRAM, HBM` and `prefill and decode` have two names each, beside the heading itself."""
    return [heading, *re.split(r", | and ", heading)]


def without_links(text: str) -> str:
    """Markdown as a terminal shows it: of a link only its words."""
    return _LINK.sub(r"\1", text)


def _plain(name: str) -> str:
    return re.sub(r"iz(?=ation|e)", "is", re.sub(r"[\s_-]+", " ", name.strip().lower()))


@cache
def lessons() -> dict[str, str]:
    """Each lesson's name and its title."""
    found = {
        page.name.removesuffix(".md"): _text("lessons", page.name) for page in (pages_folder() / "lessons").iterdir()
    }
    return {name: text.partition("\n")[0].removeprefix("# ") for name, text in sorted(found.items())}


def lesson(name: str) -> str | None:
    """The lesson of that name as text without links."""
    return without_links(_text("lessons", f"{name}.md")) if name in lessons() else None


@cache
def reason(name: str) -> str | None:
    """What a reason inside a kernel is, and how to fix it."""
    if f"{name}.md" not in {page.name for page in (pages_folder() / "reasons").iterdir()}:
        return None
    page = _text("reasons", f"{name}.md")
    return without_links(" ".join(_SHORT_PARTS.findall(page))) or None


def _text(folder: str, name: str) -> str:
    return (pages_folder() / folder / name).read_text(encoding="utf-8")
