"""What a program writes into its folder lands in the copy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from warpline.trial.working_copy import MAX_ENTRIES, from_anywhere, make_working_copy

WRITES = """
import os, sys, tempfile
from pathlib import Path
from warpline.capture.trial.writes import FileWrites
writes = FileWrites(sys.argv[1], sys.argv[1])
class Holder:
    opener = open
Holder().opener("log.txt", mode="a").write("more")
os.close(os.open("flags.txt", os.O_WRONLY | os.O_CREAT))
Path("out", "result.txt").write_text("new")
Path("out", "old.txt").unlink()
Path("..", "elsewhere.txt").write_text("noted")
with tempfile.TemporaryDirectory() as scratch:
    Path(scratch, "not_noted.txt").write_text("the program's own, and gone")
tempfile.NamedTemporaryFile().close()
cache = Path(sys.argv[1], "..", "torchinductor_someone")
cache.mkdir()
Path(cache, "header.lock").touch()
open("config.txt").read()
print("|".join(writes.files))
"""


def folder(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    (source / "out").mkdir(parents=True)
    (source / ".git").mkdir()
    (source / "log.txt").write_text("first ")
    (source / "config.txt").write_text("kept")
    (source / "out" / "old.txt").write_text("old")
    return source


def test_a_program_beside_the_folder_is_found_from_the_copy(tmp_path: Path) -> None:
    source = folder(tmp_path)
    (tmp_path / "train.py").touch()
    (tmp_path / "python").symlink_to(sys.executable)
    command = ["../python", "../train.py", "out/old.txt", "../missing", "--lr=0.1"]
    assert from_anywhere(command, source) == [
        str(tmp_path / "python"),
        str(tmp_path / "train.py"),
        *command[2:],
    ]


def test_writes_and_deletions_stay_in_the_copy(tmp_path: Path) -> None:
    source, copy = folder(tmp_path), tmp_path / "copy"
    make_working_copy(source, copy, tmp_path / "scratch")
    ran = subprocess.run(
        [sys.executable, "-c", WRITES, str(copy)], cwd=copy, capture_output=True, text=True, check=True
    )
    assert (copy / "log.txt").read_text() == "first more"
    assert (source / "log.txt").read_text() == "first "
    assert (source / "out" / "old.txt").read_text() == "old"
    assert not (source / "out" / "result.txt").exists()
    assert not (source / "flags.txt").exists()
    assert ran.stdout.strip() == str(tmp_path / "elsewhere.txt")


def test_a_folder_with_many_files_is_one_link(tmp_path: Path) -> None:
    source, copy = folder(tmp_path), tmp_path / "copy"
    (source / "images").mkdir()
    for number in range(MAX_ENTRIES):
        (source / "images" / f"{number}.png").touch()
    make_working_copy(source, copy, tmp_path / "scratch")
    assert (copy / "images").is_symlink()
    assert (copy / "out").is_dir()
    assert not (copy / "out").is_symlink()
    assert (copy / ".git").is_symlink()


def test_a_program_that_resolves_its_own_path_stays_in_the_copy(tmp_path: Path) -> None:
    source, copy = folder(tmp_path), tmp_path / "copy"
    (source / "src").mkdir()
    (source / "src" / "train.py").write_text(
        "from pathlib import Path\n(Path(__file__).resolve().parents[1] / 'out' / 'here.txt').touch()\n"
    )
    (source / "run.sh").write_text('cd "$(dirname "$(readlink -f "$0")")"; exec "$1" src/train.py\n')
    make_working_copy(source, copy, tmp_path / "scratch")
    subprocess.run(["sh", str(copy / "run.sh"), sys.executable], cwd=tmp_path, check=True)
    assert (copy / "out" / "here.txt").exists()
    assert not (source / "out" / "here.txt").exists()
