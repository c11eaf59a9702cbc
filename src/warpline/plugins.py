"""What installed packages add to warpline, found by entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from warpline.errors import WarplineError

Plugin = TypeVar("Plugin")


def plugins(group: str, kind: type[Plugin]) -> list[Plugin]:
    """The objects under the entry points of a group, in the order of their names; each must be of this type."""
    return [_loaded(point, kind) for point in sorted(entry_points(group=group), key=lambda point: point.name)]


def _loaded(point: EntryPoint, kind: type[Plugin]) -> Plugin:
    package = point.dist.name if point.dist is not None else "an installed package"
    try:
        plugin = point.load()
    except Exception as error:  # whatever the package's own code raises
        raise _bad(point, package, f"{type(error).__name__}: {error}") from error
    if not isinstance(plugin, kind):
        raise _bad(point, package, f"it is a {type(plugin).__name__}, not a {kind.__name__}")
    return plugin


def _bad(point: EntryPoint, package: str, why: str) -> WarplineError:
    what = f"{point.value}, which {package} adds to {point.group}, cannot be used: {why}"
    return WarplineError("bad-plugin", what, f"update or uninstall {package}")
