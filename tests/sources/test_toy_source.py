"""The reader of docs/adding-a-source.md works as the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

from warpline.analyses.breakdown import device_times
from warpline.errors import UnreadableFile
from warpline.trace.build import build
from warpline.trace.trace import Trace

BLOCKS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/adding-a-source.md").read_text(), flags=re.M | re.S)


def opened(folder: Path, text: str) -> Trace:
    (reader,) = [block for block in BLOCKS if "def read_toy" in block]
    page: dict[str, Any] = {}
    exec(compile(reader, "adding-a-source.md", "exec"), page)
    file = folder / "profile.toy"
    file.write_text(text)
    return build(file, page["read_toy"](file))


def test_rows_become_a_trace_whose_times_add_up(tmp_path: Path) -> None:
    trace = opened(tmp_path, "TOYTRACE\nfirst 0 40 0 7\nsecond 60 100 0 7\n")
    (device,) = device_times(trace)
    assert (device.busy_ns, device.idle_ns, device.window_ns) == (80, 20, 100)
    assert trace.source == "toy"


def test_damage_becomes_health(tmp_path: Path) -> None:
    trace = opened(tmp_path, "TOYTRACE\nfirst 0 40 0 7\nsecond 60")
    assert "truncated-file" in {entry.code for entry in trace.health_entries}
    with pytest.raises(UnreadableFile, match="empty-trace"):
        opened(tmp_path, "TOYTRACE\n")
