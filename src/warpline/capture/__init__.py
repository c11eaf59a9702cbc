"""Capture: run a program under a profiler and keep what it recorded.

Everything here also runs inside the profiled program, with that program's Python: the standard library and, where it
is already loaded, torch; nothing newer than Python 3.9 (hence no slots on dataclasses and no ``zip(strict=)``).
"""
