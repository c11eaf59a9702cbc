"""Serves the page of a trace to this machine's browser, with the rows of a time range on request.

Bound to 127.0.0.1. A request must name the secret token in its path and this server as its host, and no other site may
have sent it: any web page that is open can send requests to 127.0.0.1. There are no files to ask for.
Needs `pip install starlette uvicorn`.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from typing import Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDRESS = "127.0.0.1"
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
LARGEST_TIME_NS = 2**62


class Served(Protocol):
    """What is served."""

    def document(self) -> str:
        """The page."""
        ...

    def rows(self, start_ns: int, end_ns: int) -> bytes:
        """The rows of the timeline between two times, as the page reads them."""
        ...


class Guard:
    """Refuses every request that did not come from the page itself."""

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str]) -> None:
        self._app, self._token, self._hosts = app, token, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, with the headers of every answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refused = self._refusal(Request(scope))
        await (refused or self._app)(scope, receive, with_headers)

    def _refusal(self, request: Request) -> Response | None:
        headers = request.headers
        if headers.get("host") not in self._hosts:
            return PlainTextResponse("another host\n", 403)
        # A file sends the browser to the page: who knows the token may open the page, but no site may fetch from it.
        is_opening = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"} and not is_opening:
            return PlainTextResponse("another site\n", 403)
        if headers.get("origin", f"http://{headers['host']}") != f"http://{headers['host']}":
            return PlainTextResponse("another origin\n", 403)
        token = request.url.path.split("/")[1]
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return PlainTextResponse("wrong token\n", 403)
        return None


def application(served: Served, token: str, port: int) -> ASGIApp:
    """The server's program: the page at /TOKEN/, rows at /TOKEN/rows?start=NS&end=NS, and nothing else."""

    def document(_: Request) -> Response:
        return Response(served.document(), media_type="text/html")

    def rows(request: Request) -> Response:
        try:
            start, end = (int(request.query_params.get(name, "")) for name in ("start", "end"))
        except ValueError:
            return PlainTextResponse("start and end are nanoseconds\n", 400)
        if not -LARGEST_TIME_NS < start < end < LARGEST_TIME_NS:
            return PlainTextResponse("start is before end\n", 400)
        return Response(served.rows(start, end), media_type="application/octet-stream")

    routes = [Route(f"/{token}/", document), Route(f"/{token}/rows", rows)]
    hosts = frozenset(f"{name}:{port}" for name in (ADDRESS, "localhost"))
    return Guard(Starlette(routes=routes), token, hosts)


def serve(served: Served, port: int, when_ready: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `when_ready` gets the page's address. Port 0 takes a free one."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((ADDRESS, port))
        bound, token = listening.getsockname()[1], secrets.token_urlsafe(24)
        settings = uvicorn.Config(
            application(served, token, bound), log_level="error", access_log=False, server_header=False, lifespan="off"
        )
        listening.listen()
        when_ready(f"http://{ADDRESS}:{bound}/{token}/")
        uvicorn.Server(settings).run([listening])
