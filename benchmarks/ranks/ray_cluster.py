"""A job read on a local Ray cluster of three nodes: the answer must be the same bytes of JSON as that of one process,
also after a node is killed in the middle, and from a URL. What was summarised before the kill must not be read again.

    python -m benchmarks.ranks.ray_cluster [--ranks 16] [--s3]

`--s3` also reads from an S3 server on this machine (pip install s3fs 'moto[server]').
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
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
        store = _s3_server() if asked.s3 else None
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": STORE_BYTES})
        for _ in range(2):
            cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        ray.init(address=cluster.address, log_to_driver=False)
        make(random_setting(1, "slow_kernels", asked.ranks), folder)
        here, seconds = answer(folder, cache=False, workers=1)
        print(f"one process: {seconds:.1f} s", flush=True)
        places = [str(folder), folder.as_uri()]
        if store is not None:
            store.mkdir("profiles")
            store.put(str(folder), "profiles/job", recursive=True)
            places.append("s3://profiles/job")
        for place in places:
            check(place, here, cluster, cache, asked.ranks)
        ray.shutdown()
        cluster.shutdown()


def check(place: str, here: str, cluster: Cluster, cache: Path, ranks: int) -> None:
    """Read the job at a place on all nodes, then with one killed, then from the summaries."""
    kind = place.partition("://")[0] if "://" in place else "folder"
    shutil.rmtree(cache, ignore_errors=True)
    there, seconds = answer(place, cache=False, engine="ray")
    print(f"{kind}, three nodes: {seconds:.1f} s, same JSON: {there == here}", flush=True)
    doomed = cluster.list_all_nodes()[-1]
    kept: dict[str, int] = {}

    def kill() -> None:
        while len(kept) < ranks // 3:
            kept.update(summaries(cache))
            time.sleep(0.02)
        cluster.remove_node(doomed, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    there, seconds = answer(place, engine="ray")
    killer.join()
    after = summaries(cache)
    again = sum(after[one] != written for one, written in kept.items())
    same = f"same JSON: {there == here}, {again} read again"
    print(f"{kind}, one node killed after {len(kept)} ranks: {seconds:.1f} s, {same}", flush=True)
    cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    there, seconds = answer(place, engine="ray")
    again = sum(summaries(cache)[one] != written for one, written in after.items())
    print(f"{kind}, all ranks summarised: {seconds:.1f} s, same JSON: {there == here}, {again} read again", flush=True)


def _s3_server() -> Any:
    """A store on this machine; nodes that start later know it by the environment."""
    import fsspec  # noqa: PLC0415 - optional
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - optional

    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ["AWS_ENDPOINT_URL_S3"] = f"http://{host}:{port}"
    return fsspec.filesystem("s3")


if __name__ == "__main__":
    main()
