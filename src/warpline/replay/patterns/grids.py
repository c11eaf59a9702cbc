"""Grids of kernels: how many blocks and waves, and how much of the device they leave empty."""

from __future__ import annotations

import numpy as np

from warpline.replay.scene import Scene
from warpline.trace.columns import Bools, Floats

FEW_BLOCKS = 0.5
"""A grid with fewer blocks than this share of the multiprocessors leaves most of them empty."""
MOST_WAVES, LEAST_TAIL = 4, 0.25
"""Of a grid of so many waves at most, the last counts as nearly empty if it fills less than this share."""
LIBRARY_CLASSES = ("gemm", "conv", "attention", "comm")
"""Whose libraries choose grids themselves, and split work where that helps."""
BLOCKS_PER_SM = 32
"""Blocks that a multiprocessor holds at most (CUDA C++ Programming Guide, compute capability 8.0 and 9.0)."""
RESERVED_SHARED_BYTES = 1024
"""Shared memory that the system takes of each block (the same guide, from compute capability 8.0)."""


class Grids:
    """Blocks and waves of each kernel; zero where the profile does not say."""

    def __init__(self, scene: Scene) -> None:
        devices = scene.trace.devices
        known = devices.select("sm_count", "max_threads_per_sm", "registers_per_sm", "shared_bytes_per_sm").drop_nulls()
        self.blocks: Floats = np.ones(len(scene.graph))
        threads: Floats = np.ones(len(scene.graph))
        for axis in "xyz":
            self.blocks = self.blocks * scene.work_number(f"grid_{axis}")
            threads = threads * scene.work_number(f"block_{axis}")
        self.sms = float(known["sm_count"][0]) if len(known) else 0.0
        self.waves: Floats = np.zeros(len(scene.graph))
        if not self.sms:
            return
        registers = np.maximum(scene.work_number("registers"), 1) * np.maximum(threads, 1)
        shared = scene.work_number("shared_bytes") + RESERVED_SHARED_BYTES
        limits = (
            float(known["max_threads_per_sm"][0]) / np.maximum(threads, 1),
            float(known["registers_per_sm"][0]) / registers,
            float(known["shared_bytes_per_sm"][0]) / shared,
        )
        per_sm = np.clip(np.floor(np.minimum.reduce(limits)), 1, BLOCKS_PER_SM)
        self.waves = self.blocks / (self.sms * per_sm)

    def few(self) -> Bools:
        """Grids that do not even give every second multiprocessor a block."""
        return (self.blocks > 0) & (self.blocks < FEW_BLOCKS * self.sms)

    def tails(self) -> Bools:
        """Grids of a few waves whose last one is nearly empty."""
        last = self.waves % 1.0
        return (self.waves > 1) & (self.waves < MOST_WAVES) & (last > 0) & (last < LEAST_TAIL)

    def used(self) -> Floats:
        """Share of the multiprocessors' time that such kernels use; 1 for the others."""
        few, waves = self.few(), np.where(self.tails(), self.waves, 1.0)
        result: Floats = np.where(few, self.blocks / max(self.sms, 1.0), waves / np.ceil(waves))
        return result
