"""Sampled GPU metrics, worked out on paper."""

from __future__ import annotations

import json
import lzma
import sqlite3
import statistics
from pathlib import Path

import pytest
from nsys_files import small
from paths import DATA

from warpline.analyses.gpu_metrics import gpu_metrics
from warpline.cli.main import run
from warpline.errors import CannotAnswer
from warpline.reports.stats_words import metrics_text
from warpline.trace.open import open_trace


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two metrics at four moments; the kernel of the export runs at one of them."""
    export = small()
    for metric, name in ((3, "Tensor Active [Throughput %]"), (4, "SMs Active [Throughput %]")):
        export.add("TARGET_INFO_GPU_METRICS", typeId=256, metricId=metric, metricName=name)
    start = next(row["start"] for row in export.rows["CUPTI_ACTIVITY_KIND_KERNEL"])
    for number, value in enumerate((0, 10, 20, 90)):
        at = start + 1 if value == 90 else 1_000_000_000 + number
        export.add("GPU_METRICS", timestamp=at, typeId=256, metricId=3, value=value)
        export.add("GPU_METRICS", timestamp=at, typeId=256, metricId=4, value=100)
    return export.write(tmp_path / "report.sqlite")


def test_means_over_all_and_while_busy(path: Path) -> None:
    active, tensor = gpu_metrics(open_trace(path))
    assert (active.unit, active.name) == ("SMs active", "SMs Active [Throughput %]")
    assert (tensor.unit, tensor.samples, tensor.mean, tensor.maximum) == ("tensor cores", 4, 30.0, 90.0)
    assert (tensor.busy_mean, tensor.device) == (90.0, 0)


def test_stats_shows_them(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["stats", str(path), "-r", "cuda_gpu_kern_sum", "-v"]) == 0
    assert "tensor cores" in capsys.readouterr().out
    run(["stats", str(path), "-r", "cuda_gpu_kern_sum", "-v", "--json"])
    assert json.loads(capsys.readouterr().out)["gpu_metrics"][1]["busy_mean"] == 90.0


def test_a_trace_without_them_cannot_answer(tmp_path: Path) -> None:
    with pytest.raises(CannotAnswer, match="--gpu-metrics-devices"):
        gpu_metrics(open_trace(small().write(tmp_path / "report.sqlite")))


def test_recorded_metrics_say_what_the_program_does() -> None:
    """One step on an H200: eight matmuls of 8192³, copies within the device, a copy from the host, sleep."""
    path = DATA / "nsys" / "gpu_metrics.sqlite.xz"
    found = {one.unit or one.name: one for one in gpu_metrics(open_trace(path))}
    tensor, read, write = (found[unit] for unit in ("tensor cores", "DRAM read", "DRAM write"))
    assert tensor.range_means["matmul"] > 90 and tensor.range_means["copy"] < 1
    assert read.range_means["copy"] == pytest.approx(write.range_means["copy"], rel=0.02) and 40 < read.maximum < 50
    assert found["PCIe read"].range_means["host"] > 85 and found["PCIe read"].range_means["matmul"] < 5
    assert max(one.range_means["idle"] for one in (tensor, read, write)) < 1
    clock = found["GPC Clock Frequency [MHz]"]
    assert 1500 < clock.mean < clock.maximum == pytest.approx(1980, abs=1)
    values = raw_values(path, "Tensor Active [Throughput %]")
    assert (tensor.samples, tensor.mean, tensor.maximum) == (len(values), pytest.approx(statistics.mean(values)), 99)
    text = metrics_text(gpu_metrics(open_trace(path)))
    assert "Pixel" not in text and "matmul" in text


def raw_values(path: Path, name: str) -> list[int]:
    """A metric's samples, by SQL."""
    database = sqlite3.connect(":memory:")
    database.deserialize(lzma.decompress(path.read_bytes()))
    query = "select value from GPU_METRICS join TARGET_INFO_GPU_METRICS using (typeId, metricId) where metricName = ?"
    return [value for (value,) in database.execute(query, (name,))]
