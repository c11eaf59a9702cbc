"""Steps of a program that generates tokens, where batches differ from step to step: each step ends when its tokens are
read.

Continuous batching repeats nothing exactly: the number of tokens, the kernels and the graphs change. But each step ends
with sampling, and the host waits for the sampled tokens before it plans the next one.
"""

from __future__ import annotations

import numpy as np

from warpline.api_names import HOST_WAIT
from warpline.trace.arrays import NONE, Int64s
from warpline.trace.launches import Launches
from warpline.trace.schema import Gpu
from warpline.trace.steps.choice import FoundSteps
from warpline.trace.steps.loops import OWN_WORK, WORKING
from warpline.trace.steps.period import LEAST_REPEATS
from warpline.trace.trace import Trace

SAMPLING = r"(?i)arg_?max|multinomial|sampl|top_?k"
"""Kernels that choose a token."""
MOST_BYTES = 1 << 16
"""A larger copy holds more than the tokens of a batch."""


def token_reads(gpu: Gpu) -> Int64s:
    """Small copies to the host that follow a kernel which chooses tokens, as rows of `gpu`."""
    read = gpu.copy_kind.equal("DtoH") & (gpu.bytes != NONE) & (gpu.bytes <= MOST_BYTES) & (gpu.api_id != NONE)
    return np.flatnonzero(read[1:] & gpu.name.like(SAMPLING)[:-1]) + 1


def steps_of_token_reads(trace: Trace, launches: Launches) -> FoundSteps | None:
    """From one wait for sampled tokens to the next, on the thread that waits most often; None for other programs."""
    gpu, api = trace.gpu, trace.api
    calls = np.sort(gpu.api_id[token_reads(gpu)])
    if len(calls) < LEAST_REPEATS:
        return None
    threads, count = np.unique(api.thread[calls], return_counts=True)
    thread = int(threads[count.argmax()])
    own = np.flatnonzero(api.thread == thread)
    calls = calls[api.thread[calls] == thread]
    waits = np.append(api.name.like(HOST_WAIT), False)
    following = np.append(own, NONE)[np.searchsorted(own, calls) + 1]
    ends = np.where(waits[following], np.append(api.end_ns, 0)[following], api.end_ns[calls])
    launched = launches.of_thread.get(thread)
    if launched is None:
        return None
    marks = np.append(min(int(launched[0]), int(ends[0])), ends)
    starts, ends = marks[:-1], marks[1:]
    if launches.share(int(starts[0]), int(ends[-1])) < OWN_WORK or launches.working(thread, starts, ends) < WORKING:
        return None
    return FoundSteps([f"tokens {number}" for number in range(len(starts))], starts, ends, thread, "tokens")
