"""The zlib that packs and unpacks profiles: zlib-ng, or the standard library's where that is not installed.

zlib-ng inflates a trace more than twice as fast as the standard library. isal is a quarter faster still on x86 and a
third slower on ARM; either outruns the scanner that waits for it, so the one that is fast everywhere was chosen.
"""

from __future__ import annotations

import gzip
import zlib
from typing import Any, Final, cast

try:
    from zlib_ng import gzip_ng, zlib_ng
except ImportError:  # the package has no wheel for every platform
    engine: Any = zlib
    GzipFile: Any = gzip.GzipFile
else:
    engine = zlib_ng
    GzipFile = gzip_ng.GzipNGFile

DamagedGzip = cast(type[Exception], engine.error)
"""What the engine raises on damage."""
GZIP_WINDOW_BITS: Final = 31
"""15 bits of window, plus 16 for a gzip header and checksum (zlib's manual, inflateInit2)."""
