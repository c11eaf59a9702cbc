"""Results that a notebook shows as a card of HTML."""

from __future__ import annotations


class ShownAsCard:
    """A result whose report is its card in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        import warpline  # noqa: PLC0415 - the package finds what shows a result, which stands above all results

        return str(warpline.notebook_card(self))
