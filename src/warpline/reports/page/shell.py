"""The HTML document around every page: it loads nothing, and runs only a script that its policy names by hash."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from warpline.reports import html


def document(title: str, heading: str, body: str, script: str | None = None, connects: bool = False) -> str:
    """A page with our style. `script` may run, and with `connects` it may ask the server that the page came from."""
    style = asset("bundle.css")
    policy = "; ".join(
        [
            "default-src 'none'",
            *([f"script-src {_hash_source(script)}"] if script else []),
            *(f"style-src {_hash_source(style)}", "img-src data:", "base-uri 'none'", "form-action 'none'"),
            *(["connect-src 'self'"] if connects else []),
        ]
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{html.text(title)} · warpline</title>
<style>{style}</style>
</head>
<body>
<header><p class="mark">warpline</p><h1>{html.text(heading)}</h1></header>
{body}
</body>
</html>
"""


def asset(name: str) -> str:
    """A file of the built page."""
    return (resources.files("warpline.reports.page") / name).read_text(encoding="utf-8")


def _hash_source(content: str) -> str:
    """What a Content Security Policy calls a script or style that it allows."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
