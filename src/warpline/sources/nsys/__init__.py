"""Nsight Systems: SQLite exports read as rows, reports exported with the nsys at hand."""

from __future__ import annotations

from warpline.sources.nsys.read import read_nsys

__all__ = ["read_nsys"]
