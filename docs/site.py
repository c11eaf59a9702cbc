"""The docs site: pages that lie outside docs/, the page of planted faults, the menu, and links. mkdocs calls this.

A Markdown link works in the repository and on the site. In the repository the site's pages lie in two places: those in
docs/ are at the site's root, and the others keep their path from the repository's root. The page of planted faults is
on the site only.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
DOCS = "docs/"
OUTSIDE = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "benchmarks/ranks/README.md",
    "faults/README.md",
    "faults/LOG.md",
    "faults/everyday/README.md",
    "faults/kernels/README.md",
    "tests/data/README.md",
    "page/README.md",
)
"""Pages that are read in the repository too, beside what they are about."""
PLANTED, PLANTED_LINK = "faults.md", "\n[Every planted fault, with its times](../faults.md).\n"
"""A page that is made from the recordings, and the link to it at the end of faults/README."""
SECTIONS = {"Commands": "commands", "Findings": "findings", "Inside kernels": "reasons"}
"""Folders of docs/, one menu entry each."""
FIRST = ("tutorial.md", "capture.md", "python.md", "pytest.md", "ci.md", "notebook.md", "training-callbacks.md")
"""Pages about use, in reading order; the others in docs/ say how it works."""
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Makes the menu from the folders."""
    docs = ROOT / DOCS
    use = [name for name in FIRST if (docs / name).exists()]
    menu: list[Any] = [{"Start": ["README.md", *use]}]
    for title, folder in SECTIONS.items():
        pages = sorted(f"{folder}/{page.name}" for page in (docs / folder).glob("*.md"))
        menu.append({title: sorted(pages, key=lambda page: not page.endswith("README.md"))})
    menu.append({"How it works": sorted(page.name for page in docs.glob("*.md") if page.name not in use)})
    menu.append({"Project": [*(name for name in OUTSIDE[1:] if (ROOT / name).exists()), PLANTED]})
    config.nav = menu
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages from outside docs/ and the page of planted faults."""
    for name in OUTSIDE:
        if (ROOT / name).exists():
            files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    sys.path.insert(0, str(ROOT))
    from faults.page import page  # noqa: PLC0415 - mkdocs starts without the repository on its path

    files.append(File.generated(config, PLANTED, content=page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links between files of the repository into links between pages of the site."""
    here = page.file.src_uri
    source = here if here in OUTSIDE else DOCS + here
    text = LINK.sub(lambda link: _on_site(link[1], source, here), markdown)
    return text + PLANTED_LINK if here == "faults/README.md" else text


def _on_site(link: str, source: str, here: str) -> str:
    """The link as it reads on the site; a file that is no page there is named by its path in the repository."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    page = target.removeprefix(DOCS) if target.startswith(DOCS) else target
    return posixpath.relpath(page, posixpath.dirname(here) or ".")
