"""Checks of a program's source: what costs GPU time and can be seen without running it."""

from warpline.lint.check import imports_gpu_library, lint_file, lint_text, python_files
from warpline.lint.model import LintFinding, LintRule

__all__ = ["LintFinding", "LintRule", "imports_gpu_library", "lint_file", "lint_text", "python_files"]
