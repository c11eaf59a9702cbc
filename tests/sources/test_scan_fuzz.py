"""Mutated traces through every path there is: compiled and Python, one thread and many, plain and gzip.

The paths share no parser (msgspec, the tolerant one, C), so that agreeing on damaged input says something. WARPLINE_FUZZ sets how many examples each test takes.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scan_checks import Build, Scanned, difference, scan_text
from scan_samples import GOOD, ILLEGAL, OF_2021, TODAY, in_layouts, trace_of

from warpline.sources.kineto import native, python_scan, tolerant

SEEDS = [TODAY, OF_2021, trace_of(*ILLEGAL, GOOD), trace_of(*[GOOD] * 6), *in_layouts(TODAY).values()]
PIECES = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b" ",
    b"\n",
    b"\x00",
    b"\xff",
    b"-",
    b".",
    b"e9",
    b"1",
    b"999999999999",
    b'",',
    b'"}',
    b"},{",
    b'[{"ph":',
    b',{"name":"x"}',
    b'"args":{',
    b'"stream":',
    b'"grid":[1,2,3]',
    b"\\u00",
    b"\\ud83d",
    b"null",
    b"inf",
    b'"ts":"1.5",',
    b'"id":1e3,',
    b'"pid":"',
    b'],"traceName":"',
    b"]}",
    b'"traceEvents":[',
    b"\xc3\xa9",
]

mutations = st.lists(
    st.tuples(
        st.sampled_from(["flip", "delete", "insert", "repeat", "cut"]),
        st.floats(0, 1, exclude_max=True),
        st.integers(1, 40),
        st.sampled_from(PIECES),
    ),
    max_size=6,
)


def mutate(text: bytes, changes: list[tuple[str, float, int, bytes]]) -> bytes:
    for kind, where, amount, piece in changes:
        at = int(where * len(text))
        match kind:
            case "flip":
                text = text[:at] + bytes([text[at] ^ (1 << amount % 8)]) + text[at + 1 :] if text else text
            case "delete":
                text = text[:at] + text[at + amount :]
            case "insert":
                text = text[:at] + piece + text[at:]
            case "repeat":
                text = text[: at + amount] + text[at:]
            case "cut" if amount > 30:
                text = text[:at]
    return text


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> object:
    """Blocks and searches so small that these traces are divided."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(python_scan, "SEARCH", 2048)
        patch.setattr(python_scan, "BLOCK", python_scan.BLOCK)  # the tests set it; this puts it back
        patch.setattr(python_scan, "SMALL_BLOCK", python_scan.SMALL_BLOCK)
        yield


def scan_all(text: bytes, block: int, window: int) -> list[Scanned]:
    python_scan.BLOCK, python_scan.SMALL_BLOCK = block, min(block, 128)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = [scan_text(text, folder, scanner="native")]
        results += [scan_text(text, folder, scanner="native", window_bytes=64)]
        results += [scan_text(text, folder, scanner="native", window_bytes=64 + 7 * window)]
        results += [scan_text(text, folder, scanner="native", compress=True, window_bytes=window)]
        results += [scan_text(text, folder, scanner="python")]
        results += [scan_text(text, folder, scanner="python", compress=True, window_bytes=window * 7)]
    return results


def check(text: bytes, block: int, window: int) -> None:
    names = ["native", "windows of 64", "longer windows", "native gz", "python", "python gz"]
    first, *others = scan_all(text, block, window)
    differences = {name: difference(first, other) for name, other in zip(names[1:], others, strict=True)}
    assert not any(differences.values()), differences


fuzz = settings(
    max_examples=int(os.environ.get("WARPLINE_FUZZ", "100")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.usefixtures("compiled")
@fuzz
@given(st.sampled_from(SEEDS), mutations, st.sampled_from([32, 512, 1 << 18]), st.integers(1, 300))
def test_all_paths_agree_on_mutated_traces(
    seed: bytes, changes: list[tuple[str, float, int, bytes]], block: int, window: int
) -> None:
    check(mutate(seed, changes), block, window)


@pytest.mark.usefixtures("compiled")
@fuzz
@given(
    st.lists(st.sampled_from([*PIECES, GOOD, *ILLEGAL]), max_size=30),
    st.sampled_from([32, 1 << 18]),
    st.integers(1, 99),
)
def test_all_paths_agree_on_assembled_rubbish(pieces: list[bytes], block: int, window: int) -> None:
    check(b"[" + GOOD + b",".join(pieces), block, window)
    check(b'{"traceEvents":[' + b"".join(pieces) + b"]}", block, window)


@pytest.fixture(scope="module")
def short_limits(build_scanner: Build) -> object:
    """Limits on the length of an event and on what is read twice, so low that small traces reach them."""
    with pytest.MonkeyPatch.context() as patch:
        library = build_scanner("-O2", "-DEVENT_LIMIT=400", "-DWASTE_LIMIT=1000")
        patch.setattr(native, "library_of", lambda _source: library)
        patch.setattr(tolerant, "EVENT_LIMIT", 400)
        patch.setattr(tolerant, "WASTE_LIMIT", 1000)
        patch.setattr(python_scan, "SEARCH", 100)
        yield


@pytest.mark.usefixtures("short_limits")
@fuzz
@given(st.sampled_from(SEEDS), mutations, st.integers(1, 300))
def test_all_paths_agree_at_the_limits(seed: bytes, changes: list[tuple[str, float, int, bytes]], window: int) -> None:
    check(mutate(seed, changes), 32, window)


@pytest.mark.usefixtures("short_limits")
@fuzz
@given(
    st.lists(st.sampled_from([b'{"ph":[', b'{"ph":"', b"}", b"]", b'"', b",", GOOD]), max_size=60), st.integers(1, 300)
)
def test_all_paths_agree_on_hostile_nesting(pieces: list[bytes], window: int) -> None:
    check(b"[{}," + b",".join(pieces), 32, window)
