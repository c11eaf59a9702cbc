"""The server, with the official SDK: on stdin and stdout, or as streamable HTTP on this machine alone.

Needs `pip install mcp`.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
from collections.abc import Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from warpline import __version__
from warpline.errors import UsageError
from warpline.mcp.resources import finding_names, finding_page, skill_text
from warpline.mcp.tools import Answers, schema_of

ADDRESS = "127.0.0.1"
PATH = "/mcp"
FINDINGS = "warpline://findings/"
SKILL = "warpline://skill"
Context = ServerRequestContext[dict[str, Any]]


def make_server(answers: Answers) -> Server[dict[str, Any]]:
    """The server of these tools."""

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=tool.about,
                    input_schema=schema_of(tool),
                    annotations=types.ToolAnnotations(read_only_hint=name != "try", open_world_hint=False),
                )
                for name, tool in answers.tools.items()
            ]
        )

    async def call_tool(context: Context, call: types.CallToolRequestParams) -> types.CallToolResult:
        async def tell(seconds: float, text: str) -> None:
            await context.session.report_progress(round(seconds, 1), None, text)

        text, is_answer = await answers.text(call.name, call.arguments or {}, tell)
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=not is_answer)

    async def list_resources(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        pages = [
            types.Resource(uri=f"{FINDINGS}{name}", name=name, mime_type="text/markdown") for name in finding_names()
        ]
        skill = types.Resource(uri=SKILL, name="skill", mime_type="text/markdown")
        return types.ListResourcesResult(resources=[skill, *pages])

    async def read_resource(_: Context, asked: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(asked.uri)
        try:
            text = skill_text() if uri == SKILL else finding_page(uri.removeprefix(FINDINGS))
        except UsageError as error:
            raise MCPError(types.INVALID_PARAMS, error.line()) from error
        found = types.TextResourceContents(uri=uri, mime_type="text/markdown", text=text)
        return types.ReadResourceResult(contents=[found])

    return Server(
        "warpline",
        version=__version__,
        instructions=skill_text(),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


def serve_stdio(answers: Answers) -> None:
    """Serve one client until it closes stdin or ends."""
    server = make_server(answers)

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    _end_with_commands(answers)
    try:
        anyio.run(serve)
    finally:
        answers.commands.end_all()


def serve_http(answers: Answers, port: int, token: str, when_ready: Callable[[str], None]) -> None:
    """Serve many clients until Ctrl-C; `when_ready` gets the address. Port 0 takes a free one."""
    import uvicorn  # noqa: PLC0415 - loads when it is used

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((ADDRESS, port))
        app = WithToken(make_server(answers).streamable_http_app(streamable_http_path=PATH, host=ADDRESS), token)
        settings = uvicorn.Config(app, log_level="error", access_log=False, server_header=False)
        listening.listen()
        when_ready(f"http://{ADDRESS}:{listening.getsockname()[1]}{PATH}")
        try:
            uvicorn.Server(settings).run([listening])
        finally:
            answers.commands.end_all()


class WithToken:
    """Refuses every request without the token. The SDK itself refuses other hosts and origins."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        if scope["type"] == "http":
            given = Request(scope).headers.get("authorization", "")
            if not secrets.compare_digest(given.encode(), self._expected):
                await PlainTextResponse("the token is missing or wrong\n", 401)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _end_with_commands(answers: Answers) -> None:
    """On a signal end the commands, and then as the signal would have: a read of stdin cannot be cancelled."""

    def end(number: int, _: object) -> None:
        answers.commands.end_all()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
