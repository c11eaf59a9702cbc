"""The docs site: it builds without a warning, and every link between its pages leads to a page."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r'(?:href|src)="([^"#?]+)')
ELSEWHERE = re.compile(r"[a-z]+:|//|/")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install 'warpline[docs]'")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_every_link_leads_somewhere(site: Path) -> None:
    broken = {
        (page.relative_to(site).as_posix(), link)
        for page in site.rglob("*.html")
        for link in LINK.findall(page.read_text(encoding="utf-8"))
        if not ELSEWHERE.match(link) and not (page.parent / html.unescape(link)).exists()
    }
    assert not broken


def test_every_page_of_the_docs_is_on_the_site(site: Path) -> None:
    docs = ROOT / "docs"
    pages = {page.relative_to(docs).with_suffix(".html").as_posix() for page in docs.rglob("*.md")}
    pages = {page.replace("README.html", "index.html") for page in pages}
    assert not {page for page in pages if not (site / page).exists()}


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loads = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="https?://[^"]+"')
    found = {match[0] for page in site.rglob("*.html") for match in loads.finditer(page.read_text(encoding="utf-8"))}
    assert not {one for one in found if 'rel="canonical"' not in one}
