"""Reads the ranks of a job on a Ray cluster, with Ray's own scheduling and retries."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import ray
from ray.exceptions import RayError

MAX_RETRIES = 3
"""How often Ray starts a read again whose worker or node died."""
FILES_PER_WORKER = 16
"""A worker process ends after so many files, which gives its memory back."""


def run_on_ray(
    read: Callable[[str, bool], tuple[bytes, str]], places: Sequence[str], cache: bool
) -> list[tuple[bytes, str]]:
    """What `read` returns for each file, in their order; a file whose worker keeps dying costs itself only.

    The cluster is that of RAY_ADDRESS; without one, Ray runs on this machine.
    """
    if not ray.is_initialized():
        ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False)
    task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES, max_calls=FILES_PER_WORKER)(read)
    pending = [task.remote(place, cache) for place in places]
    return [_result(reference) for reference in pending]


def _result(reference: ray.ObjectRef) -> tuple[bytes, str]:
    try:
        found: tuple[bytes, str] = ray.get(reference)
    except RayError as error:
        return b"", f"its worker failed: {type(error).__name__}"
    return found
