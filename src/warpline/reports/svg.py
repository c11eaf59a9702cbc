"""What all SVG pictures share: one style for light and dark, the colours of causes and activities, and sanitised text.

The colours of the idle causes are Okabe and Ito's, which can be told apart with any colour vision, with greys and a
brown for those beyond their eight.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape

from warpline.sanitise import sanitise

IDLE_COLOURS = {
    "dispatch": "#e69f00",
    "sync": "#d55e00",
    "transfer": "#56b4e9",
    "input": "#009e73",
    "memory": "#f0e442",
    "comm": "#cc79a7",
    "cold_start": "#8c5a3c",
    "launch_latency": "#9aa0a6",
    "dependency": "#0072b2",
    "profiler": "#5f6368",
    "unknown": "#c9cdd2",
}
BUSY_COLOURS = {"compute": "#6695d0", "comm": "#b9608b", "copy": "#9068ab", "memset": "#b6bec8"}
STYLE = """\
text { font: 12px Inter, "Segoe UI", system-ui, sans-serif; fill: var(--ink); }
.title { font-size: 15px; font-weight: 600; }
.dim { fill: var(--dim); }
.rule { stroke: var(--rule); }
.mark { stroke: var(--dim); stroke-dasharray: 2 4; }
.area { fill: var(--blue); fill-opacity: 0.35; stroke: var(--blue); }
.curve { fill: none; stroke: var(--roof); stroke-width: 1.5; }
.level { stroke: var(--blue); stroke-width: 2; }
.on { font-size: 11px; fill: #14181d; }
.paper { fill: var(--paper); }
.roof { stroke: var(--roof); stroke-width: 1.5; }
text.roof { fill: var(--roof); stroke: none; }
.small { font-size: 10px; }
.bold { font-weight: 600; }
svg { --paper: #fbfbfa; --ink: #1b1f24; --dim: #626a73; --rule: #d9dcdf; --roof: #b4372a;
  --blue: #1769aa; --ops: #a9bdd9; --api: #9cc4b2; --range: #cbd6b8; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #15181c; --ink: #e4e7ea; --dim: #98a1ab; --rule: #333a42; --roof: #ff8a7a;
    --blue: #5aa9e6; --ops: #7f97bb; --api: #6fa58d; --range: #93a376; }
}
"""
LETTER = 6.9
"""Mean width of a letter of 12 px, in pixels, in the widest of the fonts."""


def document(width: int, height: float, title: str, description: str, parts: Iterable[str]) -> str:
    """A picture with a name and a description for screen readers."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" role="img" '
            'aria-labelledby="title description">',
            f'<title id="title">{xml(title)}</title>',
            f'<desc id="description">{xml(description)}</desc>',
            f"<style>\n{STYLE}</style>",
            f'<rect class="paper" width="{width}" height="{height:g}"/>',
            *parts,
            "</svg>\n",
        ]
    )


def image(picture: str, meaning: str) -> str:
    """The picture as an HTML element, which needs no file; the page's policy allows its style."""
    data = base64.b64encode(picture.encode()).decode()
    return f'<img class="step-picture" alt="{xml(meaning)}" src="data:image/svg+xml;base64,{data}">'


def xml(text: str) -> str:
    """Text for SVG: XML allows no control characters."""
    return escape(sanitise(text))


def label(x: float, y: float, text: str, kind: str = "", anchor: str = "", turn: float = 0) -> str:
    """A line of text, turned clockwise by so many degrees."""
    x, y = round(x, 1), round(y, 1)
    more = (f' class="{kind}"' if kind else "") + (f' text-anchor="{anchor}"' if anchor else "")
    turned = f' transform="rotate({turn:.1f} {x:g} {y:g})"' if turn else ""
    return f'<text x="{x:g}" y="{y:g}"{more}{turned}>{xml(text)}</text>'


def stroke(x1: float, y1: float, x2: float, y2: float, kind: str = "rule") -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def fitted(text: str, width: float) -> str:
    """As much of the text as fits, with an ellipsis; nothing if that would be under three letters."""
    letters = int(width / LETTER)
    if len(text) <= letters:
        return text
    return f"{text[: letters - 1]}…" if letters >= 4 else ""


def legend(x: float, y: float, width: float, entries: Iterable[tuple[str, str]]) -> tuple[list[str], float]:
    """Squares of a colour with their meaning, in lines; and where the next line would be."""
    parts, at = [], x
    for text, colour in entries:
        length = 16 + len(text) * LETTER + 14
        if at > x and at + length > x + width:
            at, y = x, y + 18
        parts.append(f'<rect x="{at:g}" y="{y - 9:g}" width="10" height="10" rx="2" fill="{colour}"/>')
        parts.append(label(at + 15, y, text))
        at += length
    return parts, y + 18


def words(name: str) -> str:
    """A cause or activity as words."""
    return name.replace("_", " ")
