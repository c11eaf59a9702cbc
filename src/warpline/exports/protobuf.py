"""Protocol Buffers' wire format, as far as a Perfetto trace needs it: https://protobuf.dev/programming-guides/encoding/."""

from __future__ import annotations

from functools import lru_cache

VARINT, FIXED64, BYTES = 0, 1, 2
"""Wire types."""
_CONTINUES = 0x80
_ONE_BYTE = tuple(bytes((value,)) for value in range(_CONTINUES))
_TWO_BYTES = 1 << 14


def varint(value: int) -> bytes:
    """A number that is not negative: seven bits a byte, the lowest first."""
    if value < _CONTINUES:
        return _ONE_BYTE[value]
    if value < _TWO_BYTES:
        return bytes((value & 0x7F | _CONTINUES, value >> 7))
    return bytes((value & 0x7F | _CONTINUES, value >> 7 & 0x7F | _CONTINUES)) + _high(value >> 14)


@lru_cache(maxsize=1 << 12)
def _high(value: int) -> bytes:
    """The rest of a large number: that of the last moment is mostly that of the next."""
    return varint(value)


@lru_cache(maxsize=1 << 10)
def tag(field: int, wire_type: int) -> bytes:
    """What stands before a field's value."""
    return varint(field << 3 | wire_type)


def number(field: int, value: int) -> bytes:
    """A field of type uint64, int64, uint32, enum or bool; a negative int64 is its two's complement."""
    return tag(field, VARINT) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def fixed64(field: int, value: int) -> bytes:
    """A field of type fixed64."""
    return tag(field, FIXED64) + value.to_bytes(8, "little")


def message(field: int, *parts: bytes) -> bytes:
    """A field that holds another message, given by its fields; or bytes."""
    content = b"".join(parts)
    return tag(field, BYTES) + varint(len(content)) + content


def text(field: int, value: str) -> bytes:
    """A field of type string; what UTF-8 cannot express becomes a question mark."""
    return message(field, value.encode("utf-8", "replace"))
