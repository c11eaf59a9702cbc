"""The rows that the page keeps."""

from __future__ import annotations

from warpline.reports.page.rows import Pack


def test_of_nothing_nothing_is_kept() -> None:
    kept = Pack().only(1, 0, 10)
    assert (kept.count, kept.tracks) == (0, [])
