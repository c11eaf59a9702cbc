"""Pictures as PNG, for places that take no SVG: drawn by resvg, an optional package, in light colours."""

from __future__ import annotations

import re
from importlib.util import find_spec

from warpline.errors import WarplineError
from warpline.reports.svg import STYLE

PACKAGE, INSTALL = "resvg_py", "pip install 'warpline[png]', or write .svg"
SCALE = 2
"""Pixels per unit of the picture, so that small text stays sharp on dense screens."""
DARK = "@media"
"""The rules from here on are for dark pages."""
_VARIABLE = re.compile(r"--([a-z]+): (#[0-9a-f]{6})")
_STYLED = re.compile(r"var\(--([a-z]+)\)")
_ATTRIBUTE = re.compile(r'"var\(--([a-z]+)\)"')
_LETTER = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><text y="15">{}</text></svg>'


def check_png() -> None:
    """Raise where no PNG can be drawn."""
    if find_spec(PACKAGE) is None:
        raise WarplineError("needs-png", "drawing a .png needs resvg-py", INSTALL)


def png(picture: str) -> bytes:
    """One of our SVG pictures as PNG."""
    check_png()
    from resvg_py import svg_to_bytes  # noqa: PLC0415 - optional

    if svg_to_bytes(svg_string=_LETTER.format("x")) == svg_to_bytes(svg_string=_LETTER.format("")):
        hint = "install one (Debian: apt install fonts-dejavu-core), or write .svg"
        raise WarplineError("no-font", "this machine has no font, so the picture would have no text", hint)
    return bytes(svg_to_bytes(svg_string=in_light_colours(picture), zoom=SCALE))


def in_light_colours(picture: str) -> str:
    """The picture without CSS variables and media queries, which resvg does not know. Texts are not touched: they have
    no plain quotation marks."""
    light = STYLE.partition(DARK)[0]
    colours = dict(_VARIABLE.findall(light))
    style = _STYLED.sub(lambda found: colours[found[1]], light)
    return _ATTRIBUTE.sub(lambda found: f'"{colours[found[1]]}"', picture.replace(STYLE, style, 1))
