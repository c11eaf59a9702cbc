"""Memory that is held and not used: cached by the allocator, lost to rounding, or in pieces too small."""

from __future__ import annotations

from msgspec import Struct

from warpline.sources.snapshot.read import Segment


class Pieces(Struct, frozen=True):
    """The segments of a device at the time of a snapshot."""

    segments: int
    reserved_bytes: int
    in_use_bytes: int
    """In blocks that tensors use."""
    rounding_bytes: int
    """Part of these blocks that nobody asked for."""
    awaiting_bytes: int
    """Freed, but another stream may still use it."""
    free_bytes: int
    returnable_bytes: int
    """Free in segments without any block in use: `empty_cache()` gives it back."""
    largest_free_bytes: int
    """The largest allocation that fits without cudaMalloc."""

    @property
    def split_share(self) -> float | None:
        """Share of the free memory that lies outside of its largest piece; None without free memory."""
        return 1 - self.largest_free_bytes / self.free_bytes if self.free_bytes else None


def pieces(segments: list[Segment]) -> Pieces:
    """Sums over all blocks."""
    reserved = in_use = rounding = awaiting = free = returnable = largest = 0
    for segment in segments:
        reserved += segment.size_bytes
        unused = 0
        for block in segment.blocks:
            if block.state == "inactive":
                unused += block.size_bytes
                largest = max(largest, block.size_bytes)
            elif block.state == "active_allocated":
                in_use += block.size_bytes
                rounding += max(block.size_bytes - block.requested_bytes, 0)
            else:
                awaiting += block.size_bytes
        free += unused
        if segment.blocks and all(block.state == "inactive" for block in segment.blocks):
            returnable += unused
    return Pieces(len(segments), reserved, in_use, rounding, awaiting, free, returnable, largest)
