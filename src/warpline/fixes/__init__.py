"""Fixes, one file each, named after the fix: what it detects, how it changes the graph, its claims and its advice."""
