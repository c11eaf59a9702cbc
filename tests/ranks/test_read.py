"""Reading the ranks of a job: workers that die, parents that die, and URLs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pool_readers
import pytest
from paths import ROOT
from rank_files import job

from warpline.errors import WarplineError
from warpline.ranks import read
from warpline.ranks.job import open_job
from warpline.ranks.read import in_pool

LATE = {2: 200.0}
STEPS = 60
"""So many that a file is large enough to have a key in the cache."""


def test_a_worker_that_is_killed_costs_its_file_only() -> None:
    found = in_pool(pool_readers.fail_on_two, ["1", "2", "3"], 2, False)
    assert found == [(b"1", ""), (b"", "the process that read it was killed"), (b"3", "")]


def test_a_pool_reads_many_more_files_than_it_has_workers() -> None:
    """A pool whose workers are replaced after some files may wait for ever; this one ends."""
    places = [f"rank{number}" for number in range(40)]
    assert in_pool(pool_readers.fail_on_two, places, 2, False) == [(place.encode(), "") for place in places]


def test_many_small_files_are_read_by_several_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "usable_cores", lambda: 8)
    places = []
    for number in range(100):
        places.append(str(tmp_path / f"rank{number}.json"))
        Path(places[-1]).write_text("{}")
    assert [read._default_workers(places[:count]) for count in (4, 100)] == [1, 8]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_is_left_when_the_parent_is_stopped(tmp_path: Path, stop: signal.Signals) -> None:
    places = [str(tmp_path / name) for name in ("first", "second")]
    script = (
        f"from pool_readers import name_and_sleep; from warpline.ranks.read import in_pool\n"
        f"in_pool(name_and_sleep, {places!r}, 2, False)"
    )
    path = os.pathsep.join([str(ROOT / "src"), str(Path(pool_readers.__file__).parent)])
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": path},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        _until(lambda: all(Path(place).exists() for place in places))
        workers = [int(Path(place).read_text()) for place in places]
        if stop == signal.SIGINT:  # as Ctrl-C does: to all processes of the terminal
            os.killpg(parent.pid, stop)
        else:
            parent.send_signal(stop)
        parent.wait(60)
        _until(lambda: not any(map(_is_running, workers)))
    finally:
        parent.kill()
        parent.wait()


def _until(is_true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def _is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_url_gives_the_answer_of_its_folder(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    job(tmp_path / "ranks", late=LATE)
    here = open_job(tmp_path / "ranks", cache=False).to_dict()
    assert open_job((tmp_path / "ranks").as_uri(), cache=False).to_dict() == here


def test_a_file_of_a_store_is_not_fetched_again_once_it_is_summarised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setenv("WARPLINE_CACHE", str(tmp_path / "cache"))
    store = fsspec.filesystem("memory")
    for file in job(tmp_path / "ranks", late=LATE, steps=STEPS):
        store.pipe_file(f"/bucket/ranks/{file.name}", file.read_bytes())
    try:
        first = open_job("memory://bucket/ranks").to_dict()
        assert first["job"]["straggler"]["ranks"] == [2]
        fetched: list[str] = []
        monkeypatch.setattr(type(store), "get_file", lambda _self, name, _target, **_: fetched.append(name))
        assert json.dumps(open_job("memory://bucket/ranks").to_dict()) == json.dumps(first)
        assert not fetched
    finally:
        store.rm("/bucket", recursive=True)


def test_a_url_without_files_is_one_clear_error() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(WarplineError):
        open_job("memory://no-such-bucket/ranks")
