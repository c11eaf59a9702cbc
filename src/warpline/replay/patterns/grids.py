"""Grids of kernels: how many blocks and waves, and how much of the device is unused."""

from __future__ import annotations

import numpy as np

from warpline.replay.labelled_graph import LabelledGraph
from warpline.trace.arrays import NONE, Bools, Floats

FEW_BLOCKS = 0.5
"""A grid with fewer blocks than this share of the SMs leaves most of them idle."""
MAX_WAVES, MIN_TAIL_SHARE = 4, 0.25
"""In a grid of at most this many waves, the last one is nearly empty if it fills less than this share."""
LIBRARY_CLASSES = ("gemm", "conv", "attention", "comm")
"""Libraries that choose their grids themselves and split work where that helps."""
BLOCKS_PER_SM = 32
"""Maximum number of resident blocks per SM (CUDA C++ Programming Guide, compute capability 8.0 and 9.0)."""
RESERVED_SHARED_BYTES = 1024
"""Shared memory per block reserved by the system (the same guide, from compute capability 8.0)."""


class Grids:
    """Blocks and waves of each kernel; zero if not recorded."""

    def __init__(self, labelled: LabelledGraph) -> None:
        devices = labelled.trace.devices
        sizes = (devices.sm_count, devices.max_threads_per_sm, devices.registers_per_sm, devices.shared_bytes_per_sm)
        known = np.flatnonzero(np.all([size != NONE for size in sizes], axis=0))
        self.blocks: Floats = np.ones(len(labelled.graph))
        self.threads: Floats = np.ones(len(labelled.graph))
        for axis in "xyz":
            self.blocks = self.blocks * labelled.work_number(f"grid_{axis}")
            self.threads = self.threads * labelled.work_number(f"block_{axis}")
        threads = self.threads
        self.sms = float(devices.sm_count[known[0]]) if len(known) else 0.0
        self.warp_size = max(0, int(devices.warp_size[known[0]])) if len(known) else 0
        self.waves: Floats = np.zeros(len(labelled.graph))
        if not self.sms:
            return
        device = known[0]
        registers = np.maximum(labelled.work_number("registers"), 1) * np.maximum(threads, 1)
        shared = labelled.work_number("shared_bytes") + RESERVED_SHARED_BYTES
        limits = (
            devices.max_threads_per_sm[device] / np.maximum(threads, 1),
            devices.registers_per_sm[device] / registers,
            devices.shared_bytes_per_sm[device] / shared,
        )
        per_sm = np.clip(np.floor(np.minimum.reduce(limits)), 1, BLOCKS_PER_SM)
        self.waves = self.blocks / (self.sms * per_sm)

    def few(self) -> Bools:
        """Grids with fewer blocks than half of the SMs."""
        return (self.blocks > 0) & (self.blocks < FEW_BLOCKS * self.sms)

    def half_empty(self) -> Bools:
        """Kernels that can use half of the device at most: their blocks are few, or have half a warp of threads."""
        return self.few() | ((self.threads > 0) & (2 * self.threads <= self.warp_size))

    def tails(self) -> Bools:
        """Grids of a few waves whose last wave is nearly empty."""
        last = self.waves % 1.0
        return (self.waves > 1) & (self.waves < MAX_WAVES) & (last > 0) & (last < MIN_TAIL_SHARE)

    def used(self) -> Floats:
        """Share of the SM time that such kernels use; 1 for other kernels."""
        few, waves = self.few(), np.where(self.tails(), self.waves, 1.0)
        return np.where(few, self.blocks / max(self.sms, 1.0), waves / np.ceil(waves))
