"""Calls of CUDA and of HIP by what they do: the names of HIP follow those of CUDA, and some differ."""

from __future__ import annotations

import re

import pytest

from warpline import api_names
from warpline.analyses.idle.host_activity import ALLOCATE, LOAD

CALLS = {
    api_names.KERNEL_LAUNCH: "hipLaunchKernel hipExtLaunchKernel hipModuleLaunchKernel hipExtModuleLaunchKernel "
    "hipLaunchCooperativeKernel hipLaunchKernelExC hipLaunchByPtr hipExtLaunchMultiKernelMultiDevice cudaLaunchKernelExC",
    api_names.GRAPH_LAUNCH: "hipGraphLaunch cudaGraphLaunch cuGraphLaunch",
    api_names.BEGIN_CAPTURE: "hipStreamBeginCapture",
    api_names.DEVICE_WAIT: "hipDeviceSynchronize hipCtxSynchronize cudaDeviceSynchronize",
    api_names.STREAM_WAIT: "hipStreamSynchronize",
    api_names.EVENT_WAIT: "hipEventSynchronize",
    api_names.COPY: "hipMemcpyWithStream hipMemcpy hipMemcpyDtoH hipMemcpyAsync hipMemcpy2DAsync",
    api_names.ASYNC_COPY: "hipMemcpyAsync hipMemcpyHtoDAsync hipMemcpy2DAsync",
    api_names.ALLOCATION: "hipMalloc hipMallocAsync hipExtMallocWithFlags hipHostMalloc hipMemCreate hipMemMap",
    api_names.EMPTY_CACHE_FREE: "hipFree hipMemUnmap hipMemRelease",
    ALLOCATE: "hipMalloc hipHostMalloc hipFree hipHostFree hipMemCreate hipMemAddressReserve hipMemSetAccess",
    LOAD: "hipModuleLoadData hipModuleGetFunction hipFuncGetAttributes hipInit hipGetDevicePropertiesR0600 hipStreamCreate",
}
OTHERS = {
    api_names.KERNEL_LAUNCH: "hipLaunchHostFunc cudaLaunchHostFunc hipGraphLaunch hipMalloc",
    api_names.ASYNC_COPY: "hipMemcpyWithStream hipMemcpy",
    api_names.DEVICE_WAIT: "hipStreamSynchronize hipEventQuery",
    api_names.ALLOCATION: "hipFree hipMemcpy hipMemGetInfo",
    LOAD: "hipMemcpyAsync hipLaunchKernel hipEventRecord",
}


def pairs(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(pattern, call) for pattern, calls in table.items() for call in calls.split()]


@pytest.mark.parametrize(("pattern", "call"), pairs(CALLS))
def test_a_call_is_recognised(pattern: str, call: str) -> None:
    assert re.search(pattern, call)


@pytest.mark.parametrize(("pattern", "call"), pairs(OTHERS))
def test_a_call_of_another_kind_is_not(pattern: str, call: str) -> None:
    assert not re.search(pattern, call)
