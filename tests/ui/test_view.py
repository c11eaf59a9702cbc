"""The local server: the page and its rows for the page itself, and nothing for anyone else."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette", reason="needs pip install 'warpline[view]'")
pytest.importorskip("uvicorn", reason="needs pip install 'warpline[view]'")

from kineto_files import launched, write
from local_server import listening

from warpline.cli.main import ENDED_BY_SIGNAL, run
from warpline.ui import view
from warpline.ui.view import HEADERS

PATIENCE_S = 120


class Trace:
    """Stands for a trace: its page is one word, and its rows are the times asked for."""

    def document(self) -> str:
        return "<!doctype html>page"

    def rows(self, start_ns: int, end_ns: int) -> bytes:
        return f"{start_ns} {end_ns}".encode()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with listening(Trace()) as found:
        yield found


def ask(address: str, path: str | None = None, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    connection.request(method, parts.path if path is None else path, headers=headers)
    return connection.getresponse()


def test_the_page_and_its_rows_are_served(address: str) -> None:
    page = ask(address)
    assert (page.status, page.read()) == (200, b"<!doctype html>page")
    rows = ask(address, f"{urlsplit(address).path}rows?start=-5&end=70")
    assert (rows.status, rows.read()) == (200, b"-5 70")


def test_every_answer_forbids_other_sites_to_use_it(address: str) -> None:
    for answer in (ask(address), ask(address, "/"), ask(address, "/wrong/")):
        assert {name: answer.getheader(name) for name in HEADERS} == HEADERS
        assert answer.getheader("server") is None


@pytest.mark.parametrize("path", ["/", "/wrong/", "/wrong/rows?start=0&end=1", "//", "/%2e%2e/etc/passwd", "/%C3%A9/"])
def test_a_wrong_token_is_refused(address: str, path: str) -> None:
    assert ask(address, path).status == 403


@pytest.mark.parametrize("path", ["../etc/passwd", "..%2f..%2fetc%2fpasswd", "page.html", "rows/..", "static/"])
def test_there_are_no_files(address: str, path: str) -> None:
    assert ask(address, urlsplit(address).path + path).status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://attacker.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_hosts_and_sites_are_refused(address: str, headers: dict[str, str]) -> None:
    assert ask(address, **headers).status == 403


@pytest.mark.parametrize("query", ["", "?start=1", "?start=a&end=2", "?start=5&end=5", "?start=0&end=1" + "0" * 400])
def test_odd_times_are_refused(address: str, query: str) -> None:
    assert ask(address, f"{urlsplit(address).path}rows{query}").status == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(address: str, method: str) -> None:
    assert ask(address, method=method).status == 405


def test_a_file_may_send_the_browser_to_the_page_if_it_knows_the_token(address: str) -> None:
    opening = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert ask(address, **opening).status == 200
    assert ask(address, "/wrong/", **opening).status == 403
    assert ask(address, **opening | {"Sec-Fetch-Dest": "iframe"}).status == 403
    assert ask(address, **opening | {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}).status == 403


def test_the_browser_is_started_without_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user of a machine sees the arguments of every program."""
    address, opened = "http://127.0.0.1:1/SECRET/", []

    def started(url: str) -> None:
        file = Path(urlsplit(url).path)
        opened.append((url, file.read_text(), file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777))

    monkeypatch.setattr(webbrowser, "open", started)
    monkeypatch.setattr(view, "serve", lambda page, port, ready: ready(address))
    assert run(["view", "--no-why", str(write(tmp_path, launched("gemm", 10, 20, 10, 1)))]) == 0
    ((url, text, file_mode, folder_mode),) = opened
    assert url.startswith("file:///") and "SECRET" not in url
    assert f"url={address}" in text
    assert (file_mode, folder_mode) == (0o600, 0o700)
    assert not Path(urlsplit(url).path).exists()


def test_who_is_asked_to_end_leaves_no_file_behind(tmp_path: Path) -> None:
    trace, temporary = write(tmp_path, launched("gemm", 10, 20, 10, 1)), tmp_path / "temporary"
    temporary.mkdir()
    viewer = subprocess.Popen(
        [sys.executable, "-m", "warpline", "view", str(trace)],
        env={**os.environ, "TMPDIR": str(temporary), "BROWSER": f"sh -c 'touch {temporary}/opened' %s"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + PATIENCE_S
        while not (temporary / "opened").exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert list(temporary.glob("*/view.html"))
        viewer.send_signal(signal.SIGTERM)
        assert viewer.wait(PATIENCE_S) == ENDED_BY_SIGNAL + signal.SIGTERM
    finally:
        viewer.kill()
        viewer.wait()
    assert [path.name for path in temporary.iterdir()] == ["opened"]
