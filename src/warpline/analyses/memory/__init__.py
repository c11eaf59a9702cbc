"""Where the memory goes: its peak, what is alive then, growth from step to step, and memory that cannot be used."""

from warpline.analyses.memory.answer import DeviceMemory, MemoryUse, memory_of_snapshot, memory_of_trace
from warpline.analyses.memory.curve import Curve

__all__ = ["Curve", "DeviceMemory", "MemoryUse", "memory_of_snapshot", "memory_of_trace"]
