"""Fixes: one file each, named as the fix; what it recognises, how it changes the graph, its claims and its advice."""
