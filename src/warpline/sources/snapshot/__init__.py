"""Reads torch's memory snapshots: `torch.cuda.memory._dump_snapshot()`."""

from warpline.sources.snapshot.read import Snapshot, read_snapshot

__all__ = ["Snapshot", "read_snapshot"]
