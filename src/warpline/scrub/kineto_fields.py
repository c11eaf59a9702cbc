"""What a torch.profiler trace may hold (``data/kineto.toml``), and the check of each value. All else is dropped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from warpline.package_data import read_table
from warpline.scrub import values
from warpline.scrub.devices import device_name
from warpline.scrub.frames import FrameScrubber
from warpline.scrub.kineto_stream import STAND_INS
from warpline.scrub.names import NameScrubber, program_of
from warpline.scrub.values import DROPPED, MAX_ID, Check

RANK = re.compile(r" ?(?:\d{0,6}|\.{3}) ?", re.ASCII)
"""A rank in a list; torch leaves out the middle of a long one."""
MAX_REMEMBERED = 200_000
"""Names whose result is remembered; most traces have a few thousand."""
KERNEL, OP, CALL, RANGE, FRAME, LABEL = "kernel", "op", "call", "range", "frame", "label"
METADATA, UNCATEGORISED, ARGUMENT = "metadata", "uncategorised", "argument"


class _Allowed(Struct, frozen=True):
    """Each table gives the keys by their check."""

    roles: dict[str, tuple[str, ...]]
    header: dict[str, tuple[str, ...]]
    device: dict[str, tuple[str, ...]]
    arguments: dict[str, tuple[str, ...]]


_ALLOWED = read_table("scrub", "kineto", _Allowed)
ROLES = {category: role for role, categories in _ALLOWED.roles.items() for category in categories}
"""What the name of an event of each known category is."""
KNOWN_METADATA = (
    *("process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"),
    *STAND_INS,
)

HEADER: dict[str, Check] = {
    "displayTimeUnit": values.one_of("ms", "ns"),
    "baseTimeNanoseconds": values.bounded(0, 1 << 62),
    **dict.fromkeys(_ALLOWED.header["version"], values.version),
    **dict.fromkeys(_ALLOWED.header["flag"], values.flag),
}
"""Top-level keys; ``deviceProperties`` and ``distributedInfo`` besides."""
DISTRIBUTED: dict[str, Check] = {
    "backend": values.one_of("nccl", "gloo", "mpi", "ucc", "rccl", "xccl", "cpu:gloo,cuda:nccl", "hccl"),
    "rank": values.bounded(-1, 1 << 24),
    "world_size": values.bounded(0, 1 << 24),
    "pg_count": values.bounded(0, 1 << 24),
    "nccl_version": values.version,
}


TEXTS = {
    "Collective name": (
        r"_?(?:all_?(?:reduce|gather|to_?all)|reduce(?:_?scatter)?|broadcast|barrier|send|recv|gather|scatter)(?:_base|_coalesced"
        r"|_tensor|_into_tensor|_single|v){0,4}|init|wait|coalesced|ALLREDUCE|ALLGATHER|BROADCAST|unknown|"
    ),
    "dtype": values.TYPE.pattern,
    "cuda_sync_kind": r"(?:Stream|Event|Context) Sync|Stream Wait Event|Device Sync|Unknown(?: Sync)?",
    "kernel_backend": "triton|cutlass|ck|hip|cpp|extern",
    "Trace name": "PyTorch Profiler",
    "scope": (
        r"user_scope|function|backward_function|build_feature|kernel_function_dtype|custom_class|static_runtime_op"
        r"|lite_interpreter|\d{1,3}"
    ),
    "Process Group Description": "default_pg|undefined|",
    "Process Group Name": r"default_pg|\d{1,5}|",
    "Comms Id": r"\d{1,5}|",
    "kind": r"Dispatch Kernel|Copy (?:Host|Device)To(?:Host|Device)|Dispatch|Copy|Barrier",
    "labels": r"CPU|[GNX]PU \d{1,4}",
}
"""Arguments that are texts, and what torch itself writes there."""


class Remembered(dict[str, str]):
    """What each name becomes, found out once."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, name: str) -> str:
        if len(self) >= MAX_REMEMBERED:
            self.clear()
        found = self[name] = self._rule(name)
        return found


class Fields:
    """The checks of one file's events; names and large ids are replaced in order of appearance."""

    def __init__(self, names: NameScrubber) -> None:
        self.names = names
        self._frames = FrameScrubber(names)
        self._texts = {
            KERNEL: Remembered(names.kernel),
            OP: Remembered(names.op),
            CALL: Remembered(names.call),
            RANGE: Remembered(names.range),
            FRAME: Remembered(self._frames.frame),
            LABEL: Remembered(self._label),
            METADATA: Remembered(lambda name: name if name in KNOWN_METADATA else names.word(name)),
            UNCATEGORISED: Remembered(lambda name: self._texts[FRAME if name.startswith("$") else OP][name]),
        }
        self._fixed: set[str] = set()
        self.event: dict[str, Check] = {
            "ph": values.phase,
            "cat": self._category,
            "pid": self._process,
            "tid": self._process,
            "ts": values.time,
            "dur": values.duration,
            "id": self._id,
            "bp": values.one_of("e"),
            "s": values.one_of("t", "p", "g"),
        }
        self.arguments = self._arguments()

    def event_names(self, phase: Any, category: Any) -> Remembered:
        """What the names of such events become."""
        if isinstance(phase, str) and phase[:1] == "M":  # readers look at the first letter
            return self._texts[METADATA]
        if category is None:
            return self._texts[UNCATEGORISED]
        return self._texts[ROLES.get(category, OP) if isinstance(category, str) else OP]

    def _named(self, role: str, value: Any) -> Any:
        return self._texts[role][value] if isinstance(value, str) else DROPPED

    def _label(self, value: str) -> str:
        """A thread, a process or a device, as metadata events name them."""
        return self.names.thread(program_of(value))

    def _category(self, value: Any) -> Any:
        if not isinstance(value, str):
            return DROPPED
        return value if value in ROLES else f"category{self.names.pseudonyms.code('category', value)}"

    def _process(self, value: Any) -> Any:
        if isinstance(value, str) and not re.fullmatch(r"-?[0-9]{1,40}", value):
            return self._texts[LABEL][value] if value else value
        if type(value) is int or isinstance(value, str):
            return self._id(value)
        return self._texts[LABEL][msgspec.json.encode(value).decode()]  # to a reader, any value names a process

    def _id(self, value: Any) -> Any:
        if type(value) is int:
            return value if -MAX_ID <= value < MAX_ID else MAX_ID + self.names.pseudonyms.number("id", value)
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,40}", value):
            return value if len(value) < 10 else str(self._id(int(value)))
        return self._handle(value)

    def _handle(self, value: Any) -> Any:
        if isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]{1,16}", value):
            return value if len(value) < 6 else hex(MAX_ID + self.names.pseudonyms.number("id", int(value, 16)))
        return DROPPED

    def _parent(self, value: Any) -> Any:
        return value if value is None else self._id(value)

    def _text(self, pattern: str) -> Check:
        """A text that torch writes itself stays; any other is a pseudonym."""
        known = re.compile(pattern, re.ASCII)

        def check(value: Any) -> Any:
            if not isinstance(value, str):
                return DROPPED
            if known.fullmatch(value):
                self._fixed.add(value)
                return value
            return self.names.word(value)

        return check

    def texts(self) -> Iterator[tuple[str, str, str | None]]:
        """The kind of each different text, the text and what became of it."""
        for kind, found in self._texts.items():
            for text, new in found.items():
                yield kind, text, new
        for text in self._fixed:
            yield ARGUMENT, text, text

    def _ranks(self, value: Any) -> Any:
        """The ranks of a process group: a list, or one inside a string."""
        if isinstance(value, str):
            is_list = value[:1] == "[" and value[-1:] == "]"
            return value if is_list and all(map(RANK.fullmatch, value[1:-1].split(","))) else DROPPED
        return values.shapes(value)

    def _arguments(self) -> dict[str, Check]:
        checks: dict[str, Check] = {
            "id": self._id,
            "parent": self._parent,
            "size": values.size,
            "number": values.number,
            "time": values.time,
            "triple": values.triple,
            "shapes": values.shapes,
            "types": values.types,
            "inputs": values.inputs,
            "address": self._address,
            "flag": values.flag,
            "ranks": self._ranks,
            "kernel": lambda value: self._named(KERNEL, value),
            "stack": lambda value: self._frames.stack(value) if isinstance(value, str) else DROPPED,
            "label": lambda value: self._named(LABEL, value),
        }
        known = {key: checks[check] for check, keys in _ALLOWED.arguments.items() for key in keys}
        return known | {key: self._text(pattern) for key, pattern in TEXTS.items()}

    def _address(self, value: Any) -> Any:
        """An address of memory: only which are equal matters."""
        if type(value) is int:
            return value if 0 <= value < MAX_ID else (1 << 40) + 512 * self.names.pseudonyms.number("address", value)
        return self._handle(value)


def device(entry: Any) -> dict[str, Any]:
    """The known properties of one device."""
    if not isinstance(entry, dict):
        return {}
    found = {
        key: entry[key] for key in _ALLOWED.device["size"] if key in entry and values.size(entry[key]) is not DROPPED
    }
    name = entry.get("name")
    if isinstance(name, str):
        found["name"] = device_name(name) if name else name
    return found
