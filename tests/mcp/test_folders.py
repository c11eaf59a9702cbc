"""Which files a client may read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warpline.errors import UsageError
from warpline.mcp.folders import Folders


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """A folder with a trace and a folder of ranks, and a secret beside it."""
    (tmp_path / "secret.json").write_text("{}")
    ranks = tmp_path / "open" / "ranks"
    ranks.mkdir(parents=True)
    (ranks.parent / "trace.json").write_text("{}")
    (ranks / "rank0.json").write_text("{}")
    return Folders.of((tmp_path / "open",))


def refused(folders: Folders, name: str) -> str:
    with pytest.raises(UsageError) as error:
        folders.readable(name)
    return error.value.code


def test_files_and_folders_below_are_read(folders: Folders) -> None:
    root = folders.roots[0]
    assert folders.readable("trace.json") == root / "trace.json"
    assert folders.readable(str(root / "trace.json")) == root / "trace.json"
    assert folders.readable("ranks/../ranks") == root / "ranks"
    (root / "link.json").symlink_to(root / "trace.json")
    assert folders.readable("link.json") == root / "trace.json"


def test_a_name_is_looked_for_in_every_folder(folders: Folders, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    both = Folders.of((tmp_path / "other", folders.roots[0]))
    assert both.readable("trace.json") == folders.roots[0] / "trace.json"


@pytest.mark.parametrize("name", ["../secret.json", "/etc/passwd", "/", "..", "ranks/../../secret.json", "a\0b"])
def test_what_is_outside_is_refused(folders: Folders, name: str) -> None:
    assert refused(folders, name) == "outside-folders"


def test_links_to_the_outside_are_refused(folders: Folders, tmp_path: Path) -> None:
    root = folders.roots[0]
    (root / "out.json").symlink_to(tmp_path / "secret.json")
    (root / "up").symlink_to(tmp_path)
    assert refused(folders, "out.json") == refused(folders, "up/secret.json") == "outside-folders"
    (root / "ranks" / "rank1.json").symlink_to(tmp_path / "secret.json")
    assert refused(folders, "ranks") == "outside-folders"


def test_a_link_beside_a_trace_that_is_read_with_it_is_refused(folders: Folders, tmp_path: Path) -> None:
    (folders.roots[0] / "trace.look.json.gz").symlink_to(tmp_path / "secret.json")
    assert refused(folders, "trace.json") == "outside-folders"


def test_pipes_devices_and_missing_files_are_refused(folders: Folders) -> None:
    os.mkfifo(folders.roots[0] / "pipe.json")
    assert refused(folders, "pipe.json") == "not-a-file"
    assert refused(Folders((Path("/dev"),)), "null") == "not-a-file"
    assert refused(folders, "missing.json") == "no-file"
    assert refused(folders, "x" * 5000) == "no-file"


def test_nothing_outside_is_looked_up_to_say_so(folders: Folders, tmp_path: Path) -> None:
    # Were the link followed, the name would lead back into the folder, and tell that the link exists.
    (tmp_path / "back").symlink_to(folders.roots[0] / "ranks")
    for outside in (
        "../back/../trace.json",
        str(tmp_path / "back" / "rank0.json"),
        str(tmp_path / "no" / "rank0.json"),
    ):
        assert refused(folders, outside) == "outside-folders"


def test_a_folder_named_through_a_link_is_read_under_that_name(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "trace.json").write_text("{}")
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    folders = Folders.of((tmp_path / "alias",))
    assert folders.readable(str(tmp_path / "alias" / "trace.json")) == (tmp_path / "real" / "trace.json").resolve()


def test_links_that_lead_nowhere_are_judged_by_their_words(folders: Folders) -> None:
    (folders.roots[0] / "ranks" / "loop").symlink_to("loop")
    assert folders.readable("ranks") == folders.roots[0] / "ranks"
    (folders.roots[0] / "ranks" / "gone.json").symlink_to("/no/such/file")
    assert refused(folders, "ranks") == "outside-folders"
