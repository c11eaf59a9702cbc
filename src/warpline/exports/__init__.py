"""Writes a trace and its diagnosis in the formats of other viewers: Perfetto, speedscope, SVG."""
