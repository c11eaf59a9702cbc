"""Experiments that show, on the GPU at hand, why programs are slow and what helps: `warpline lab`, one file each."""
