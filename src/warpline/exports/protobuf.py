"""Protocol Buffers' wire format, as far as a Perfetto trace needs it: https://protobuf.dev/programming-guides/encoding/."""

from __future__ import annotations

VARINT, FIXED64, BYTES = 0, 1, 2
"""Wire types."""


def varint(value: int) -> bytes:
    """A number that is not negative: seven bits a byte, the lowest first; the high bit says that more follow."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


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
