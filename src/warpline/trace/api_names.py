"""What an API call does to its caller, by name: CUDA and HIP, runtime and driver."""

from __future__ import annotations

SYNCHRONISE = r"^(cuda|hip)(Device|Stream|Event|Thread)Synchronize|^cu(Ctx|Stream|Event)Synchronize"
"""Returns when the device, a stream or an event is done."""
COPY = r"^(cuda|hip)Memcpy|^cuMemcpy"
ALLOCATE = (
    r"^(cuda|hip)(Malloc|Free|HostAlloc|HostFree|HostRegister|HostUnregister|MemPool|MallocAsync|FreeAsync|ExtMalloc)"
    r"|^cuMem(Alloc|Free|Create|Release|Map|Unmap|AddressReserve|AddressFree|SetAccess|HostAlloc|HostRegister|Pool)"
)
"""Asks the driver for memory, or gives it back; freeing waits for the device."""
LOAD = (
    r"^cu(Module|Library)(Load|GetFunction|GetKernel|GetGlobal|GetModule|Enumerate|Unload)|^cuKernelGetFunction|^cuLink"
    r"|^cuInit|^cuDevicePrimaryCtx|^cuCtxCreate|^hipModuleLoad|^(cuda|hip)SetDevice$|^(cuda|hip)(Stream|Event)Create"
    r"|^(cuda|hip)GetDeviceProperties|^cuGetProcAddress|^cudaGetDriverEntryPoint|^(cuda|hip)GraphInstantiate"
    r"|^cuGraphInstantiate|^nvrtc|^hiprtc|^cuFunc|^cudaFunc"
)
"""Makes code, contexts and handles ready: work of the first time, not of every step."""
