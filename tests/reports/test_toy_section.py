"""The test of a section in docs/adding-a-section.md passes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from paths import ROOT


def test_the_page_s_own_test_passes(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/adding-a-section.md").read_text(), flags=re.M | re.S)
    page: dict[str, Any] = {}
    exec(compile(code, "adding-a-section.md", "exec"), page)
    page["test_copies_are_summed_by_direction"](tmp_path)
