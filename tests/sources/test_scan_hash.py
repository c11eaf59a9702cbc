"""Nobody can make a file whose strings collide in the scanner's tables: the hash depends on a random seed."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path

import pytest
from scan_checks import Build

SLOTS = 1024
SEED, OTHER_SEED = (0x0123456789ABCDEF, 0xFEDCBA9876543210), (0x5851F42D4C957F2D, 0x14057B7EF767814F)


@pytest.fixture(scope="module")
def library(build_scanner: Build) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(build_scanner("-O2", source=Path(__file__).with_name("scan_hash.c"))))
    loaded.hash_of.restype = ctypes.c_uint32
    loaded.hash_of.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int64]
    loaded.scan_new.restype = ctypes.c_void_p
    loaded.seed_of.argtypes = [ctypes.c_void_p]
    loaded.seed_of.restype = ctypes.c_uint64
    return loaded


@pytest.mark.parametrize("length", [3, 7, 8, 9, 16, 17, 100])
def test_strings_that_collide_under_one_seed_spread_under_another(library: ctypes.CDLL, length: int) -> None:
    chosen = random.Random(1)
    texts = [chosen.randbytes(length) for _ in range(100_000)]
    colliding = [text for text in texts if library.hash_of(*SEED, text, length) % SLOTS == 0]
    assert len(colliding) > 50
    slots = {library.hash_of(*OTHER_SEED, text, length) % SLOTS for text in colliding}
    assert len(slots) > 0.8 * len(colliding)


def test_each_scanner_has_a_seed_of_its_own(library: ctypes.CDLL) -> None:
    assert library.seed_of(library.scan_new(None, None, 0)) != library.seed_of(library.scan_new(None, None, 0))
