"""Messages of protobuf files, described here by the few fields that a reader needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from warpline.errors import UnreadableFile

INSTALL = "pip install 'warpline[protobuf]'"
LONGEST_VARINT = 10
CONTINUES = 128
"""The bit of a byte of a number that says that another byte follows."""
Field = tuple[int, str]
"""The number of a field, and a scalar type of protobuf or the name of a message; `*` before it for a repeated one."""


def message_class(package: str, messages: Mapping[str, Mapping[str, Field]]) -> Any:
    """The class of the first message; fields that are not described are skipped."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415
    except ImportError as error:
        raise UnreadableFile("no-protobuf", "such a file needs protobuf, which is not installed", INSTALL) from error
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto2")
    for message, fields in messages.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            plain = kind.removeprefix("*")
            label = kinds.LABEL_REPEATED if plain != kind else kinds.LABEL_OPTIONAL
            field = described.field.add(name=name, number=number, label=label)
            if plain in messages:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".{package}.{plain}"
            else:
                field.type = getattr(kinds, f"TYPE_{plain.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    first = next(iter(messages))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{first}"))


def parse(message: Any, data: bytes) -> Any:
    """The message in these bytes; ValueError where they are none."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415

    try:
        return message.FromString(data)
    except DecodeError as error:
        raise ValueError(str(error)) from error


def messages(data: bytes) -> Iterator[tuple[bytes, int]]:
    """The messages of a file that is nothing but repetitions of its first field, each with where it ends.

    Ends before a message that is cut short, and before anything else.
    """
    at = 0
    while data[at : at + 1] == b"\n":
        length, at = _varint(data, at + 1)
        if at + length > len(data):
            return
        at += length
        yield data[at - length : at], at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that starts here, and where it ends; one that is cut short is larger than any file."""
    for place, byte in enumerate(data[at : at + LONGEST_VARINT]):
        if byte < CONTINUES:
            return _joined(data[at : at + place + 1]), at + place + 1
    return 1 << 63, at


def _joined(groups: bytes) -> int:
    return sum((byte & (CONTINUES - 1)) << 7 * place for place, byte in enumerate(groups))
