"""Make texts from a profile safe to quote: no home folders, hosts or secrets, and one short line."""

from __future__ import annotations

import re

from warpline.secrets import REMOVED, SECRET_NAME, without_secrets

MAX_QUOTE_CHARS = 160
MAX_INPUT_CHARS = 2000
"""Longer texts are cut before matching: a quote is short."""

# Broader than the patterns in `secrets`: a quote may lose more text.
_NAMED = re.compile(rf"(?i)(?<![\w.-])((?:--?)?{SECRET_NAME}[\"']?\s*[=:]\s*|--?{SECRET_NAME}\s+)\S+")
_URL = re.compile(r"\b([a-z][a-z0-9+.-]{0,40}+)://[^\s'\")>]+", re.IGNORECASE)
_AT_HOST = re.compile(r"(?<![\w.+-])([.+-]*+)\w[\w.+-]*+(?:@[\w.+-]++)+")
_POSIX_PATH = re.compile(r"(?<![\w.])~?/(?:[^\s/'\":;,()<>]+/)+")
_HOME = re.compile(r"(?<![\w.])/(?:home|Users|root)(?:/[^\s/'\":;,()<>]+)?")
_WINDOWS_PATH = re.compile(r"\b[A-Za-z]:\\(?:[^\\\s'\"]+\\)+")
_OPAQUE = re.compile(r"(?<![A-Za-z0-9_-])(-*+)(?=[A-Za-z_-]*+\d)[A-Za-z0-9_-]{40,}\b")
# Terminal colours and cursor movements.
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def redacted(text: str) -> str:
    """Shorten paths to their last part, and remove hosts, addresses and secrets."""
    text = without_secrets(text[:MAX_INPUT_CHARS]).replace(REMOVED, "…")
    text = _NAMED.sub(r"\1…", text)
    text = _URL.sub(r"\1://…", text)
    text = _AT_HOST.sub(r"\1…@…", text)
    text = _POSIX_PATH.sub("…/", text)
    text = _HOME.sub("…", text)
    text = _WINDOWS_PATH.sub(r"…\\", text)
    return _OPAQUE.sub(r"\1…", text)


def quote(text: str, longest: int = MAX_QUOTE_CHARS) -> str:
    """The text as one redacted line of printable characters, shortened in the middle if it is long."""
    plain = _ESCAPE.sub("", text[:MAX_INPUT_CHARS])
    plain = " ".join("".join(char if char.isprintable() else " " for char in plain).split())
    plain = redacted(plain)
    if len(plain) <= longest:
        return plain
    head = longest * 2 // 3
    return f"{plain[:head].rstrip()} … {plain[head - longest + 3 :].lstrip()}"
