"""A package that is installed for one test: a module, and an entry point to something in it."""

from __future__ import annotations

from pathlib import Path

import pytest


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, group: str, point: str, code: str) -> None:
    """Make the code importable as the module that `name = module:object` names, and announce the entry point."""
    module = point.partition("=")[2].partition(":")[0].strip()
    (folder / f"{module}.py").write_text(code)
    facts = folder / f"{module}-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{group}]\n{point}\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(__import__("sys").modules, module, raising=False)
