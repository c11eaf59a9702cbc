"""Jobs that name one port or file for their store, side by side."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from warpline.capture.trial.own_store import free_port, own_port

pytest.importorskip("torch.distributed")

JOB = """
import sys, torch
from datetime import timedelta
from pathlib import Path
from warpline.capture.trial.own_store import give_own_stores
folder, port, file = sys.argv[1:]
distributed = torch.distributed
give_own_stores(torch, Path(folder))
server = distributed.TCPStore("localhost", int(port), is_master=True, wait_for_workers=False)
for known in (int(port), server.port):  # a rank gets the one from the program, the other from torchrun
    client = distributed.TCPStore("localhost", known, is_master=False, timeout=timedelta(seconds=20))
    client.set(f"job {known}", folder)
print(server.num_keys(), flush=True)
chosen = distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
distributed.TCPStore("localhost", chosen.port, is_master=False).set("job", folder)
distributed.FileStore(file, 1).set("job", folder)
print(chosen.get("job").decode(), flush=True)
sys.stdin.read()
"""


def test_each_job_has_a_store_of_its_own(tmp_path: Path) -> None:
    port, file, running = str(free_port()), tmp_path / "store", []
    for name in "ab":
        folder = tmp_path / name
        folder.mkdir()
        command = [sys.executable, "-c", JOB, str(folder), port, str(file)]
        running.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    try:
        for name, job in zip("ab", running, strict=True):
            assert job.stdout is not None
            keys = [job.stdout.readline(), job.stdout.readline()]
            assert int(keys[0]) in {2, 3}, name  # the store may count a key of its own
            assert keys[1].strip() == str(tmp_path / name)
        assert not file.exists()
    finally:
        for job in running:
            job.communicate()


def test_the_first_to_ask_chooses_the_port(tmp_path: Path) -> None:
    first = own_port(tmp_path, 29500)
    assert first not in {0, 29500}
    assert own_port(tmp_path, 29500) == own_port(tmp_path, 29500, 1234) == first
    assert own_port(tmp_path, 4321, 4321) == 4321
