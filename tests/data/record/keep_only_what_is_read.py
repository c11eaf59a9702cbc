"""Write a Kineto trace anew with what warpline reads and nothing else, as small as it gets.

`python keep_only_what_is_read.py TRACE.json.gz OUT.json.gz`; needs `pip install zopfli`, which packs better than gzip.

Arrows between events and the arguments that no reader takes are left out. Events of one name follow one another, so
that each repeats the text of the one before. Times keep every digit.
"""

from __future__ import annotations

import gzip
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

from zopfli.gzip import compress

from warpline.sources.kineto.events import FIELDS

ARROWS = ("s", "t", "f")
LAST = ("External id", "correlation", "Sequence number")
"""Arguments that differ from event to event: after those that repeat."""


def kept(event: dict[str, Any]) -> dict[str, Any]:
    """The event with the arguments that are read, and its times at the end."""
    arguments = event.get("args", {})
    read = [name for name in arguments if name in FIELDS]
    read.sort(key=lambda name: name in LAST)
    head = {name: value for name, value in event.items() if name not in ("args", "ts", "dur")}
    times = {name: event[name] for name in ("ts", "dur") if name in event}
    return {**head, "args": {name: arguments[name] for name in read}, **times}


def text(value: Any) -> str:
    """JSON on one line, with the spaces that torch writes and decimals as they were written."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {text(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def main(source: Path, target: Path) -> None:
    trace = json.loads(gzip.decompress(source.read_bytes()), parse_float=Decimal)
    events = [kept(event) for event in trace["traceEvents"] if event["ph"] not in ARROWS]
    told = [event for event in events if event["ph"] != "M" or event["args"]]
    told.sort(key=lambda event: (event["ph"], event.get("cat", ""), event["name"]))
    lines = ",\n".join(map(text, told))
    head, _, tail = text({**trace, "traceEvents": []}).partition('"traceEvents": []')
    target.write_bytes(compress(f'{head}"traceEvents": [\n{lines}\n]{tail}\n'.encode(), numiterations=5))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
