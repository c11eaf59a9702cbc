"""API calls by name, runtime and driver, CUDA and HIP: which give the device work, and which hold the CPU.

The names say what a call *may* wait for; whether it did is read from the times. Sources: the CUDA Runtime API
reference, "API synchronization behavior" (copies that involve pageable memory return only when they are staged
or done; cudaFree synchronises implicitly), and the HIP API reference, which follows it.
"""

from __future__ import annotations

KERNEL_LAUNCH = (
    r"^(cuda|cu|hip|hipExt)(Module)?Launch((Cooperative)?(Kernel|Device$)|Grid|$)|^hipExtLaunch|^hipExtModuleLaunch"
)
"""Launches one kernel (up to CUDA 9 with cudaLaunch and cuLaunchGrid); cudaLaunchHostFunc runs on the CPU."""
GRAPH_LAUNCH = r"^(cuda|cu|hip)GraphLaunch"
LAUNCH = f"{KERNEL_LAUNCH}|{GRAPH_LAUNCH}"
BEGIN_CAPTURE = r"^(cuda|cu|hip)StreamBeginCapture"
END_CAPTURE = r"^(cuda|cu|hip)StreamEndCapture"
"""Between the two, launches only make a graph."""
GRAPH_MAKING = r"^(cuda|cu|hip)(Graph(Instantiate|Destroy|Upload|GetNodes)|ThreadExchangeStreamCapture)"
"""Calls after a capture that turn what was captured into a graph to be launched."""
COMPILING_OPS = r"^dynamo$|^entire_frame_compile|\(dynamo_timed\)$|^CachingAutotuner\.|^compile_fx|^TritonBundler\."
"""Ops under which torch.compile compiles and tries kernels."""
COMPILED_REGION = r"^Torch-Compiled Region"
"""Ops under which it runs what it compiled."""
COMPILED_CODE = f"{COMPILED_REGION}|CompiledFxGraph|CompiledFunction"
"""The same, and what it calls from there: backwards, no region is around it."""
DEVICE_WAIT = r"^(cudaDeviceSynchronize|cuCtxSynchronize|hipDeviceSynchronize|hipCtxSynchronize)"
"""Waits for everything on the device."""
FREE = r"^(cudaFree|cuMemFree|hipFree)(Host|Array)?$|^(cudaHostUnregister|hipHostFree|hipHostUnregister)"
"""Frees, which wait for the device before they give memory back."""
STREAM_WAIT = r"^(cuda|cu|hip)StreamSynchronize"
"""Waits for one stream."""
EVENT_WAIT = r"^(cuda|cu|hip)EventSynchronize"
"""Waits for an event: for what its stream held when it was recorded."""
BLOCKING_COPY = r"^(cuda|cu|hip)Memcpy(?!.*Async)|^hipMemcpyWithStream"
"""Copies that return when the copy is done."""
COPY = r"^(cuda|cu|hip)Memcpy"
"""All copies, also those that return at once if the host's memory is pinned."""
MEMSET = r"^(cuda|cu|hip)Memset"
EVENT_RECORD = r"^(cuda|cu|hip)EventRecord"
STREAM_WAIT_EVENT = r"^(cuda|cu|hip)StreamWaitEvent"
"""Makes a stream, not the CPU, wait for an event."""
ALLOCATION = r"^(cudaMalloc|cuMemAlloc|hipMalloc|cudaHostAlloc|cuMemHostAlloc|hipHostMalloc|cuMemCreate|cuMemMap)"
"""Calls that get memory from the driver."""
EMPTY_CACHE_FREE = r"^(cudaFree|hipFree|cuMemFree|cuMemUnmap|cuMemRelease)"
"""Calls with which an allocator gives device memory back."""
