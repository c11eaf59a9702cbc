"""nvprof (and the Visual Profiler): read its SQLite databases (.nvvp, .nvprof) as rows."""

from __future__ import annotations

from warpline.sources.nvprof.read import read_nvprof

__all__ = ["read_nvprof"]
