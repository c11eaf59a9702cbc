"""`python -m tests.fuzz`: see harness.py."""

from __future__ import annotations

import sys

from tests.fuzz.harness import main

sys.exit(main())
