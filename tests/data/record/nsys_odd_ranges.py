"""A program whose ranges are odd in every way that the reports of nsys must decide about.

Two processes and three threads; ranges that overlap without nesting, end on another thread, hold no GPU work,
recur in themselves or never close; and one page of unified memory. Recorded from start to end:
  nsys profile -t cuda,nvtx --sample=none --cpuctxsw=none --cuda-um-cpu-page-faults=true \
    --cuda-um-gpu-page-faults=true -o odd python nsys_odd_ranges.py
"""

import ctypes
import pathlib
import subprocess
import sys
import threading

import cupy
import torch

nvtx = torch.cuda.nvtx


def small(x: torch.Tensor, times: int = 1) -> None:
    for _ in range(times):
        x.mul_(1.5)


def nested(x: torch.Tensor) -> None:
    """An idle child, a child with an idle child, and a range within itself."""
    nvtx.range_push("family")
    nvtx.range_push("idle child")
    nvtx.range_pop()
    nvtx.range_push("busy child")
    nvtx.range_push("idle grandchild")
    nvtx.range_pop()
    small(x, 2)
    nvtx.range_pop()
    nvtx.range_push("again")
    small(x)
    nvtx.range_push("again")
    x.add_(1)
    nvtx.range_pop()
    nvtx.range_pop()
    nvtx.range_pop()


def crossing(x: torch.Tensor) -> None:
    """A start/end range that begins outside a push/pop range and ends within it, and the reverse."""
    first = nvtx.range_start("crosses in")
    small(x)
    nvtx.range_push("crossed")
    x.add_(1)
    nvtx.range_end(first)
    small(x)
    second = nvtx.range_start("crosses out")
    x.add_(2)
    nvtx.range_pop()
    torch.relu(x)
    nvtx.range_end(second)


def over_threads(x: torch.Tensor) -> None:
    """Started here, ended by another thread, with work of both; both threads have a range of one name."""
    handle = nvtx.range_start("over threads")
    nvtx.range_push("same name")
    small(x)
    nvtx.range_pop()

    def other() -> None:
        nvtx.range_push("same name")
        torch.relu(x)
        small(x)
        nvtx.range_pop()
        x.add_(1)
        nvtx.range_end(handle)
        small(x)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()


def unified() -> None:
    """One block of unified memory, written by the host, copied by the device, read by the host."""
    maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    cuda = ctypes.CDLL(next(line.split()[-1] for line in maps if "libcudart" in line))
    pointer, size = ctypes.c_void_p(), 1 << 16
    if cuda.cudaMallocManaged(ctypes.byref(pointer), ctypes.c_size_t(size), 1):
        return
    ctypes.memset(pointer, 1, size)
    memory = cupy.cuda.UnownedMemory(pointer.value, size, None)
    array = cupy.ndarray(size // 4, cupy.float32, cupy.cuda.MemoryPointer(memory, 0))
    array *= 2
    cupy.cuda.Device().synchronize()
    ctypes.string_at(pointer, size)
    cuda.cudaFree(pointer)


def main() -> None:
    x = torch.ones(1 << 12, device="cuda")
    if sys.argv[1:] == ["child"]:
        nvtx.range_push("same name")
        small(x, 3)
        nvtx.range_pop()
        torch.cuda.synchronize()
        return
    nested(x)
    crossing(x)
    over_threads(x)
    unified()
    torch.cuda.synchronize()
    subprocess.run([sys.executable, __file__, "child"], check=True)
    nvtx.range_push("never popped")
    nvtx.range_start("never ended")
    small(x)
    torch.cuda.synchronize()


main()
