"""A job read on a local Ray cluster of three nodes: the answer must be the same bytes of JSON as that of one process,
also after a node is killed in the middle, and from a URL. What was summarised before the kill must not be read again.

    python -m benchmarks.ranks.ray_cluster [--ranks 16] [--s3]

`--s3` also reads from an S3 server on this machine (pip install s3fs 'moto[server]').
"""

from __future__ import annotations

import argparse
import json
import os
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
    return json.dumps(open_job(folder, **how).to_dict()), time.perf_counter() - start


def summaries(cache: Path) -> dict[str, int]:
    """The summaries of a cache folder, and the time of each; one that is written again has a later one."""
    return {path.name: path.stat().st_mtime_ns for path in cache.glob("traces/*.parquet")}


def main() -> None:
    """Compare the answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--s3", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        cache, folder = Path(name) / "cache", Path(name) / "job"
        os.environ["WARPLINE_CACHE"] = str(cache)  # the nodes inherit it
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": STORE_BYTES})
        doomed, _ = [cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES) for _ in range(2)]
        ray.init(address=cluster.address, log_to_driver=False)
        make(random_setting(1, "slow_kernels", asked.ranks), folder)
        here, seconds = answer(folder, cache=False, workers=1)
        print(f"one process: {seconds:.1f} s", flush=True)
        there, seconds = answer(folder, cache=False, engine="ray")
        print(f"Ray, three nodes: {seconds:.1f} s, same JSON: {there == here}", flush=True)
        kept: dict[str, int] = {}

        def kill() -> None:
            while len(kept) < asked.ranks // 3:
                kept.update(summaries(cache))
                time.sleep(0.02)
            cluster.remove_node(doomed, allow_graceful=False)

        killer = threading.Thread(target=kill)
        killer.start()
        there, seconds = answer(folder, engine="ray")
        killer.join()
        after = summaries(cache)
        again = sum(after[one] != written for one, written in kept.items())
        same = f"same JSON: {there == here}, {again} read again"
        print(f"Ray, one node killed after {len(kept)} ranks: {seconds:.1f} s, {same}", flush=True)
        there, seconds = answer(folder, engine="ray")
        again = sum(summaries(cache)[one] != written for one, written in after.items())
        print(f"Ray, all ranks summarised: {seconds:.1f} s, same JSON: {there == here}, {again} read again", flush=True)
        there, seconds = answer(folder.as_uri(), engine="ray")
        print(f"Ray, from a file:// URL: {seconds:.1f} s, same JSON: {there == here}", flush=True)
        if asked.s3:
            _from_s3(folder, here)
        ray.shutdown()
        cluster.shutdown()


def _from_s3(folder: Path, here: str) -> None:
    """Read the job from a local S3 server."""
    import fsspec  # noqa: PLC0415 - optional
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - optional

    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ["AWS_ENDPOINT_URL_S3"] = f"http://{host}:{port}"
    store = fsspec.filesystem("s3")
    store.mkdir("profiles")
    store.put(str(folder), "profiles/job", recursive=True)
    for engine in ("pool", "ray"):
        there, seconds = answer("s3://profiles/job", engine=engine)
        print(f"{engine}, from s3://: {seconds:.1f} s, same JSON: {there == here}", flush=True)
    server.stop()


if __name__ == "__main__":
    main()
