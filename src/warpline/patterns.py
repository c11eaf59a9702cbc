"""`regex` as `re.compile`, but the expression is compiled when it is first used.

A diagnosis loads 155 expressions and uses 64 of them; to compile the others would take almost a tenth of the time of
all its imports.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

__all__ = ["regex"]

if TYPE_CHECKING:
    from re import compile as regex
else:

    class regex:  # noqa: N801 - used as a function
        """A regular expression with the methods of `re.Pattern`."""

        def __init__(self, pattern, flags=0):
            self._asked = pattern, flags

        def __getattr__(self, name):
            """Asked for once of each name: the answer becomes an attribute."""
            value = getattr(re.compile(*self._asked), name)
            setattr(self, name, value)
            return value
