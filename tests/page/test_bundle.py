"""The committed program of the page is what its sources give, and its own tests pass."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from paths import ROOT

from page.typescript import TARGET, typescript

PAGE = ROOT / "page"
BUILT = ROOT / "src" / "warpline" / "reports" / "page"
MOST_BYTES = 90_000

needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not (PAGE / "node_modules").is_dir(),
    reason="node or page/node_modules is not here: npm ci in page/",
)


def node(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["node", *arguments], cwd=PAGE, capture_output=True, text=True, check=False)


def test_the_contract_of_the_page_is_that_of_python() -> None:
    assert TARGET.read_text() == typescript(), "page/src/contract.ts is old: make page"


def test_the_bundle_is_small() -> None:
    assert sum((BUILT / name).stat().st_size for name in ("bundle.js", "bundle.css")) < MOST_BYTES


def test_the_lock_file_names_no_host() -> None:
    assert "://" not in "".join(
        line for line in (PAGE / "package-lock.json").read_text().splitlines() if "resolved" in line
    )


@needs_node
def test_the_bundle_is_built_from_the_sources() -> None:
    checked = node("build.mjs", "--check")
    assert checked.returncode == 0, checked.stderr


@needs_node
def test_the_types_are_right() -> None:
    checked = node("node_modules/typescript/bin/tsc", "--noEmit")
    assert checked.returncode == 0, checked.stdout


@needs_node
def test_the_unit_tests_of_the_page_pass() -> None:
    built = node("build.mjs", "--tests")
    assert built.returncode == 0, built.stderr
    tested = node("--test", "build/")
    assert tested.returncode == 0, tested.stdout
