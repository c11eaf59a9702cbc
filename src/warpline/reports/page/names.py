"""The names of rows, each once, with what the page needs to colour and to explain it."""

from __future__ import annotations

import re

from warpline.hardware.vocabulary import in_words_of, platform
from warpline.kernels import identify
from warpline.kernels.identity import KernelIdentity
from warpline.reports.page.contract import EventKind, Identity, Name

KERNEL_KINDS: dict[str, EventKind] = {
    "gemm": "matmul",
    "conv": "matmul",
    "moe": "matmul",
    "attention": "attention",
    "norm": "norm",
    "softmax": "norm",
    "reduction": "norm",
    "comm": "comm",
}
"""Kinds of kernels by their class; all others are `kernel`."""
_WRAPPER = re.compile(r"cutlass::(?:Kernel2?|device_kernel)<([\w:]+)")
_ARGUMENTS = re.compile(r"[<(]")


class NameTable:
    """Names of all kinds of rows in one table, so that a name has one colour everywhere."""

    def __init__(self) -> None:
        self.all: list[Name] = []
        self.identities: list[Identity] = []
        self._numbers: dict[tuple[str, EventKind, str | None], int] = {}

    def number(self, text: str, kind: EventKind, short: str = "", cause: str | None = None) -> int:
        """Position of this name; it is added if it is new."""
        key = (text, kind, cause)
        if key not in self._numbers:
            self._numbers[key] = len(self.all)
            self.all.append(Name(text, "" if short == text else short, kind, cause))
        return self._numbers[key]

    def gpu(self, kind: str | None, name: str | None, short: str | None) -> int:
        """Position of the name of a device's operation."""
        name = name or ""
        match kind:
            case "memcpy":
                return self.number(name, "copy")
            case "memset":
                return self.number(name, "memset")
            case "graph":
                return self.number(name, "graph")
        known = identify(name)
        event = KERNEL_KINDS.get(known.kernel_class, "kernel")
        key: tuple[str, EventKind, str | None] = (name, event, None)
        if key not in self._numbers:
            base = short or bare(name)
            shown = f"{known.op.replace('_', ' ')} · {base}" if known.op else base
            self._numbers[key] = len(self.all)
            self.all.append(Name(name, shown, event, None, len(self.identities)))
            self.identities.append(Identity(_facts(known)))
        return self._numbers[key]

    def with_text(self, texts: set[str]) -> list[int]:
        """Positions of the names with one of these texts."""
        return [number for number, name in enumerate(self.all) if name.text in texts]


def bare(name: str) -> str:
    """A kernel's name without type, namespaces, template and arguments; of CUTLASS's wrapper, what it wraps."""
    plain = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    wrapped = _WRAPPER.match(plain)
    return wrapped[1] if wrapped else _ARGUMENTS.split(plain, maxsplit=1)[0].rsplit("::", 1)[-1] or name


def _facts(known: KernelIdentity) -> list[tuple[str, str]]:
    types = known.dtype
    operands = [one for one in dict.fromkeys((types.a, types.b)) if one]
    found = {
        "library": known.library,
        "class": known.kernel_class if known.known else None,
        "operation": known.op,
        "tensor cores": {True: "yes", False: "no", None: None}[known.tensor_core],
        "data types": " × ".join(operands) + (f" → {types.out}" if types.out else "") or None,
        "tile": known.tile,
        "written for": known.arch,
        "direction": known.direction,
        "remarks": "; ".join(known.remarks) or None,
    }
    return in_words_of(platform(is_amd=known.is_amd), [(label, text) for label, text in found.items() if text])
