"""Damage to a file that knows nothing of its content, or only of its encoding."""

from __future__ import annotations

import gzip
import lzma
import random
import zlib
from collections.abc import Callable

Mutation = Callable[[bytes, random.Random], bytes]
MUTATIONS: dict[str, Mutation] = {}
PIECES = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\n",
    b"\x00",
    b"\xff",
    b"\x1b[2J",
    b"-",
    b"e9",
    b'",',
    b"},{",
    b'"args":{',
    b"\\ud83d",
    b"null",
    b"NaN",
    b"\xc2\x9b",
]


def mutation(function: Mutation) -> Mutation:
    """Registers a mutation under its name."""
    MUTATIONS[function.__name__] = function
    return function


@mutation
def cut(content: bytes, chance: random.Random) -> bytes:
    """The end is missing."""
    return content[: chance.randint(0, len(content))]


@mutation
def flips(content: bytes, chance: random.Random) -> bytes:
    """Single bits changed."""
    data = bytearray(content)
    for _ in range(chance.choice([1, 3, 20, 200])):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


@mutation
def pieces(content: bytes, chance: random.Random) -> bytes:
    """Pieces put in, taken out or repeated."""
    for _ in range(chance.choice([1, 2, 6])):
        at, length = chance.randint(0, len(content)), chance.choice([1, 8, 300])
        middle = chance.choice([chance.choice(PIECES), content[at : at + length] * 2, b"", chance.randbytes(length)])
        content = content[:at] + middle + content[at + (length if chance.random() < 0.5 else 0) :]
    return content


@mutation
def zeroed(content: bytes, chance: random.Random) -> bytes:
    """A block of zeros, as a full disk leaves it."""
    at, length = chance.randint(0, len(content)), chance.choice([64, 1024, 4096])
    return content[:at] + bytes(min(length, len(content) - at)) + content[at + length :]


@mutation
def page_damage(content: bytes, chance: random.Random) -> bytes:
    """Two pages exchanged, or the head of one overwritten."""
    page = 4096
    if len(content) < 3 * page:
        return flips(content, chance)
    data = bytearray(content)
    one, other = (page * chance.randint(1, len(data) // page - 1) for _ in range(2))
    if chance.random() < 0.5:
        data[one : one + page], data[other : other + page] = data[other : other + page], data[one : one + page]
    else:
        data[one : one + 16] = chance.randbytes(16)
    return bytes(data)


@mutation
def head_damage(content: bytes, chance: random.Random) -> bytes:
    """A few of the first hundred bytes changed."""
    data = bytearray(content)
    for _ in range(chance.choice([1, 2, 5])):
        if data:
            data[chance.randrange(min(len(data), 100))] = chance.choice([0, 1, 2, 255, chance.randrange(256)])
    return bytes(data)


@mutation
def byte_order_mark(content: bytes, chance: random.Random) -> bytes:
    """A mark of the encoding, the right one or another."""
    return chance.choice([b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"]) + content


@mutation
def other_encoding(content: bytes, chance: random.Random) -> bytes:
    """The text in another encoding."""
    return content.decode("latin-1").encode(chance.choice(["utf-16", "utf-16-le", "utf-32"]))


@mutation
def write_ahead(content: bytes, chance: random.Random) -> bytes:
    """A database that says it has a log of changes beside it."""
    data = bytearray(content)
    if len(data) > 20:
        data[18:20] = chance.choice([b"\x02\x02", b"\x02\x01", b"\x01\x02", b"\x03\x03"])
    return bytes(data)


@mutation
def compressed(content: bytes, chance: random.Random) -> bytes:
    """As gzip, whole or damaged."""
    packed = gzip.compress(content, 1, mtime=0)
    match chance.randrange(6):
        case 0 | 1:
            return packed
        case 2:
            return packed[: chance.randint(0, len(packed))]
        case 3:
            return flips(packed, chance)
        case 4:
            middle = len(content) // 2
            return (
                gzip.compress(content[:middle], 1, mtime=0)
                + gzip.compress(content[middle:], 1, mtime=0)
                + chance.choice([b"", b"noise"])
            )
        case _:
            return chance.choice([gzip.compress(packed), zlib.compress(content, 1), b"\x1f\x8b" + content])


@mutation
def packed_with_xz(content: bytes, chance: random.Random) -> bytes:
    """As xz, whole or damaged."""
    packed = lzma.compress(content, preset=0)
    match chance.randrange(5):
        case 0 | 1:
            return packed
        case 2:
            return packed[: chance.randint(0, len(packed))]
        case 3:
            return flips(packed, chance)
        case _:
            return chance.choice(
                [packed + packed, packed + b"noise", gzip.compress(packed, mtime=0), lzma.compress(packed)]
            )
