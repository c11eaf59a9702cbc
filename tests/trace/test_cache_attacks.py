"""Whatever lies in the cache folder, and whoever changes it meanwhile, an open gives the right tables."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from paths import DATA

from warpline.cli.main import run
from warpline.sources import cache_folder, private_files
from warpline.sources.cache_folder import Content, traces_folder
from warpline.sources.cache_limit import make_room
from warpline.trace import cache
from warpline.trace import open as opening
from warpline.trace.open import open_trace
from warpline.trace.schema import TABLES
from warpline.trace.trace import Trace

FILE = DATA / "kineto" / "layer_eager.json.gz"
FULL = Path("/dev/full")


@pytest.fixture(autouse=True)
def small_files_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_folder, "SMALL_FILE_BYTES", 0)


@pytest.fixture(scope="module")
def right() -> Trace:
    return open_trace(FILE, cache=False)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a cache with the file's entry."""
    folder = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARPLINE_CACHE", str(folder))
        patch.setattr(cache_folder, "SMALL_FILE_BYTES", 0)
        open_trace(FILE)
    return folder


@pytest.fixture
def stored(written: Path) -> None:
    """The entry, in this test's own cache."""
    shutil.copytree(written, traces_folder().parent, dirs_exist_ok=True)


def entry() -> Path:
    return traces_folder() / Content.of(FILE).key


def same(one: Trace, other: Trace) -> bool:
    return all(one.tables[name].stored.equals(other.tables[name].stored) for name in TABLES)


def is_cached(monkeypatch: pytest.MonkeyPatch) -> bool:
    def reading(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(opening, "_read", reading)
        try:
            open_trace(FILE)
        except ZeroDivisionError:
            return False
    return True


def a_file(path: Path) -> None:
    path.write_bytes(b"not what you look for")


def a_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path is short
    socket.socket(socket.AF_UNIX).bind(path.name)
    os.chdir(here)


THINGS: dict[str, Callable[[Path], None]] = {
    "file": a_file,
    "empty file": Path.touch,
    "folder": lambda path: (path / "inside").mkdir(parents=True),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "FIFO": os.mkfifo,
    "socket": a_socket,
}


@pytest.mark.parametrize(
    ("place", "thing"),
    [("", thing) for thing in THINGS]
    + [("manifest.json", "FIFO"), ("manifest.json", "endless device")]
    + [("gpu.arrow", "FIFO"), ("gpu.arrow", "folder"), ("gpu.arrow", "endless device")],
)
@pytest.mark.usefixtures("stored")
def test_something_else_in_place_of_an_entry_is_replaced(
    place: str, thing: str, right: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = entry() / place if place else entry()
    private_files.remove(path)
    THINGS[thing](path)
    assert same(open_trace(FILE), right)
    assert is_cached(monkeypatch)


@pytest.mark.usefixtures("stored")
def test_a_link_to_a_good_entry_or_table_is_not_followed(
    tmp_path: Path, right: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (entry(), entry() / "gpu.arrow"):
        elsewhere = tmp_path / path.name
        path.rename(elsewhere)
        path.symlink_to(elsewhere)
        assert not is_cached(monkeypatch)
        assert same(open_trace(FILE), right)
        assert elsewhere.exists()


@pytest.mark.parametrize(
    "manifest",
    [
        "[]",
        "null",
        "3",
        '"text"',
        "{}",
        '{"about": 1}',
        "[" * 100_000,
        '{"about": {}, "tables": {}, "source": "kineto"}',
    ],
)
@pytest.mark.usefixtures("stored")
def test_a_hostile_manifest_is_replaced(manifest: str, right: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    (entry() / "manifest.json").write_text(manifest)
    assert not is_cached(monkeypatch)
    assert same(open_trace(FILE), right)
    assert is_cached(monkeypatch)


@pytest.mark.parametrize("change", [{"source": ["kineto"]}, {"tables": {"gpu": "x"}}, {"tables": [1, 2]}])
@pytest.mark.usefixtures("stored")
def test_a_manifest_with_wrong_types_is_replaced(
    change: dict[str, object], right: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = entry() / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **change}))
    assert not is_cached(monkeypatch)
    assert same(open_trace(FILE), right)


@pytest.mark.usefixtures("stored")
def test_a_table_of_other_columns_with_the_right_checksum_is_replaced(
    right: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = entry() / "manifest.json"
    content = json.loads(manifest.read_text())
    shutil.copyfile(entry() / "api.arrow", entry() / "gpu.arrow")
    content["tables"]["gpu"] = content["tables"]["api"]
    manifest.write_text(json.dumps(content))
    assert not is_cached(monkeypatch)
    assert same(open_trace(FILE), right)


def test_the_entry_of_another_file_is_not_taken(right: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    other = DATA / "kineto" / "compiled.json.gz"
    open_trace(other)
    (traces_folder() / Content.of(other).key).rename(entry())
    assert not is_cached(monkeypatch)
    assert same(open_trace(FILE), right)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("place", ["", "manifest.json", "gpu.arrow", "..", "../.."])
@pytest.mark.usefixtures("stored")
def test_another_users_entry_is_not_read(place: str, right: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(entry() / place, 12345, 12345)
    assert not is_cached(monkeypatch)
    assert same(open_trace(FILE), right)


def test_a_trace_is_whole_after_its_entry_was_removed(right: Trace) -> None:
    open_trace(FILE)
    trace = open_trace(FILE)
    private_files.discard(entry())
    assert not entry().exists()
    assert same(trace, right)


def test_two_versions_side_by_side_each_get_their_own_tables(right: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("0.0.1", pl.__version__, "0.0.1", pl.__version__):
        monkeypatch.setattr(pl, "__version__", version)
        assert not is_cached(monkeypatch)
        assert same(open_trace(FILE), right)
        assert is_cached(monkeypatch)


def test_folders_and_files_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPLINE_CACHE", str(tmp_path / "new" / "cache"))
    before = os.umask(0)
    try:
        assert run(["diagnose", str(FILE)]) == 0
    finally:
        os.umask(before)
    for path in [tmp_path / "new", *(tmp_path / "new").rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_older_folders_become_private_but_not_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPLINE_CACHE", str(tmp_path))
    tmp_path.chmod(0o755)
    traces_folder().mkdir(mode=0o755)
    open_trace(FILE)
    assert traces_folder().stat().st_mode & 0o777 == 0o700
    assert tmp_path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("value", ["abc", "-1", "1e9", "4 GB", "٣"])
def test_a_limit_that_is_no_number_is_a_usage_error(
    value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diagnose", str(FILE), "--no-why"]) == 0
    capsys.readouterr()
    monkeypatch.setenv("WARPLINE_CACHE_BYTES", value)
    for verb in ("diagnose", "stats"):
        assert run([verb, str(FILE)]) == 2
        out, error = capsys.readouterr()
        assert not out
        assert error.startswith("warpline: bad-environment: WARPLINE_CACHE_BYTES is ")
        assert error.count("\n") == 1
    assert run(["stats", str(FILE), "--no-cache"]) == 0


def test_the_limit_counts_temporaries_and_removes_abandoned_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = private_files.private_folder(traces_folder())
    for name, age in (("old", 100), ("new", 10)):
        (folder / name).mkdir()
        for file in ("manifest.json", "gpu.arrow"):
            (folder / name / file).write_bytes(bytes(500))
            os.utime(folder / name / file, (2_000_000_000 - age, 2_000_000_000 - age))
    (folder / ".writing-dead").mkdir()
    (folder / ".writing-dead" / "gpu.arrow").write_bytes(bytes(10_000))
    (folder / ".removing-left").write_bytes(bytes(10_000))
    os.mkfifo(folder / ".writing-fifo")
    (folder / ".writing-link").symlink_to("nowhere")
    with private_files.temporary_folder(folder) as temporary:
        (temporary / "gpu.arrow").write_bytes(bytes(1000))
        monkeypatch.setenv("WARPLINE_CACHE_BYTES", "2000")
        make_room()
        assert {path.name for path in folder.iterdir()} == {"new", temporary.name}
        os.utime(temporary, (1, 1))  # older than any writer
        make_room()
        assert [path.name for path in folder.iterdir()] == ["new"]


def test_an_entry_larger_than_the_limit_evicts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    other = traces_folder() / "other"
    other.mkdir(parents=True)
    (other / "manifest.json").write_text("{}")
    monkeypatch.setenv("WARPLINE_CACHE_BYTES", "1000")
    assert len(open_trace(FILE).gpu)
    assert not entry().exists()
    assert other.exists()


def test_a_full_disk_is_no_error(right: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "create_file", lambda _: FULL.open("wb"))
    assert same(open_trace(FILE), right)
    assert not list(traces_folder().iterdir())


@pytest.mark.parametrize("call", ["mkdir", "open", "replace"])
def test_a_folder_that_cannot_be_written_is_no_error(call: str, right: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    real = getattr(os, call)

    def refused(path: object, *arguments: object, **options: object) -> object:
        if str(traces_folder()) in str(path) and (call != "open" or arguments[0] & os.O_CREAT):  # type: ignore[operator]
            raise OSError(30, "Read-only file system", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, call, refused)
    assert same(open_trace(FILE), right)
    assert run(["diagnose", str(FILE), "--no-why"]) == 0


@pytest.mark.usefixtures("stored")
def test_an_entry_can_be_read_where_nothing_can_be_written(right: Trace, monkeypatch: pytest.MonkeyPatch) -> None:

    def refused(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "utime", refused)
    assert is_cached(monkeypatch)
    assert same(open_trace(FILE), right)


KILLED_WRITER = """
import os, signal, sys
from warpline.sources import cache_folder
from warpline.trace import cache
from warpline.trace.open import open_trace

cache_folder.SMALL_FILE_BYTES = 0
setattr(cache, sys.argv[1], lambda *arguments: os.kill(os.getpid(), signal.SIGKILL))
open_trace(sys.argv[2])
"""


@pytest.mark.parametrize("call", ["make_room", "temporary_folder", "create_file", "_checksum", "publish"])
def test_a_writer_that_is_killed_leaves_no_bad_entry(call: str, right: Trace) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED_WRITER, call, str(FILE)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert same(open_trace(FILE), right)
    assert [path.name for path in traces_folder().iterdir()] == [Content.of(FILE).key]
    assert same(open_trace(FILE), right), "from the cache"


def test_readers_and_writers_together_never_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three entries of which two fit: entries are replaced and evicted under their readers."""
    files = [DATA / "kineto" / f"{name}.json.gz" for name in ("layer_eager", "compiled", "block_fp32")]
    traces = {Content.of(file).key: open_trace(file) for file in files}
    whole = sum(path.stat().st_size for path in traces_folder().rglob("*"))
    monkeypatch.setenv("WARPLINE_CACHE_BYTES", str(whole - 1))
    end = time.monotonic() + 1
    found, stored = [], []

    def read(number: int) -> None:
        rounds = random.Random(number)
        while time.monotonic() < end:
            key = rounds.choice(list(traces))
            trace = cache.load(key, FILE)
            time.sleep(rounds.random() / 100)
            found.append(trace is None or same(trace, traces[key]))

    def write() -> None:
        while time.monotonic() < end:
            for key, trace in traces.items():
                cache.store(key, trace)
                stored.append(key)

    with ThreadPoolExecutor() as pool:
        for work in [*(pool.submit(read, number) for number in range(3)), pool.submit(write)]:
            work.result()
    assert stored
    assert found
    assert all(found)
    assert sum(path.stat().st_size for path in traces_folder().rglob("*") if path.is_file()) < whole


def test_a_link_in_place_of_the_folder_of_traces_is_not_followed(
    tmp_path: Path, right: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "documents"
    (own / "thesis").mkdir(parents=True)
    (own / "thesis" / "chapter.txt").write_text("years of work" * 1000)
    own.chmod(0o755)
    traces_folder().parent.mkdir(parents=True, exist_ok=True)
    traces_folder().symlink_to(own)
    monkeypatch.setenv("WARPLINE_CACHE_BYTES", "1000")
    assert same(open_trace(FILE), right)
    make_room()
    assert [path.name for path in own.iterdir()] == ["thesis"]
    assert (own / "thesis" / "chapter.txt").exists()
    assert own.stat().st_mode & 0o777 == 0o755


def swap_the_file(folder: Path) -> None:
    """A and B change places; done twice, all is as before."""
    for one, other in (("a", "c"), ("b", "a"), ("c", "b")):
        (folder / one / "trace.json").rename(folder / other / "trace.json")


def swap_the_folder(folder: Path) -> None:
    for one, other in (("a", "c/a"), ("b", "a"), ("c/a", "b")):
        (folder / one).rename(folder / other)


def swap_the_link(folder: Path) -> None:
    link = folder / "link"
    target = "b" if link.readlink().name == "a" else "a"
    link.unlink()
    link.symlink_to(folder / target)


def write_in_place(folder: Path) -> None:
    one, other = folder / "a" / "trace.json", folder / "b" / "trace.json"
    content, state = one.read_bytes(), one.stat()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    os.utime(one, ns=(state.st_atime_ns, state.st_mtime_ns))


SWAPS = {swap.__name__: swap for swap in (swap_the_file, swap_the_folder, swap_the_link, write_in_place)}


@pytest.fixture
def two_files(tmp_path: Path) -> Path:
    """A folder with two recordings, a link to the folder of the first, and a link to that link."""
    for name, recording in (("a", "layer_eager"), ("b", "compiled")):
        (tmp_path / name).mkdir()
        shutil.copy(DATA / "kineto" / f"{recording}.json.gz", tmp_path / name / "trace.json")
    (tmp_path / "c").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "first").symlink_to("link")
    return tmp_path


@pytest.mark.parametrize("swap", SWAPS)
def test_a_file_that_is_swapped_while_it_is_read_is_not_stored_as_another(
    swap: str, two_files: Path, right: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, read = two_files / "first" / "trace.json", opening._read

    def read_another(path: Path) -> object:
        SWAPS[swap](two_files)
        rows = read(path)
        SWAPS[swap](two_files)
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(opening, "_read", read_another)
        assert not same(open_trace(file), right)
    assert same(open_trace(file), right)


def test_a_file_is_stored_though_another_is_written_beside_it(two_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, read = two_files / "a" / "trace.json", opening._read

    def read_and_write(path: Path) -> object:
        (path.parent / "other").touch()
        return read(path)

    monkeypatch.setattr(opening, "_read", read_and_write)
    open_trace(file)
    assert (traces_folder() / Content.of(file).key).exists()


@pytest.mark.usefixtures("stored")
def test_a_cache_folder_that_is_a_link_is_not_used(
    tmp_path: Path, right: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(traces_folder().parent)
    monkeypatch.setenv("WARPLINE_CACHE", str(link))
    assert not is_cached(monkeypatch)
    assert same(open_trace(FILE), right)
    monkeypatch.setenv("WARPLINE_CACHE_BYTES", "0")
    make_room()
    assert entry().exists()
