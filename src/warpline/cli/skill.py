"""``warpline skill``: one page that tells a coding agent how to use warpline."""

from __future__ import annotations

import click

from warpline.cli.write import put_text
from warpline.mcp.resources import skill_text


@click.command()
def skill() -> None:
    """Print a page that tells a coding agent when to call what, for its skills or AGENTS.md.

    Examples:

      warpline skill

      warpline skill >> AGENTS.md
    """
    put_text(skill_text())
