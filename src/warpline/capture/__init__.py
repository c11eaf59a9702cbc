"""Capture: run a program under a profiler and store the recording.

This package also runs inside the profiled program, with that program's Python. It uses only the standard library and,
if already loaded, torch, and nothing newer than Python 3.9 (hence no slots on dataclasses and no ``zip(strict=)``).
"""
