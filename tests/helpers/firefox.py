"""Firefox by its own protocol, WebDriver BiDi: Playwright drives only a Firefox of its own."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import threading
from pathlib import Path
from typing import Any

from tornado.websocket import WebSocketClientConnection, websocket_connect

PATIENCE_S = 300
LARGEST_MESSAGE = 100_000_000
PREFERENCES = """user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("app.normandy.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("layout.css.prefers-color-scheme.content-override", {scheme});
"""
"""Nothing that asks for something by itself; the scheme is 0 for dark, 1 for light."""


class Firefox:
    """A headless Firefox with one tab, and everything that its page said and asked for."""

    def __init__(self, program: str, folder: Path, dark: bool = False) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        (folder / "user.js").write_text(PREFERENCES.format(scheme=0 if dark else 1))
        self._numbers, self._waiting = itertools.count(1), dict[int, asyncio.Future[Any]]()
        self._process = subprocess.Popen(
            [program, "--headless", "--no-remote", "--profile", str(folder), "--remote-debugging-port", "0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._socket: WebSocketClientConnection = self._wait(self._connect(self._address()))
        self._listener = asyncio.run_coroutine_threadsafe(self._listen(), self._loop)
        self.send("session.new", capabilities={})
        self.send("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        (self.tab,) = (one["context"] for one in self.send("browsingContext.getTree")["contexts"])

    def _address(self) -> str:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if "listening on ws://" in line:
                threading.Thread(target=self._process.stderr.read, daemon=True).start()
                return line.split()[-1] + "/session"
        raise RuntimeError("Firefox did not start")

    async def _connect(self, address: str) -> WebSocketClientConnection:
        return await websocket_connect(address, max_message_size=LARGEST_MESSAGE)

    async def _listen(self) -> None:
        while (text := await self._socket.read_message()) is not None:
            message = json.loads(text)
            if message["type"] == "event" and message["method"] == "log.entryAdded":
                self.said.append(message["params"]["text"])
            elif message["type"] == "event":
                self.asked.append(message["params"]["request"]["url"])
            else:
                self._waiting.pop(message["id"]).set_result(message)

    def _wait(self, task: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(PATIENCE_S)

    def send(self, method: str, **params: Any) -> Any:
        """The answer to a command."""

        async def exchange() -> Any:
            number = next(self._numbers)
            self._waiting[number] = answer = self._loop.create_future()
            await self._socket.write_message(json.dumps({"id": number, "method": method, "params": params}))
            return await answer

        message = self._wait(exchange())
        assert message["type"] == "success", message
        return message["result"]

    def open(self, address: str, width: int = 1280, height: int = 900) -> None:
        """Load a page of ours, and wait until it is complete."""
        self.send("browsingContext.setViewport", context=self.tab, viewport={"width": width, "height": height})
        self.send("browsingContext.navigate", context=self.tab, url=address, wait="complete")
        self.ask(
            "new Promise((done) => { const look = () => window.warpline?.marks.complete ? done() : setTimeout(look, 20); look(); })"
        )

    def ask(self, expression: str) -> Any:
        """The value of an expression, in which `t` is the timeline; what was pending is drawn first."""
        script = f"""(async () => {{ await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            const t = window.warpline?.timeline; return JSON.stringify((await ({expression})) ?? null); }})()"""
        found = self.send("script.evaluate", expression=script, target={"context": self.tab}, awaitPromise=True)
        assert found["type"] == "success", found
        return json.loads(found["result"]["value"])

    def press(self, *keys: str) -> None:
        """Press keys one after the other."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._act({"type": "key", "id": "keys", "actions": actions})

    def click(self, x: float, y: float) -> None:
        """Click at a point."""
        self.drag((x, y), (x, y))

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press at a point, move in steps and let go."""
        points = [tuple(round(a + (b - a) * part / 4) for a, b in zip(start, end, strict=True)) for part in range(5)]
        moves = [{"type": "pointerMove", "x": x, "y": y} for x, y in points]
        down, up = {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}
        self._act({"type": "pointer", "id": "mouse", "actions": [moves[0], down, *moves[1:], up]})

    def wheel(self, x: float, y: float, down: int) -> None:
        """Turn the wheel at a point."""
        turn = {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": down}
        self._act({"type": "wheel", "id": "wheel", "actions": [turn]})

    def _act(self, source: dict[str, Any]) -> None:
        self.send("input.performActions", context=self.tab, actions=[source])

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
