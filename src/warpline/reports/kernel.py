"""A decoded kernel for the terminal: a summary line, then the name token by token, then the fields."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from warpline.kernels import KernelIdentity
from warpline.reports.text import shorten
from warpline.sanitise import sanitise

MAX_TITLE = 160
_FIELDS = (
    ("arch", "built for"),
    ("tile", "tile"),
    ("stages", "stages"),
    ("layout", "layout"),
    ("cluster", "cluster"),
    ("instruction", "instruction"),
    ("split_k", "split-K"),
    ("vector_width", "vector width"),
    ("alignment", "alignment"),
    ("functor", "functor"),
    ("head_dim", "head dimension"),
    ("causal", "causal"),
)


def kernel_report(identity: KernelIdentity) -> RenderableType:
    """The explanation of one kernel."""
    parts: list[RenderableType] = [Text(_shortened(identity.name), style="bold"), headline(identity)]
    if identity.tokens:
        parts.append(_tokens(identity))
    fields = list(_proven(identity))
    if fields:
        parts.append(_table(fields))
    parts.extend(Text(f"→ {remark}", style="yellow") for remark in identity.remarks)
    parts.append(Text())
    return Group(*parts)


def headline(identity: KernelIdentity) -> Text:
    """One line: operation, library and execution units."""
    if not identity.known:
        return Text(f"unknown: {identity.reasons.get('class', 'no family fits')}", style="red")
    units = {True: "tensor cores", False: "CUDA cores", None: "units not in the name"}[identity.tensor_core]
    if identity.kernel_class in ("memory", "comm"):
        units = ""
    pieces = [identity.kernel_class, identity.op if identity.op != identity.kernel_class else None]
    pieces += [{"fwd": "forward", "bwd": "backward"}.get(identity.direction or ""), identity.library, units or None]
    pieces.append(_types(identity))
    return Text(" · ".join(piece for piece in pieces if piece), style="green")


def _types(identity: KernelIdentity) -> str | None:
    dtype = identity.dtype
    if dtype.a is None and dtype.out is None and dtype.acc is None:
        return None
    operands = dtype.a if dtype.b in (None, dtype.a) else f"{dtype.a} x {dtype.b}"
    said = [operands or "?"]
    if dtype.out:
        said.append(f"-> {dtype.out}")
    if dtype.acc:
        said.append(f"({dtype.acc} accumulation)" if dtype.out or dtype.a else f"(computes in {dtype.acc})")
    return " ".join(said)


def _shortened(name: str) -> str:
    return shorten(sanitise(name), MAX_TITLE)


def _tokens(identity: KernelIdentity) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 2), show_header=True, header_style="dim")
    table.add_column("token", no_wrap=False, overflow="fold", style="cyan", max_width=48)
    table.add_column("meaning", overflow="fold")
    for token in identity.tokens:
        table.add_row(Text(_shortened(token.text)), Text(token.meaning))
    return table


def _proven(identity: KernelIdentity) -> Iterator[tuple[str, str, str]]:
    for field, label in _FIELDS:
        value = getattr(identity, field)
        if value is not None:
            shown = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
            yield label, shown, identity.reasons.get(field, "")
    if identity.tensor_core is not None:
        yield "tensor cores", "yes" if identity.tensor_core else "no", identity.reasons.get("tensor_core", "")
    types = _types(identity)
    if types:
        yield "data types", types, identity.reasons.get("dtype", "")


def _table(fields: list[tuple[str, str, str]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 2), show_header=True, header_style="dim")
    table.add_column("field")
    table.add_column("value", style="bold", overflow="fold")
    table.add_column("because", style="dim", overflow="fold")
    for label, value, reason in fields:
        table.add_row(label, Text(value), Text(reason))
    return table
