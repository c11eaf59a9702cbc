"""A program of one second that gives every report of `nsys stats` something to say.

Recorded with the capture range of the CUDA profiler API, so that only `work` is in the file:
  nsys profile -t cuda,nvtx,osrt --sample=none --cpuctxsw=none --capture-range=cudaProfilerApi \
    --cuda-um-cpu-page-faults=true --cuda-um-gpu-page-faults=true [--cuda-graph-trace=node] python nsys_all_reports.py
"""

import ctypes
import ctypes.util
import glob
import os

import torch

MEGABYTE = 1 << 20


def cuda_runtime() -> ctypes.CDLL:
    for line in open("/proc/self/maps"):
        if "libcudart" in line:
            return ctypes.CDLL(line.split()[-1])
    found = ctypes.util.find_library("cudart") or glob.glob("/usr/local/cuda*/lib64/libcudart.so*")[0]
    return ctypes.CDLL(found)


def managed(runtime: ctypes.CDLL) -> None:
    """Two megabytes of unified memory: written by the host, set on the device, read by the host."""
    pointer = ctypes.c_void_p()
    if runtime.cudaMallocManaged(ctypes.byref(pointer), ctypes.c_size_t(2 * MEGABYTE), 1):
        return
    ctypes.memset(pointer, 1, 2 * MEGABYTE)
    runtime.cudaMemset(pointer, 2, ctypes.c_size_t(2 * MEGABYTE))
    torch.cuda.synchronize()
    ctypes.string_at(pointer, 2 * MEGABYTE)
    runtime.cudaFree(pointer)


def work(graph: torch.cuda.CUDAGraph, x: torch.Tensor, pinned: torch.Tensor, side: torch.cuda.Stream) -> None:
    nvtx = torch.cuda.nvtx
    for step in range(4):
        nvtx.range_push(f"step {step % 2}")
        nvtx.range_push("copy in")
        pageable = torch.ones(256, 1024)
        a = pageable.to("cuda")
        b = pinned.to("cuda", non_blocking=True)
        nvtx.range_pop()
        handle = nvtx.range_start("compute")
        nvtx.range_push("matmul")
        y = x @ x
        y = torch.relu(y) + 1
        nvtx.range_pop()
        with torch.cuda.stream(side):
            z = b * 2
            event = torch.cuda.Event()
            event.record(side)
        torch.cuda.current_stream().wait_event(event)
        graph.replay()
        nvtx.mark("launched")
        nvtx.range_end(handle)
        buffer = torch.zeros(1 << 20, device="cuda", dtype=torch.uint8)
        copy = buffer.clone()
        nvtx.range_push("read back")
        total = (y.sum() + a.sum() + z.sum() + copy.sum()).item()
        nvtx.range_pop()
        nvtx.range_pop()
        nonzero = torch.nonzero(x > 2)
    torch.cuda.synchronize()
    print("sum", total, "nonzero", len(nonzero))


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(1024, 1024, device="cuda")
    pinned = torch.ones(256, 1024).pin_memory()
    side = torch.cuda.Stream()
    static = torch.zeros(1 << 16, device="cuda")
    graph = torch.cuda.CUDAGraph()
    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        (static + 1).relu()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        static.add_(1)
        static.mul_(0.5)
        static.clone()
    work(graph, x, pinned, side)
    runtime = cuda_runtime()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    work(graph, x, pinned, side)
    if os.environ.get("MANAGED") == "1":
        managed(runtime)
    torch.cuda.profiler.stop()


main()
