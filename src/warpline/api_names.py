"""API calls by name, runtime and driver, CUDA and HIP: which launch GPU operations, and which block the CPU.

The name shows what a call *may* wait for; the times show whether it did. Sources: the CUDA Runtime API
reference, "API synchronization behavior" (copies that involve pageable memory return only when they are staged
or done; cudaFree synchronises implicitly), and the HIP API reference, which follows it.
"""

from __future__ import annotations

KERNEL_LAUNCH = (
    r"^(cuda|cu|hip|hipExt)(Module)?Launch((Cooperative)?(Kernel|Device$)|Grid|ByPtr|$)|^hipExtLaunch"
    r"|^hipExtModuleLaunch"
)
"""Launches one kernel (up to CUDA 9 with cudaLaunch and cuLaunchGrid); cudaLaunchHostFunc runs on the CPU."""
GRAPH_LAUNCH = r"^(cuda|cu|hip)GraphLaunch"
LAUNCH = f"{KERNEL_LAUNCH}|{GRAPH_LAUNCH}"
BEGIN_CAPTURE = r"^(cuda|cu|hip)StreamBeginCapture"
END_CAPTURE = r"^(cuda|cu|hip)StreamEndCapture"
"""Between these two calls, launches only build a graph."""
GRAPH_MAKING = r"^(cuda|cu|hip)(Graph(Instantiate|Destroy|Upload|GetNodes)|ThreadExchangeStreamCapture)"
"""Calls after a capture that instantiate the captured graph."""
COMPILING_OPS = r"^dynamo$|^entire_frame_compile|\(dynamo_timed\)$|^CachingAutotuner\.|^compile_fx|^TritonBundler\."
"""Ops under which torch.compile compiles and tries kernels."""
COMPILED_REGION = r"^Torch-Compiled Region"
"""Ops under which it runs compiled code."""
COMPILED_CODE = f"{COMPILED_REGION}|CompiledFxGraph|CompiledFunction"
"""The same, and the ops inside: a backward pass has no region around it."""
DEVICE_WAIT = r"^(cudaDeviceSynchronize|cuCtxSynchronize|hipDeviceSynchronize|hipCtxSynchronize)"
"""Waits for everything on the device."""
FREE = r"^(cudaFree|cuMemFree|hipFree)(Host|Array)?$|^(cudaHostUnregister|hipHostFree|hipHostUnregister)"
"""Frees, which wait for the device before they release memory."""
STREAM_WAIT = r"^(cuda|cu|hip)StreamSynchronize"
"""Waits for one stream."""
EVENT_WAIT = r"^(cuda|cu|hip)EventSynchronize"
"""Waits for an event: for what its stream held when it was recorded."""
HOST_WAIT = f"{DEVICE_WAIT}|{STREAM_WAIT}|{EVENT_WAIT}"
"""Waits of the CPU for any of the three."""
COPY = r"^(cuda|cu|hip)Memcpy"
"""Copies; those that are not asynchronous return when the copy is done."""
ASYNC_COPY = r"^(cuda|cu|hip)Memcpy.*Async"
"""Copies that return at once if the host's memory is pinned."""
MEMSET = r"^(cuda|cu|hip)Memset"
EVENT_RECORD = r"^(cuda|cu|hip)EventRecord"
STREAM_WAIT_EVENT = r"^(cuda|cu|hip)StreamWaitEvent"
"""Makes a stream, not the CPU, wait for an event."""
ALLOCATION = (
    r"^(cudaMalloc|cuMemAlloc|hipMalloc|hipExtMalloc|cudaHostAlloc|cuMemHostAlloc|hipHostMalloc|hipHostAlloc"
    r"|(cu|hip)MemCreate|(cu|hip)MemMap)"
)
"""Calls that allocate driver memory."""
EMPTY_CACHE_FREE = r"^(cudaFree|hipFree|cuMemFree|(cu|hip)MemUnmap|(cu|hip)MemRelease)"
"""Calls that return device memory to the driver."""
