"""The Python API: `warpline.open`, the trace that it returns, and its methods."""
