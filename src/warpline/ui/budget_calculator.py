"""The dispatch budget as a calculator in the terminal: keys turn its dials, and the answer follows."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.live import Live
from rich.text import Text

from warpline.errors import UsageError
from warpline.reports import terminal
from warpline.reports.sections import Report

KEYS = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[C": "right",
    b"\x1b[D": "left",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1bOC": "right",
    b"\x1bOD": "left",
    b"\x1b[5~": "double",
    b"\x1b[6~": "halve",
    b"k": "up",
    b"j": "down",
    b"l": "right",
    b"h": "left",
    b"r": "reset",
    b"q": "quit",
    b"\x03": "quit",
    b"\x04": "quit",
}
FACTORS = {"right": 1.1, "left": 1 / 1.1, "double": 2.0, "halve": 0.5}
HELP = "↑ ↓ choose   ← → 10 % less or more   PgUp PgDn double or halve   r reset   q quit"
_READ_BYTES = 64
_POLL_SECONDS = 0.5


class Dial(Struct, frozen=True):
    """One input of the calculator."""

    label: str
    value: float
    low: float
    high: float
    whole: bool = False

    def turned(self, factor: float) -> Dial:
        """The dial after a turn, with three significant digits, within its limits."""
        value = float(f"{self.value * factor:.3g}")
        if self.whole:
            value = round(value) if abs(value - self.value) >= 1 else self.value + (1 if factor > 1 else -1)
        return replace(self, value=min(max(value, self.low), self.high))

    @property
    def text(self) -> str:
        """The value as shown."""
        return f"{self.value:,.0f}" if self.whole else f"{self.value:,.4g}"


class Panel(Struct, frozen=True):
    """The dials, the one that is chosen, and where they started."""

    dials: tuple[Dial, ...]
    start: tuple[Dial, ...]
    chosen: int = 0

    def pressed(self, key: str) -> Panel:
        """The panel after a key."""
        if key in {"up", "down"}:
            return replace(self, chosen=(self.chosen + (1 if key == "down" else -1)) % len(self.dials))
        if key == "reset":
            return replace(self, dials=self.start)
        if key in FACTORS:
            dial = self.dials[self.chosen].turned(FACTORS[key])
            return replace(self, dials=(*self.dials[: self.chosen], dial, *self.dials[self.chosen + 1 :]))
        return self


def panel(ops: float, cpu_us: float, gpu_us: float, fusion: float) -> Panel:
    """The four dials of the budget, with these values."""
    dials = (
        Dial("launches per step", round(ops), 1, 10_000_000, whole=True),
        Dial("CPU µs per launch", cpu_us, 0.01, 1e6),
        Dial("GPU µs per launch", gpu_us, 0.01, 1e6),
        Dial("times fewer launches by fusion", fusion, 1, 1000),
    )
    return Panel(dials, dials)


def keys_in(data: bytes) -> Iterator[str]:
    """The names of the keys in what a terminal sent; unknown ones are left out."""
    while data:
        found = next((code for code in sorted(KEYS, key=len, reverse=True) if data.startswith(code)), None)
        if found is not None:
            yield KEYS[found]
        data = data[len(found) if found is not None else 1 :]


def run_live(start: Panel, answer: Callable[[tuple[float, ...]], Report], console: Console) -> Panel:
    """Show the calculator until q or Ctrl-C, and return its last state; the terminal is left as it was."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("no-terminal", "--live needs a terminal", "give the numbers as options instead")
    now = start
    with _single_keys() as descriptor, Live(console=console, auto_refresh=False) as live:
        try:
            while True:
                live.update(_screen(now, answer, console.width), refresh=True)
                while not select.select([descriptor], [], [], _POLL_SECONDS)[0]:
                    pass  # An interrupt from another process is noticed here.
                data = os.read(descriptor, _READ_BYTES)
                for key in keys_in(data):
                    if key == "quit":
                        return now
                    now = now.pressed(key)
                if not data:
                    return now
        except KeyboardInterrupt:
            return now


def _screen(now: Panel, answer: Callable[[tuple[float, ...]], Report], width: int) -> Text:
    shown = Text()
    for place, dial in enumerate(now.dials):
        mark = "▸" if place == now.chosen else " "
        shown.append(f"{mark} {dial.label:32}{dial.text:>12}\n", style="bold" if place == now.chosen else "")
    shown.append(f"{HELP}\n\n", style="dim")
    shown.append_text(terminal.render(answer(tuple(dial.value for dial in now.dials)), width))
    shown.rstrip()
    return shown


@contextmanager
def _single_keys() -> Iterator[int]:
    """Keys arrive one by one and are not echoed; afterwards the terminal is as before."""
    try:
        import termios  # noqa: PLC0415 - not on Windows
        import tty  # noqa: PLC0415
    except ImportError as error:
        raise UsageError("no-terminal", "--live needs a Unix terminal", "give the numbers as options") from error
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        keys_only = termios.tcgetattr(descriptor)
        keys_only[3] &= ~termios.ISIG  # Ctrl-C arrives as a key.
        termios.tcsetattr(descriptor, termios.TCSADRAIN, keys_only)
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
