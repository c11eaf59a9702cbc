"""Collectives: what each rank must put on the wire (NCCL tests, doc/PERFORMANCE.md)."""

from __future__ import annotations

import pytest
from calls import SINGLE, call

from warpline.work import work_of
from warpline.work.collective import bus_factor, kind_of, work_of_record


@pytest.mark.parametrize(
    ("kind", "ranks", "factor"),
    [
        ("all_reduce", 8, 1.75),
        ("all_gather", 8, 0.875),
        ("reduce_scatter", 4, 0.75),
        ("all_to_all", 2, 0.5),
        ("broadcast", 8, 1.0),
        ("all_reduce", 1, 0.0),
    ],
)
def test_bus_factors(kind: str, ranks: int, factor: float) -> None:
    assert bus_factor(kind, ranks) == factor


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nccl:all_reduce", "all_reduce"),
        ("c10d::_reduce_scatter_base_", "reduce_scatter"),
        ("allgather", "all_gather"),
        ("c10d::alltoall_base_", "all_to_all"),
        ("_c10d_functional::all_gather_into_tensor", "all_gather"),
        ("aten::mm", ""),
    ],
)
def test_kinds_are_read_off_names(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_a_kineto_record_gives_the_traffic() -> None:
    record = {
        "Collective name": "allreduce",
        "dtype": "BFloat16",
        "In msg nelems": 1000,
        "Out msg nelems": 1000,
        "Group size": 4,
    }
    work = work_of_record(record)
    assert work is not None
    assert (work.bytes, work.link, work.estimate) == (3000, "nvlink", "")
    assert work_of_record({}) is None


def test_unknown_ranks_are_an_estimate() -> None:
    work = work_of(call("nccl:all_reduce", ((1000,), SINGLE)))
    assert work is not None
    assert work.bytes == 4000
    assert work.estimate
