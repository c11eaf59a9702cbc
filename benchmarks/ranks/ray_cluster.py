"""A job read on a local Ray cluster of three nodes: the answer must be the same bytes of JSON as that of one process,
also after a node is killed in the middle, and from a URL.

    python -m benchmarks.ranks.ray_cluster [--ranks 16]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from benchmarks.ranks.simulate import make, random_setting
from warpline.ranks.job import open_job

STORE_BYTES = 100_000_000


def answer(folder: str | Path, **how: Any) -> tuple[str, float]:
    """The JSON of a job, and how long it took."""
    start = time.perf_counter()
    return json.dumps(open_job(folder, cache=False, **how).to_dict()), time.perf_counter() - start


def main() -> None:
    """Compare the answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=16)
    asked = parser.parse_args()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": STORE_BYTES})
    doomed, _ = (cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES) for _ in range(2))
    ray.init(address=cluster.address, log_to_driver=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(random_setting(1, "slow_kernels", asked.ranks), folder)
        here, seconds = answer(folder, workers=1)
        print(f"one process: {seconds:.1f} s")
        there, seconds = answer(folder, engine="ray")
        print(f"Ray, three nodes: {seconds:.1f} s, same JSON: {there == here}")
        threading.Timer(seconds / 3, cluster.remove_node, [doomed]).start()
        there, seconds = answer(folder, engine="ray")
        print(f"Ray, one node killed: {seconds:.1f} s, same JSON: {there == here}")
        there, seconds = answer(folder.as_uri(), engine="ray")
        print(f"Ray, from a URL: {seconds:.1f} s, same JSON: {there == here}")


if __name__ == "__main__":
    main()
