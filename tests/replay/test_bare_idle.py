"""Idle time by cause without a profiler, worked out on paper."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpline.analyses.idle.gaps import CAUSES
from warpline.replay.bare_idle import bare_idle_ns


def recorded(**causes: float) -> dict[str, float]:
    return {**dict.fromkeys(CAUSES, 0.0), **causes}


def test_recording_added_to_the_launches_and_not_to_the_data() -> None:
    # 31 ms with a profiler: 9 of loading, 14 + 2 of launches. Bare, the GPU is idle for 14 ms.
    idle = recorded(input=9.0, dispatch=14.0, launch_latency=2.0)
    bare = bare_idle_ns(idle, 14.0, loading_share=0.0)
    assert bare["input"] == pytest.approx(9.0)
    assert bare["dispatch"] == pytest.approx(5.0 * 14 / 16)
    assert bare["launch_latency"] == pytest.approx(5.0 * 2 / 16)


def test_python_stacks_make_loading_longer_too() -> None:
    # Of 40 ms that recording added, three quarters lie in frames of the loader.
    bare = bare_idle_ns(recorded(input=40.0, dispatch=20.0), 20.0, loading_share=0.75)
    assert (bare["input"], bare["dispatch"]) == (pytest.approx(10.0), pytest.approx(10.0))


def test_what_the_profiler_waits_for_is_none_of_the_program_s() -> None:
    assert bare_idle_ns(recorded(profiler=5.0, sync=3.0), 3.0, loading_share=0.0) == recorded(sync=3.0)


def test_a_longer_bare_step_keeps_the_shares() -> None:
    bare = bare_idle_ns(recorded(sync=1.0, dispatch=3.0), 8.0, loading_share=0.0)
    assert (bare["sync"], bare["dispatch"]) == (pytest.approx(2.0), pytest.approx(6.0))


@given(st.lists(st.floats(0, 1e9), min_size=len(CAUSES), max_size=len(CAUSES)), st.floats(0, 1e9), st.floats(0, 1))
def test_the_causes_sum_to_the_idle_time_and_none_is_negative(
    lengths: list[float], bare_ns: float, loading_share: float
) -> None:
    idle = dict(zip(CAUSES, lengths, strict=True))
    bare = bare_idle_ns(idle, bare_ns, loading_share)
    assert min(bare.values()) >= 0
    known = sum(lengths) - idle["profiler"]
    assert sum(bare.values()) <= bare_ns * (1 + 1e-6) + 1
    if known > bare_ns:
        assert sum(bare.values()) == pytest.approx(bare_ns, rel=1e-6, abs=1)
