"""A translator: a transformer with an encoder and a decoder."""

from __future__ import annotations

from typing import Any


def translator(torch: Any, width: int, layers: int, heads: int, vocabulary: int, length: int) -> Any:
    """The model. Call it with the tokens of two texts for the logits of the second."""
    nn, functional = torch.nn, torch.nn.functional

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

        def forward(self, x: Any, seen: Any, causal: bool = False) -> Any:
            parts = (self.query(x), self.key(seen), self.value(seen))
            q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts)
            return self.out(
                functional.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2)
            )

    def feed_forward() -> Any:
        return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    class Reader(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.own, self.forth = nn.LayerNorm(width), Attention(), feed_forward()

        def forward(self, x: Any) -> Any:
            y = self.norm(x)
            x = x + self.own(y, y)
            return x + self.forth(x)

    class Writer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.own = nn.LayerNorm(width), Attention()
            self.between, self.other, self.forth = nn.LayerNorm(width), Attention(), feed_forward()

        def forward(self, x: Any, read: Any) -> Any:
            y = self.norm(x)
            x = x + self.own(y, y, causal=True)
            x = x + self.other(self.between(x), read)
            return x + self.forth(x)

    class Translator(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.readers = nn.ModuleList(Reader() for _ in range(layers))
            self.writers = nn.ModuleList(Writer() for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

        def forward(self, source: Any, target: Any) -> Any:
            read, x = self.words(source) + self.places.weight, self.words(target) + self.places.weight
            for reader in self.readers:
                read = reader(read)
            for writer in self.writers:
                x = writer(x, read)
            return self.head(self.norm(x))

    return Translator()
