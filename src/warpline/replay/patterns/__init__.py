"""Patterns that fixes recognise in a graph: loops, copies, captures, lists of tensors. No time constants."""
