"""What-if questions about every fix."""

from __future__ import annotations

from warpline.fixes.registry import all_fixes
from warpline.replay.whatif import WhatIf
from warpline.trace.trace import Trace


def question_about(trace: Trace) -> WhatIf:
    """A trace prepared for what-if questions about every fix."""
    return WhatIf(trace, all_fixes())
