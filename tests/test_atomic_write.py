"""An output file is written whole, or stays as it was."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from warpline.atomic_write import atomic_file, write_atomically


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    old = tmp_path / "report.html"
    old.write_text("old")
    for target in (old, tmp_path / "new.html"):
        with pytest.raises(OSError, match="No space"), atomic_file(target) as part:
            part.write_text("half")
            raise OSError(28, "No space left on device")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert old.read_text() == "old"


def test_a_new_file_has_the_usual_permissions_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    old, new, usual = (tmp_path / name for name in ("old", "new", "usual"))
    old.write_text("x")
    old.chmod(0o640)
    usual.write_text("x")
    write_atomically(old, "a")
    write_atomically(new, "a")
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert new.stat().st_mode == usual.stat().st_mode
    assert old.read_text() == new.read_text() == "a"


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("real")
    write_atomically(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_pipe_is_written_in_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_atomically(pipe, "through")
    reader.join()
    assert got == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_file_in_a_folder_that_takes_no_new_one_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    target = tmp_path / "only"
    target.write_text("old")
    monkeypatch.setattr("tempfile.mkstemp", refuse)
    write_atomically(target, "new")
    assert target.read_text() == "new"
