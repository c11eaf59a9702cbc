"""A torch with a device of its own: a host that submits, a stream that runs, and clocks that a test can read.

Submitting takes the host some time; work begins when both the stream and the host are ready for it. Nothing here reads
a real clock.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any


class Device:
    """One host, one stream."""

    def __init__(self, *, submit_ns: int = 8_000, latency_ns: int = 2_000) -> None:
        self.host_ns = 0
        self.stream_ns = 0
        self.submit_ns = submit_ns
        self.latency_ns = latency_ns
        self.log: list[str] = []
        self.capturing: list[Callable[[], None]] | None = None

    def now(self) -> int:
        return self.host_ns

    def launch(self, duration_ns: float, name: str = "kernel") -> None:
        if self.capturing is not None:
            self.capturing.append(lambda: self._run(duration_ns, name))
            return
        self.host_ns += self.submit_ns
        self._run(duration_ns, name)

    def stamp(self) -> int:
        """An event: it reads the stream's clock, and costs the host little."""
        self.host_ns += 100
        self.stream_ns = max(self.stream_ns, self.host_ns) + 200
        return self.stream_ns

    def wait(self) -> None:
        if self.capturing is not None:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nand more")
        self.host_ns = max(self.host_ns, self.stream_ns)

    def _run(self, duration_ns: float, name: str) -> None:
        self.log.append(name)
        self.stream_ns = int(max(self.stream_ns, self.host_ns + self.latency_ns) + duration_ns)


class Event:
    def __init__(self, device: Device) -> None:
        self.device = device
        self.at = 0

    def record(self) -> None:
        self.at = self.device.stamp()

    def elapsed_time(self, end: Event) -> float:
        return (end.at - self.at) / 1e6


class Buffer:
    def __init__(self, device: Device, size: int) -> None:
        self.device = device
        self.size = size

    def zero_(self) -> None:
        self.device.launch(self.size / 4_000, "flush")


class Tensor:
    """As much of a tensor as the calls look at."""

    is_cuda = True
    requires_grad = False
    device = SimpleNamespace(index=0)

    def __init__(self, address: int, size: int = 4096, zero: bool = False) -> None:
        self.address, self.size, self.zero = address, size, zero

    def data_ptr(self) -> int:
        return self.address

    def numel(self) -> int:
        return self.size

    def element_size(self) -> int:
        return 4

    def any(self) -> bool:
        return not self.zero

    def detach(self) -> Tensor:
        return self

    def clone(self) -> Tensor:
        return Tensor(self.address + 1_000_000, self.size, self.zero)

    def requires_grad_(self, value: bool) -> Tensor:
        assert value is False
        return self


class Graph:
    def __init__(self, device: Device) -> None:
        self.device = device
        self.work: list[Callable[[], None]] = []

    def replay(self) -> None:
        self.device.host_ns += self.device.submit_ns
        for run in self.work:
            run()


def fake_torch(device: Device, *, l2_bytes: int = 1 << 20, available: bool = True) -> Any:
    properties = SimpleNamespace(
        name="NVIDIA H200", multi_processor_count=132, major=9, minor=0, L2_cache_size=l2_bytes, uuid=""
    )

    @contextlib.contextmanager
    def graph(captured: Graph) -> Iterator[None]:
        device.capturing = captured.work
        try:
            yield
        finally:
            device.capturing = None

    stream = SimpleNamespace(wait_stream=lambda other: None)
    cuda = SimpleNamespace(
        Event=lambda enable_timing: Event(device),
        synchronize=device.wait,
        _sleep=lambda cycles: device.launch(cycles / 2, "hold"),
        get_device_properties=lambda index: properties,
        current_device=lambda: 0,
        current_stream=lambda: stream,
        Stream=lambda: stream,
        stream=lambda which: contextlib.nullcontext(),
        CUDAGraph=lambda: Graph(device),
        graph=graph,
        is_available=lambda: available,
        is_initialized=lambda: available,
        is_current_stream_capturing=lambda: device.capturing is not None,
    )
    return SimpleNamespace(
        cuda=cuda,
        uint8="uint8",
        empty=lambda size, dtype, device_=None, **_: Buffer(device, size),
        __version__="2.11.0",
        version=SimpleNamespace(cuda="13.0"),
        get_float32_matmul_precision=lambda: "highest",
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace(fp32_precision="ieee"))),
    )
