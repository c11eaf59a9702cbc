"""Titles: every verb names the recording in the same words."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import op, write
from paths import DEMO

from warpline.cli.main import run
from warpline.reports.title import recording
from warpline.trace.open import open_trace


@pytest.mark.parametrize("verb", ["diagnose", "ops", "parts", "roofline", "path", "whatif"])
def test_every_verb_names_file_device_and_steps_alike(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([verb, str(DEMO)]) == 0
    assert capsys.readouterr().out.startswith("demo.json.xz · NVIDIA H200 · 4 steps")


def test_a_chip_to_compare_with_is_not_called_the_chip_of_the_recording(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", str(DEMO), "--device", "A100-SXM-80GB"]) == 0
    title = capsys.readouterr().out.splitlines()[0]
    assert title.startswith("demo.json.xz · NVIDIA H200 · 4 steps · compared with A100")


def test_a_recording_without_gpu_activity_says_so(tmp_path: Path) -> None:
    assert recording(open_trace(write(tmp_path, [op("aten::mm", 0, 5)]))).endswith("· no GPU activity · no steps found")
