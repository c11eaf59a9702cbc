"""Kernels known by their identifier, of any family (``data/identifiers.toml``)."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from warpline.package_data import read_table

BUCKET = 3
"""Prefixes are indexed by their first letters; none is shorter."""


class CatalogueEntry(Struct, frozen=True):
    """What an identifier means."""

    kernel_class: str
    op: str
    direction: str | None = None
    tensor_core: bool | None = None
    either: bool = False
    """Some kernels of this kind use tensor cores and some do not, whatever their class."""


class Catalogue:
    """The identifiers of one family, looked up exactly, by prefix, or, for truncated names, by common meaning."""

    __slots__ = ("_exact", "_prefixes")

    def __init__(self, family: str) -> None:
        self._exact: dict[str, CatalogueEntry] = {}
        prefixes: dict[str, CatalogueEntry] = {}
        for kind, identifiers in _families()[family].items():
            words = kind.split()
            entry = CatalogueEntry(
                words[0],
                words[1],
                next((word for word in words[2:] if word in ("fwd", "bwd")), None),
                True if "tensor" in words[2:] else False if "cores" in words[2:] else None,
                "either" in words[2:],
            )
            for identifier in identifiers.split():
                if identifier.endswith("*"):
                    prefixes[identifier[:-1]] = entry
                else:
                    self._exact[identifier] = entry
        self._prefixes: dict[str, list[tuple[str, CatalogueEntry]]] = {}
        for prefix in sorted(prefixes, key=len, reverse=True):
            self._prefixes.setdefault(prefix[:BUCKET], []).append((prefix, prefixes[prefix]))

    def find(self, identifier: str) -> CatalogueEntry | None:
        """The entry of an identifier, or None."""
        found = self._exact.get(identifier)
        if found is not None:
            return found
        for prefix, entry in self._prefixes.get(identifier[:BUCKET], ()):
            if identifier.startswith(prefix):
                return entry
        return None

    def complete(self, start: str) -> CatalogueEntry | None:
        """For a truncated identifier: what all identifiers with this start agree on, otherwise None."""
        if len(start) < 6:
            return None
        found = self.find(start)
        if found is not None:
            return found
        fits = [entry for identifier, entry in self._exact.items() if identifier.startswith(start)]
        fits += [entry for prefix, entry in self._prefixes.get(start[:BUCKET], ()) if prefix.startswith(start)]
        if not fits or len({entry.kernel_class for entry in fits}) != 1:
            return None
        return (
            fits[0]
            if len({entry.op for entry in fits}) == 1
            else CatalogueEntry(fits[0].kernel_class, fits[0].kernel_class)
        )


@cache
def _families() -> dict[str, dict[str, str]]:
    return read_table("kernels", "identifiers", dict[str, dict[str, str]])
