"""The same question about the same file is answered from disk; anything that the answer depends on makes it new."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from paths import DATA

from warpline.capture.recorded import MANIFEST
from warpline.cli.main import run
from warpline.findings.diagnosis import diagnose
from warpline.reports import kept
from warpline.reports.diagnosis import report
from warpline.reports.kept import FinishedAnswer, answer_key, load, store
from warpline.sources.cache_folder import answers_folder
from warpline.trace.open import open_trace

SMALL = DATA / "kineto" / "streams.json.gz"
"""Every question takes an analysis, so the file is small."""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("warpline.sources.cache_folder.SMALL_FILE_BYTES", 0)
    return Path(shutil.copy(SMALL, tmp_path / "trace.json.gz"))


def answers() -> list[Path]:
    return sorted(answers_folder().glob("*.json"))


@pytest.mark.parametrize("words", [[], ["-v"], ["--json"]])
def test_a_second_answer_is_the_first_one(
    words: list[str], file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["diagnose", str(file), *words]) == 0
    first = capsys.readouterr().out
    monkeypatch.setattr("warpline.cli.diagnose._finished", lambda *_: pytest.fail("analysed again"))
    assert run(["diagnose", str(file), *words]) == 0
    assert capsys.readouterr().out == first


def test_every_form_comes_from_one_analysis(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forms = ([], ["-v"], ["--json"])
    fresh = []
    for words in forms:
        assert run(["diagnose", str(file), *words, "--no-cache"]) == 0
        fresh.append(capsys.readouterr().out)
    run(["diagnose", str(file)])
    capsys.readouterr()
    monkeypatch.setattr("warpline.cli.diagnose._finished", lambda *_: pytest.fail("analysed again"))
    for words, expected in zip(forms, fresh, strict=True):
        assert run(["diagnose", str(file), *words]) == 0
        assert capsys.readouterr().out == expected


def test_no_cache_keeps_nothing(file: Path) -> None:
    assert run(["diagnose", str(file), "--no-cache"]) == 0
    assert not answers_folder().exists()


def test_what_an_answer_depends_on_changes_its_name(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [answer_key(file, []), answer_key(file, ["--steps 1:2"])]
    (file.parent / MANIFEST).write_text("{}")
    names.append(answer_key(file, []))
    ceilings = tmp_path / "ceilings.json"
    ceilings.write_text("{}")
    monkeypatch.setenv("WARPLINE_CEILINGS", str(ceilings))
    names.append(answer_key(file, []))
    os.utime(ceilings, ns=(1, 1))
    names.append(answer_key(file, []))
    with file.open("ab") as end:
        end.write(b"\0" * 10)
    names.append(answer_key(file, []))
    monkeypatch.setattr(kept, "_PACKAGE", tmp_path / "other code")
    names.append(answer_key(file, []))
    assert None not in names
    assert len(set(names)) == len(names)


def test_a_damaged_answer_is_made_again(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["diagnose", str(file)])
    first = capsys.readouterr().out
    for damage in ("", "{", "[]", '{"json": 1}', '{"json": "", "brief": {"is": "Path"}, "full": 3}'):
        answers()[0].write_text(damage)
        assert load(answers()[0].stem) is None, damage
    assert run(["diagnose", str(file)]) == 0
    assert capsys.readouterr().out == first
    assert load(answers()[0].stem) is not None


def test_a_report_is_the_same_after_a_round_trip() -> None:
    diagnosis = diagnose(open_trace(SMALL))
    answer = FinishedAnswer("{}", report(diagnosis), report(diagnosis, verbose=True))
    store("round-trip", answer)
    assert load("round-trip") == answer


def test_the_oldest_answers_are_removed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEPT", 2)
    run(["diagnose", str(file)])
    only = load(answers()[0].stem)
    assert only is not None
    answers()[0].unlink()
    for age, name in enumerate(("a", "b", "c"), start=1):
        store(name, only)
        os.utime(answers_folder() / f"{name}.json", (age, age))
    assert [path.stem for path in answers()] == ["b", "c"]


def test_a_folder_that_cannot_be_written_is_no_error(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("not a folder")
    monkeypatch.setenv("WARPLINE_CACHE", str(blocked))
    assert run(["diagnose", str(file)]) == 0
