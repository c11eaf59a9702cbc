"""Opens a trace to diagnose it: what comes next is loaded on a second core while the file is read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.cli.options import open_with_progress

if TYPE_CHECKING:
    from warpline.trace.trace import Trace

TURN_SECONDS = 0.00005


def open_to_diagnose(
    trace: Path,
    steps: str | None,
    step_range: str | None,
    no_cache: bool,
    with_fixes: bool,
    load_more: Callable[[], None] = lambda: None,
) -> Trace:
    """The trace, with all that its diagnosis needs loaded. `load_more` imports what is needed after the analyses."""
    # Both cores are busy with the file, the imports and the analyses: threads of libraries would only wait and spin.
    for variable in ("OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ.setdefault(variable, "1")
    import warpline.sources.kineto  # noqa: F401, PLC0415 - before the other thread holds Python's lock

    with _short_turns():
        return open_with_progress(trace, steps, step_range, no_cache, partial(_load_analyses, with_fixes, load_more))


def _load_analyses(with_fixes: bool, load_more: Callable[[], None]) -> Iterator[None]:
    """Load polars and what makes tables, then the analyses and the fixes: on a second core, while the file is read and
    its tables are made."""
    import numpy.ma  # noqa: F401, PLC0415 - which polars and numpy's median load when they are first used

    import warpline.sources.kineto.foreign  # noqa: PLC0415
    import warpline.sources.kineto.lanes  # noqa: PLC0415
    import warpline.sources.kineto.native_events  # noqa: PLC0415
    import warpline.sources.kineto.tables  # noqa: PLC0415
    import warpline.trace.build  # noqa: PLC0415
    import warpline.trace.cache  # noqa: PLC0415

    yield
    import warpline.findings.diagnosis  # noqa: PLC0415
    import warpline.reports.diagnosis  # noqa: PLC0415
    import warpline.reports.kept  # noqa: F401, PLC0415

    if with_fixes:
        from warpline.findings import next_tool, rank, sync_places  # noqa: F401, PLC0415
        from warpline.fixes.registry import all_fixes  # noqa: PLC0415
        from warpline.hardware.chips import chips  # noqa: PLC0415
        from warpline.work.registry import known_ops  # noqa: PLC0415

        for load in (all_fixes, chips, known_ops):
            load()
    load_more()


def load_page() -> None:
    """Import what makes the page of a diagnosis."""
    import warpline.dive.answer  # noqa: PLC0415
    import warpline.reports.page.document  # noqa: F401, PLC0415


@contextmanager
def _short_turns() -> Iterator[None]:
    """Let threads take turns quickly: those that read the file need Python's lock for microseconds only, and would wait
    5 ms for it each time."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(TURN_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
