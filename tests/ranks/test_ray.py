"""Reading the ranks of a job on a Ray cluster; skipped where Ray is not installed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pool_readers
import pytest
from paths import ROOT
from rank_files import job

from warpline.ranks.job import open_job

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    path = os.pathsep.join([str(ROOT / "src"), str(Path(pool_readers.__file__).parent)])
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": path}})
    yield
    ray.shutdown()


def test_ray_gives_the_same_json_as_one_process(tmp_path: Path) -> None:
    job(tmp_path, late={2: 200.0})
    here, there = (open_job(tmp_path, cache=False, engine=engine).to_dict() for engine in ("pool", "ray"))  # type: ignore[arg-type]
    assert json.dumps(there) == json.dumps(here)


def test_a_worker_that_keeps_dying_costs_its_file_only() -> None:
    from warpline.ranks.ray_engine import run_on_ray  # noqa: PLC0415 - needs Ray

    one, two, three = run_on_ray(pool_readers.fail_on_two, ["1", "2", "3"], False)
    assert (one, three) == ((b"1", ""), (b"3", ""))
    assert two == (b"", "its worker failed: WorkerCrashedError")
