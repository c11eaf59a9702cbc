"""Where the memory goes: its peak, what is alive then, growth from step to step, and memory that cannot be used."""

from warpline.analyses.memory.allocations import MemoryCurve
from warpline.analyses.memory.answer import DeviceMemory, MemoryUse, memory_of_snapshot, memory_of_trace

__all__ = ["DeviceMemory", "MemoryCurve", "MemoryUse", "memory_of_snapshot", "memory_of_trace"]
