"""The server as a client built with the SDK meets it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from paths import DEMO, ROOT

pytest.importorskip("mcp", reason="needs pip install 'warpline[mcp]'")

import anyio
import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from warpline.mcp import tools
from warpline.mcp.command import ProcessBounds
from warpline.mcp.folders import Folders
from warpline.mcp.pages import PAGE_CHARACTERS
from warpline.mcp.server import make_server
from warpline.mcp.tools import TOOLS, Answers

SLOW = ROOT / "faults" / "recordings" / "planted" / "item_per_layer.plain.json.gz"
FIXED = ROOT / "faults" / "recordings" / "planted" / "item_per_layer.fixed.json.gz"
CROSS = "select count(distinct a.id * 1000000 + b.id * 1000 + c.id) n from ops a, ops b, ops c"
"""Counts 33 million numbers that differ."""
PATIENCE_S = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a slow recording and one of the same program with its fix."""
    shutil.copy(SLOW, tmp_path / "slow.json.gz")
    shutil.copy(FIXED, tmp_path / "fixed.json.gz")
    return tmp_path


def parameters(*words: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", "warpline", "mcp", *words], env={**os.environ, "PYTHONPATH": _path()}
    )


def _path() -> str:
    return os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])


def within(folder: Path, work: Callable[[Client], Awaitable[None]], allow_run: bool = False) -> None:
    """Do the work with a client of a server in this process."""

    async def connected() -> None:
        async with Client(make_server(Answers(Folders.of((folder,)), allow_run))) as client:
            await work(client)

    anyio.run(connected)


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The answer; every one is JSON, and small."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert len(content.text) <= PAGE_CHARACTERS
    answer: dict[str, Any] = json.loads(content.text)
    assert result.is_error == ("error" in answer)
    return answer


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    return str((await ask(client, tool, **arguments))["error"]["code"])


def test_six_tools_with_schemas_and_try_only_if_allowed(folder: Path) -> None:
    async def work(client: Client) -> None:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == [name for name in TOOLS if name != "try"]
        assert all(tool.input_schema["type"] == "object" and tool.description for tool in listed)
        assert await refused(client, "try", program=["train.py"]) == "no-such-tool"

    async def allowed(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
        assert await refused(client, "try", program=["slow.json.gz"]) == "not-a-program"
        assert await refused(client, "try", program=["/usr/bin/env"]) == "outside-folders"

    within(folder, work)
    within(folder, allowed, allow_run=True)


def test_from_a_slow_program_to_a_verified_comparison(folder: Path) -> None:
    async def work(client: Client) -> None:
        parts = (await ask(client, "diagnose", path="slow.json.gz"))["parts"]
        fix = parts["/verdict"]["fix"]
        assert (parts["/verdict"]["cause"], fix) == ("sync", "remove_sync")
        predicted = (await ask(client, "whatif", path="slow.json.gz", fixes=[fix]))["parts"]
        assert predicted["/gain"] == parts["/verdict"]["gain"]
        compared = (await ask(client, "compare", before=["slow.json.gz"], after=["fixed.json.gz"]))["parts"]
        assert compared["/verdict"] == "faster"

    within(folder, work)


def test_the_cursor_leads_through_the_whole_answer(folder: Path) -> None:
    async def work(client: Client) -> None:
        page = await ask(client, "diagnose", path="slow.json.gz")
        seen = dict(page["parts"])
        while "cursor" in page:
            page = await ask(client, "diagnose", path="slow.json.gz", cursor=page["cursor"])
            assert not seen.keys() & page["parts"].keys()
            seen |= page["parts"]
        assert any(part.startswith("/kernels") for part in seen)
        assert await refused(client, "diagnose", path="slow.json.gz", cursor="0.0") == "stale-cursor"

    within(folder, work)


def test_queries_read_and_nothing_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(client: Client) -> None:
        counted = await ask(
            client, "query", path="slow.json.gz", sql="select count(*) n from gpu where kind = 'memset'"
        )
        assert counted["parts"]["/0"]["n"] > 0
        for sql in (
            "delete from gpu",
            "explain select * from gpu",
            "show tables",
            "create table x as select 1 a",
            "select * from read_csv('/etc/passwd')",
            "--json",
        ):
            assert await refused(client, "query", path="slow.json.gz", sql=sql) == "bad-query"
        assert (
            await refused(client, "query", path="slow.json.gz", sql="select a.id from ops a, ops b") == "too-many-rows"
        )
        monkeypatch.setattr(tools, "QUERY", ProcessBounds(seconds=120, memory_bytes=400 << 20))
        assert await refused(client, "query", path="slow.json.gz", sql=CROSS) in {"too-much-memory", "out-of-memory"}
        monkeypatch.setattr(tools, "QUERY", ProcessBounds(seconds=0.1))
        assert await refused(client, "query", path="slow.json.gz", sql="select 1 a") == "too-slow"

    within(folder, work)


def test_names_are_explained_and_findings_have_pages(folder: Path) -> None:
    async def work(client: Client) -> None:
        names = (await ask(client, "explain", names=["hidden_sync", "--help"]))["parts"]
        assert names["/names"][0]["kind"] == "finding"
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
        assert "warpline://skill" in listed
        page = await client.read_resource("warpline://findings/hidden_sync")
        assert page.contents[0].text.startswith("# hidden_sync")
        with pytest.raises(Exception, match="no page about"):
            await client.read_resource("warpline://findings/../../README")

    within(folder, work)


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("nothing", {}, "no-such-tool"),
        ("diagnose", {}, "bad-arguments"),
        ("diagnose", {"path": 5}, "bad-arguments"),
        ("diagnose", {"path": "slow.json.gz", "more": 1}, "bad-arguments"),
        ("diagnose", {"path": "../x.json"}, "outside-folders"),
        ("diagnose", {"path": "missing.json"}, "no-file"),
        ("diagnose", {"path": "empty.json"}, "empty-file"),
        ("diagnose", {"path": "slow.json.gz", "steps": "--no-cache"}, "bad-steps"),
        ("whatif", {"path": "slow.json.gz", "fixes": ["nothing"]}, "unknown-fix"),
        ("compare", {"before": [], "after": ["fixed.json.gz"]}, "bad-arguments"),
        ("explain", {"names": ["a" * 300_000]}, "bad-arguments"),
        ("explain", {"names": ["a" * 90_000] * 15}, "bad-arguments"),
        ("explain", {"names": ["a\0b"]}, "bad-arguments"),
        ("explain", {"names": ["half \ud800"]}, "bad-arguments"),
        ("query", {"path": "slow.json.gz", "sql": "/" + "x" * 5000}, "bad-query"),
        ("whatif", {"path": "slow.json.gz", "fixes": ["/"]}, "unknown-fix"),
        ("diagnose", {"path": "/" + "x" * 5000}, "outside-folders"),
        ("diagnose", {"path": "slow.json.gz", "job": "\0"}, "bad-arguments"),
    ],
)
def test_what_cannot_be_answered_has_one_shape(folder: Path, tool: str, arguments: dict[str, Any], code: str) -> None:
    (folder / "empty.json").touch()

    async def work(client: Client) -> None:
        answer = await ask(client, tool, **arguments)
        assert set(answer["error"]) == {"code", "message", "hint"}
        assert answer["error"]["code"] == code

    within(folder, work)


def test_half_a_surrogate_pair_anywhere_is_refused(folder: Path) -> None:
    """A client library sends none, but a call over HTTP or within a process can."""
    answers = Answers(Folders.of((folder,)), allow_run=True)

    async def tell(_: float, __: str) -> None: ...

    async def work() -> None:
        for tool, arguments in (
            ("diagnose", {"path": "x\udcff"}),
            ("diagnose", {"path": "slow.json.gz", "at": "/\ud800"}),
            ("diagnose", {"\ud800": 1}),
            ("compare", {"before": ["\ud800"], "after": ["fixed.json.gz"]}),
            ("try", {"program": ["train.py", "\ud800"]}),
        ):
            text, is_answer = await answers.text(tool, arguments, tell)
            assert not is_answer
            assert json.loads(text)["error"]["code"] == "bad-arguments"

    anyio.run(work)


def test_a_file_whose_name_is_no_text_can_be_named_by_its_folder(folder: Path) -> None:
    (folder / "one").mkdir()
    shutil.copy(SLOW, os.fsencode(folder / "one") + b"/a\xff.json.gz")
    shutil.copy(SLOW, os.fsencode(folder / "one") + b"/b\xff.json.gz")

    async def work(client: Client) -> None:
        error = (await ask(client, "diagnose", path="one"))["error"]
        assert (error["code"], "a\ufffd.json.gz" in error["message"]) == ("which-trace", True)

    within(folder, work)


def test_arguments_that_are_no_recording_are_not_looked_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[Path] = []
    monkeypatch.setattr(tools, "profiles_in", lambda path: looked_up.append(path) or [])

    async def work(client: Client) -> None:
        await ask(client, "explain", names=["/", "/etc"])
        await ask(client, "diagnose", path="slow.json.gz", steps="/")
        await ask(client, "query", path="slow.json.gz", sql="/etc")

    within(folder, work)
    assert not looked_up


def test_long_work_reports_progress(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpline.mcp.command.TELL_S", 0.05)
    told: list[str | None] = []

    async def progress(_: float, __: float | None, message: str | None) -> None:
        told.append(message)

    async def work(client: Client) -> None:
        await client.call_tool("diagnose", {"path": "slow.json.gz"}, progress_callback=progress)

    within(folder, work)
    assert "diagnose is running" in told


def test_nothing_is_written_beside_the_recordings(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}

    async def work(client: Client) -> None:
        await ask(client, "diagnose", path="slow.json.gz")
        await ask(client, "compare", before=["slow.json.gz"], after=["fixed.json.gz"])

    within(folder, work)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_over_stdio_the_server_answers_and_ends_with_its_client(folder: Path) -> None:
    async def work() -> None:
        async with Client(parameters(str(folder))) as client:
            assert (await ask(client, "diagnose", path="slow.json.gz"))["answer"] == "warpline.diagnosis/1"

    anyio.run(work)


def _request(number: int, tool: str, **arguments: Any) -> bytes:
    call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    return json.dumps(call).encode() + b"\n"


HELLO = b"".join(
    json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    for message in (
        {
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
    )
)


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize("how", ["end of stdin", "SIGTERM", "SIGKILL"])
def test_a_client_that_dies_ends_the_server_and_its_work(folder: Path, how: str) -> None:
    command = [sys.executable, "-m", "warpline", "mcp", str(folder)]
    environment = {**os.environ, "PYTHONPATH": _path()}
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment)
    assert server.stdin is not None
    server.stdin.write(HELLO + _request(1, "query", path="slow.json.gz", sql=CROSS))
    server.stdin.flush()
    until = time.monotonic() + PATIENCE_S
    while not (children := _children(server.pid)) and time.monotonic() < until:
        time.sleep(0.02)
    assert children
    if how == "end of stdin":
        server.stdin.close()
    else:
        server.send_signal(signal.Signals[how])
    server.wait(PATIENCE_S)
    while any(map(_is_running, children)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(_is_running, children))


@pytest.fixture
def address(folder: Path) -> Iterator[tuple[str, str]]:
    """The address and token of a server of streamable HTTP."""
    environment = {**os.environ, "PYTHONPATH": _path()}
    command = [sys.executable, "-m", "warpline", "mcp", "--http", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    url = server.stdout.readline().split()[0]
    token = server.stdout.readline().split()[-1]
    yield url, token
    server.send_signal(signal.SIGINT)
    server.wait(PATIENCE_S)


def test_twenty_clients_over_http_are_answered_at_once(address: tuple[str, str]) -> None:
    url, token = address
    answers: list[str] = []

    async def one(number: int) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=300) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            names = await ask(client, "explain", names=["hidden_sync" if number % 2 else "remove_sync"])
            answers.append(names["parts"]["/names"][0]["name"])

    async def work() -> None:
        async with anyio.create_task_group() as clients:
            for number in range(20):
                clients.start_soon(one, number)

    anyio.run(work)
    assert sorted(answers) == ["hidden_sync"] * 10 + ["remove_sync"] * 10


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
    ],
)
def test_a_request_without_the_token_or_from_elsewhere_is_refused(
    address: tuple[str, str], headers: dict[str, str], status: int
) -> None:
    url, token = address
    own = {} if status == 401 else {"Authorization": f"Bearer {token}"}
    more = {"Accept": "application/json, text/event-stream"}
    reply = httpx2.post(url, headers={**more, **own, **headers}, json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert reply.status_code == status


def test_the_demo_is_answered_below_its_own_folder_only(tmp_path: Path) -> None:
    (tmp_path / "demo.json.xz").symlink_to(DEMO)

    async def work(client: Client) -> None:
        assert await refused(client, "diagnose", path="demo.json.xz") == "outside-folders"

    within(tmp_path, work)
