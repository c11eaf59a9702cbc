"""What the manifest of a run says of one trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpline.capture.run_folder import MANIFEST, Construction, LoaderWork, loader_work, optimizers, recorded_entry


@pytest.mark.parametrize(
    "manifest",
    [
        None,
        "",
        "[1]",
        '{"traces": 1}',
        '{"traces": [1]}',
        '{"traces": [{"file": "other"}]}',
        '{"traces": ' + "[" * 5000,
    ],
)
def test_a_manifest_that_says_nothing_is_empty(manifest: str | None, tmp_path: Path) -> None:
    if manifest is not None:
        (tmp_path / MANIFEST).write_text(manifest)
    assert recorded_entry(tmp_path / "trace.json") == {}


def test_the_entry_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text('{"traces": [{"file": "a.json"}, {"file": "b.json", "host_costs": {"x": 1}}]}')
    assert recorded_entry(tmp_path / "b.json")["host_costs"] == {"x": 1}


MADE = '{"class": "Adam", "file": "train.py", "line": 31, "function": "main"}'


@pytest.mark.parametrize(
    ("noted", "found"),
    [
        (f"[{MADE}]", [Construction("Adam", "train.py", 31, "main")]),
        ('[{"class": "Adam"}]', []),
        ('[{"class": "Adam", "file": "train.py", "line": "x", "function": "main"}]', []),
        ("7", []),
    ],
    ids=["noted", "half", "no number", "no list"],
)
def test_the_lines_that_construct_optimizers_are_those_noted(
    noted: str, found: list[Construction], tmp_path: Path
) -> None:
    (tmp_path / MANIFEST).write_text(f'{{"traces": [{{"file": "a.json", "optimizers": {noted}}}]}}')
    assert optimizers(tmp_path / "a.json") == found


@pytest.mark.parametrize(
    ("noted", "found"),
    [
        ('{"workers": 2, "cpu_ns": 900}', LoaderWork(2, 900)),
        ("null", None),
        ('{"workers": 0, "cpu_ns": 900}', None),
        ('{"workers": 0.5, "cpu_ns": 900}', None),
        ('{"workers": 2, "cpu_ns": -1}', None),
        ('{"workers": 2}', None),
        ("[7]", None),
    ],
)
def test_what_workers_did_is_as_noted(noted: str, found: LoaderWork | None, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(f'{{"traces": [{{"file": "a.json", "loader_work": {noted}}}]}}')
    assert loader_work(tmp_path / "a.json") == found
