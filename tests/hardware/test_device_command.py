"""`warpline device` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from warpline.cli.device import device
from warpline.errors import UsageError


def run(*arguments: str) -> str:
    result = CliRunner().invoke(device, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_all_chips_are_listed_with_where_their_ceilings_come_from() -> None:
    text = run()
    assert "H200-SXM" in text
    assert "MI300X" in text
    assert "measured" in text


def test_one_chip_is_shown_with_its_sources() -> None:
    text = run("H200")
    assert "989.4" in text
    assert "data sheet" in text


def test_json_has_values_and_sources() -> None:
    one = json.loads(run("A100-SXM4-80GB", "--json"))
    assert one["tensor"]["bf16"]["value"] == 312e12
    assert one["tensor"]["bf16"]["source"]
    everything = json.loads(run("--json"))
    assert everything["schema"] == "warpline.devices/1"
    assert len(everything["devices"]) > 40


def test_measure_does_not_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        run("measure", "-o", str(path))
    assert path.read_text() == "mine"


def test_output_goes_with_measure_only(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        run("H200", "-o", str(tmp_path / "x.json"))


def test_measurements_are_kept_and_used_from_then_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    document = {
        "schema": "warpline.ceilings/1",
        "device": {"name": "NVIDIA L4", "sm_count": 58, "compute": "8.9"},
        "date": "2026-01-01",
        "origin": "a test",
        "measurements": {"gemm.bf16": {"value": 1e14, "unit": "FLOP/s"}},
    }
    monkeypatch.setattr("warpline.cli.device.measure", lambda report: document)
    run("measure")
    assert (tmp_path / "warpline" / "ceilings" / "nvidia-l4.json").exists()
    assert json.loads(run("L4", "--json"))["measured"]["values"] == {"gemm.bf16": 1e14}
