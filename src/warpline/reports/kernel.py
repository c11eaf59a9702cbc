"""Decoded kernel names as sections: a summary line, then the name token by token, then the fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpline.hardware.vocabulary import in_words_of, platform
from warpline.kernels import KernelIdentity
from warpline.reports.sections import Column, Content, Note, Notes, Report, Section, Table, Text
from warpline.reports.text import shorten

MAX_TITLE = 160
_TOKENS = (Column("token", "token", key=True), Column("meaning", "meaning"))
_PROVEN = (Column("field", "field", key=True), Column("value", "value"), Column("because", "because", priority=2))
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


def kernel_report(identities: Sequence[KernelIdentity]) -> Report:
    """The explanation of each kernel, in a section of its own."""
    named = [(shorten(one.name, MAX_TITLE), _said(one)) for one in identities]
    return Report("", tuple(Section(f"kernel_{at}", name, content) for at, (name, content) in enumerate(named)))


def _said(identity: KernelIdentity) -> tuple[Content, ...]:
    return in_words_of(platform(is_amd=identity.is_amd), tuple(_content(identity)))


def _content(identity: KernelIdentity) -> Iterator[Content]:
    if identity.known:
        yield Text(_summary(identity), "advice")
    else:
        reason = identity.reasons.get("class", "no family fits")
        yield Notes((Note("unknown", "unknown", reason),))
    if identity.tokens:
        yield Table(_TOKENS, tuple((shorten(token.text, MAX_TITLE), token.meaning) for token in identity.tokens))
    fields = tuple(_proven(identity))
    if fields:
        yield Table(_PROVEN, fields)
    yield from (Text(f"→ {remark}", "strong") for remark in identity.remarks)


def _summary(identity: KernelIdentity) -> str:
    """Operation, library and execution units."""
    units = {True: "tensor cores", False: "CUDA cores", None: "units not in the name"}[identity.tensor_core]
    if identity.kernel_class in ("memory", "comm"):
        units = ""
    pieces = [identity.kernel_class, identity.op if identity.op != identity.kernel_class else None]
    pieces += [{"fwd": "forward", "bwd": "backward"}.get(identity.direction or ""), identity.library, units or None]
    pieces.append(_types(identity))
    return " · ".join(piece for piece in pieces if piece)


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
