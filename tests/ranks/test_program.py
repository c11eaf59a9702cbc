"""Segments of a program, against the operations that they stand for."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from warpline.ranks.program import NOTHING, Segment, chain

TIMES = st.integers(0, 1000).map(float)
LATENCY = 5.0


def launch(cpu: float, gpu: float) -> Segment:
    """CPU time, then a kernel."""
    return gpu, cpu + LATENCY + gpu, -math.inf, cpu


SYNC: Segment = (0.0, -math.inf, 0.0, 0.0)


@given(st.lists(st.tuples(TIMES, TIMES, st.booleans())), TIMES, TIMES)
def test_a_chain_does_what_its_parts_do_one_by_one(
    work: list[tuple[float, float, bool]], gpu_free: float, cpu_free: float
) -> None:
    found, gpu, cpu = NOTHING, gpu_free, cpu_free
    for cpu_ns, gpu_ns, waits in work:
        found = chain(found, launch(cpu_ns, gpu_ns))
        cpu += cpu_ns
        gpu = max(gpu, cpu + LATENCY) + gpu_ns
        if waits:
            found = chain(found, SYNC)
            cpu = max(cpu, gpu)
    a, b, c, d = found
    assert (max(gpu_free + a, cpu_free + b), max(gpu_free + c, cpu_free + d)) == (gpu, cpu)
