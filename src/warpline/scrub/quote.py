"""Texts that a profile carries, made fit to be quoted: no home folders, no hosts, no secrets, one short line."""

from __future__ import annotations

import re

from warpline.scrub.kinds import REMOVED
from warpline.scrub.secrets import SECRET_NAME, without_secrets

LONGEST_QUOTE = 160
LONGEST_INPUT = 2000
"""What is longer is cut before it is searched: the patterns take time that grows faster than the text."""

# More than `secrets` takes: a quote loses nothing by it.
_NAMED = re.compile(rf"(?i)(?<![\w.-])((?:--?)?{SECRET_NAME}[\"']?\s*[=:]\s*|--?{SECRET_NAME}\s+)\S+")
_URL = re.compile(r"\b([a-z][a-z0-9+.-]*)://[^\s'\")>]+", re.IGNORECASE)
_AT_HOST = re.compile(r"\b[\w.+-]+@[\w.-]+")
_POSIX_PATH = re.compile(r"(?<![\w.])~?/(?:[^\s/'\":;,()<>]+/)+")
_HOME = re.compile(r"(?<![\w.])/(?:home|Users|root)(?:/[^\s/'\":;,()<>]+)?")
_WINDOWS_PATH = re.compile(r"\b[A-Za-z]:\\(?:[^\\\s'\"]+\\)+")
_OPAQUE = re.compile(r"\b(?=[\w-]*\d)[A-Za-z0-9_-]{40,}\b")
# Colours and cursor movements of a terminal.
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def redacted(text: str) -> str:
    """The text with paths cut down to their last part, and hosts, addresses and secrets left out."""
    text = without_secrets(text[:LONGEST_INPUT]).replace(REMOVED, "…")
    text = _NAMED.sub(r"\1…", text)
    text = _URL.sub(r"\1://…", text)
    text = _AT_HOST.sub("…@…", text)
    text = _POSIX_PATH.sub("…/", text)
    text = _HOME.sub("…", text)
    text = _WINDOWS_PATH.sub(r"…\\", text)
    return _OPAQUE.sub("…", text)


def quote(text: str, longest: int = LONGEST_QUOTE) -> str:
    """The text as one redacted line of printable characters, shortened in the middle where it is long."""
    plain = _ESCAPE.sub("", text[:LONGEST_INPUT])
    plain = " ".join("".join(char if char.isprintable() else " " for char in plain).split())
    plain = redacted(plain)
    if len(plain) <= longest:
        return plain
    head = longest * 2 // 3
    return f"{plain[:head].rstrip()} … {plain[head - longest + 3 :].lstrip()}"
