"""The flawed kernels: every reason is planted, and each launch fits the signature of its entry point."""

import re

import pytest

from faults.kernels.case import FIXED, FLAWED, Cuda, KernelCase
from faults.kernels.launch import ALL, SETS
from faults.kernels.nvrtc import SOURCES
from faults.kernels.record import GROUP, groups
from warpline.dive.model import REASONS

CUDA = [case for case in ALL.values() if isinstance(case.flawed, Cuda)]


def test_every_reason_of_the_contract_is_planted() -> None:
    planted = {case.reason for case in SETS["planted"]}
    assert planted == set(REASONS)
    assert {reason for case in ALL.values() for reason in (case.reason, *case.also, *case.fixed_reasons)} <= planted


def test_the_fresh_set_has_every_flaw_once() -> None:
    flaws = [case.reason for case in SETS["fresh"] if case.fixed is not None]
    limits = {"healthy", "memory_bandwidth", "compute_peak"}
    assert sorted(flaws) == sorted(set(REASONS) - limits)
    assert {case.reason for case in SETS["fresh"] if case.fixed is None} <= limits


def parameters(launch: Cuda, form: str) -> list[str]:
    source = (SOURCES / f"{launch.file}.cu").read_text()
    bounds = r"(?:__launch_bounds__\([^)]*\) )?"
    found = re.search(rf"__global__ void {bounds}{launch.file}_{form}\(([^)]*)\)", source)
    assert found is not None, (launch.file, form)
    return found[1].split(",")


@pytest.mark.parametrize("case", CUDA, ids=lambda case: case.name)
def test_a_launch_fits_its_entry_point(case: KernelCase) -> None:
    for form, launch in case.forms().items():
        if not isinstance(launch, Cuda):
            continue
        wanted = parameters(launch, form)
        assert len(wanted) == len(launch.arguments)
        for parameter, argument in zip(wanted, launch.arguments, strict=True):
            kind = str if "*" in parameter else float if "float" in parameter else int
            assert isinstance(argument, kind), (form, parameter, argument)
        x, y, z = launch.block
        assert x * y * z <= 1024


def test_every_case_is_in_one_report_of_limited_size() -> None:
    made = groups(list(ALL))
    assert sorted(name for _, names in made for name in names) == sorted(ALL)
    assert all(len(names) <= GROUP for _, names in made)
    assert {form for case in ALL.values() for form in case.forms()} == {FLAWED, FIXED}
