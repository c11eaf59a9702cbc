"""Costs in nanoseconds: recording, launches, copies, kernels, and the source of each number."""
