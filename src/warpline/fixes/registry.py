"""The registry of fixes: every module of this package with a `FIX`, and those that other packages add.

Other packages add fixes by entry points of the group `warpline.fixes`.
"""

from __future__ import annotations

import heapq
import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import get_args

from warpline import fixes
from warpline.errors import WarplineError
from warpline.fixes.claim import CAUSES, Effort
from warpline.fixes.model import Fix, Rule
from warpline.plugins import plugins
from warpline.replay.whatif import WhatIf
from warpline.trace.trace import Trace

ENTRY_POINTS = "warpline.fixes"


@cache
def all_fixes() -> Mapping[str, Fix]:
    """All fixes by name, in the order in which they are applied."""
    modules = (
        importlib.import_module(f"{fixes.__name__}.{item.name}") for item in pkgutil.iter_modules(fixes.__path__)
    )
    ours = [fix for fix in (getattr(module, "FIX", None) for module in modules) if isinstance(fix, Fix)]
    found = {fix.name: fix for fix in ours}
    for fix in plugins(ENTRY_POINTS, Fix):
        if fix.name in found:
            raise WarplineError("bad-plugin", f"two fixes are called {fix.name}", "uninstall the package that adds one")
        found[fix.name] = fix
    return MappingProxyType({name: found[name] for name in order_of_application(found)})


def question_about(trace: Trace) -> WhatIf:
    """A trace prepared for what-if questions about every fix."""
    return WhatIf(trace, all_fixes())


def order_of_application(found: Mapping[str, Fix]) -> list[str]:
    """Names of fixes in topological order of `after`, ties by name."""
    waiting = {name: {other for other in fix.after if other in found} for name, fix in found.items()}
    ready = [name for name, others in waiting.items() if not others]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        name = heapq.heappop(ready)
        order.append(name)
        for other, awaited in waiting.items():
            if name in awaited:
                awaited.remove(name)
                if not awaited:
                    heapq.heappush(ready, other)
    if len(order) < len(found):
        raise ValueError(f"these fixes depend on each other in a cycle: {', '.join(sorted(set(found) - set(order)))}")
    return order


@cache
def rules() -> tuple[Rule, ...]:
    """The rules of all fixes, in the order in which equal gains are listed.

    Specific rules come first, then by cause, then by effort (least first), then by the fix's name.
    """
    causes, efforts = list(CAUSES), get_args(Effort)
    every = [(rule, fix) for _, fix in sorted(all_fixes().items()) for rule in fix.findings]

    def order(pair: tuple[Rule, Fix]) -> tuple[bool, int, int]:
        rule, fix = pair
        return not rule.specific, causes.index(rule.cause), efforts.index(fix.effort)

    return tuple(rule for rule, _ in sorted(every, key=order))


@cache
def fix_of(rule: str) -> Fix:
    """The fix that a rule proposes."""
    return next(fix for fix in all_fixes().values() if any(own.name == rule for own in fix.findings))
