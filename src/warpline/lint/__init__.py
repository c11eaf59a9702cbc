"""Checks of a program's source: what costs GPU time and can be seen without running it."""

from warpline.lint.check import lint_file, lint_text, python_files
from warpline.lint.model import LintFinding, LintRule

__all__ = ["LintFinding", "LintRule", "lint_file", "lint_text", "python_files"]
