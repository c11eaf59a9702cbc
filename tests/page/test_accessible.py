"""What axe-core, a checker of web pages, says of the page: names, roles, contrast in light and dark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from answers import diagnosed
from paths import DEMO, ROOT

from warpline.reports.page.document import page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
AXE = ROOT / "page" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: make browser"),
    pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make page"),
    pytest.mark.long,
]
CHECK = """async (rules) => {
  for (const one of document.querySelectorAll('#panels > section')) one.style.contentVisibility = 'visible';
  warpline.timeline.choose(5);
  const found = (await axe.run(rules ? { runOnly: rules } : {})).violations, clipped = 'label-content-name-mismatch';
  // A bar of the flame graph shows as much of its name as fits; a reader hears all of it.
  return found.filter((one) => one.id !== clipped || one.nodes.some((node) => !node.html.startsWith('<g class="frame')))
    .map((one) => [one.id, one.help, one.nodes.map((node) => node.html)]);
}"""


def test_a_checker_finds_nothing_in_either_colours(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page(diagnosed(DEMO)).html)
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for scheme, rules in (("light", None), ("dark", ["color-contrast"])):
            # The checker is a script that the page's own policy forbids.
            tab = browser.new_context(color_scheme=scheme, bypass_csp=True).new_page()
            tab.goto(file.as_uri())
            tab.wait_for_selector("#numbers", state="attached")
            tab.add_script_tag(path=AXE)
            assert tab.evaluate(CHECK, rules) == [], scheme
        browser.close()
