"""The source of docs/adding-a-source.md works as the page says, in a package of its own."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_package import install
from paths import ROOT

from warpline.analyses.breakdown import device_times
from warpline.cli.main import run
from warpline.doctor.files import examine_files
from warpline.errors import UnreadableFile, WarplineError
from warpline.sources import registry
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace

((CODE,), (TABLE,)) = (
    re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs/adding-a-source.md").read_text(), flags=re.M | re.S)
    for language in ("python", "toml")
)
PROFILE = "TOYTRACE\nfirst 0 40 0 7\nsecond 60 100 0 7\n"


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    group, point = TABLE.splitlines()
    (tmp_path / "site").mkdir()
    install(tmp_path / "site", monkeypatch, group.split('"')[1], point.replace('"', ""), CODE)
    registry.sources.cache_clear()
    yield
    registry.sources.cache_clear()


def opened(folder: Path, text: str) -> Trace:
    file = folder / "profile.toy"
    file.write_text(text)
    return open_trace(file, cache=False)


def test_rows_become_a_trace_whose_times_add_up(tmp_path: Path) -> None:
    trace = opened(tmp_path, PROFILE)
    (device,) = device_times(trace)
    assert (device.busy_ns, device.idle_ns, device.window_ns) == (80, 20, 100)
    assert trace.source == "toy"


def test_damage_becomes_health(tmp_path: Path) -> None:
    trace = opened(tmp_path, "TOYTRACE\nfirst 0 40 0 7\nsecond 60")
    assert "truncated-file" in {entry.code for entry in trace.health_entries}
    with pytest.raises(UnreadableFile, match="empty-trace"):
        opened(tmp_path, "TOYTRACE\n")


def test_a_packed_one_is_found_in_a_folder_and_answers_name_its_profiler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "profile.toy.gz").write_bytes(gzip.compress(PROFILE.encode()))
    assert run(["diagnose", str(folder), "-v"]) == 0
    assert "the toy profiler" in capsys.readouterr().out
    assert [found.subject for found in examine_files([folder])] == ["profile.toy.gz"]


def test_an_entry_point_that_cannot_be_loaded_is_an_error_that_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, code, why in (("broken", "1 / 0", "ZeroDivisionError"), ("other", "SOURCE = 7", "an? int, not a Source")):
        site = tmp_path / name
        site.mkdir()
        with monkeypatch.context() as patch:
            install(site, patch, registry.ENTRY_POINTS, f"{name} = {name}_package:SOURCE", code)
            registry.sources.cache_clear()
            with pytest.raises(WarplineError, match=rf"bad-plugin: .*{name}[-_]package.*{why}"):
                registry.sources()
