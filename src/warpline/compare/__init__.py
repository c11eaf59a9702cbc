"""Compares two runs: aligns their work, explains the difference exactly, and says whether it is real."""
