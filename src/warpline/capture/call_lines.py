"""The line of every Python call that torch's profiler recorded.

The trace itself names the first line of the function that is called; torch also knows the line that calls it, and tells
it only inside the program.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

CHECK_EVERY = 4096


@dataclass
class CallLines:
    """Calls in order, parents before the calls that they make."""

    start_ns: list[int] = field(default_factory=list)
    """When the call began, in nanoseconds since 1970, as in the trace."""
    line: list[int] = field(default_factory=list)
    """The calling line, in the file of the calling frame."""
    complete: bool = True


def call_lines(profiler: Any, seconds: float) -> CallLines:
    """The calling lines of a stopped profiler's Python frames; ends early after so many seconds."""
    found, until = CallLines(), time.monotonic() + seconds
    open_events = list(reversed(profiler.profiler.kineto_results.experimental_event_tree()))
    seen = 0
    while open_events:
        event = open_events.pop()
        open_events.extend(reversed(event.children))
        caller = getattr(event.extra_fields, "caller", None)
        if caller is not None:
            found.start_ns.append(event.start_time_ns)
            found.line.append(caller.line_number)
        seen += 1
        if not seen % CHECK_EVERY and time.monotonic() > until:
            found.complete = False
            break
    return found
