"""Every rule. A new one is a `LintRule` in a module of this folder, listed here, and a row in docs/commands/lint.md."""

from warpline.lint.model import LintRule
from warpline.lint.rules import autograd, copies, settings, syncs, timing, triton_sizes

RULES: tuple[LintRule, ...] = (
    *timing.RULES,
    *syncs.RULES,
    *copies.RULES,
    *autograd.RULES,
    *triton_sizes.RULES,
    *settings.RULES,
)
