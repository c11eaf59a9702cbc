"""The first results of a run, sampled: losses, and inputs and outputs of the modules that the program calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SAMPLED_TENSORS = 8
"""Of one result."""
SAMPLED_NUMBERS = 64
"""Of one tensor."""

LOSS, FIRST_INPUT = "loss", "in"


class FirstResults:
    """Samples of the first results by name. They stay on the device, so that nothing waits for them."""

    def __init__(self, torch: Any, most: int) -> None:
        self._torch, self._most = torch, most
        self._kept: dict[str, list[list[Any]]] = {}
        self.last_loss: Any = None

    def keep(self, name: str, result: Any) -> None:
        """Keep a sample of a result, if it is one of the first of this name."""
        kept = self._kept.setdefault(name, [])
        if len(kept) >= self._most:
            return
        tensors = [leaf for leaf in leaves(result) if isinstance(leaf, self._torch.Tensor)]
        flat = [
            tensor.detach().reshape(-1)
            for tensor in tensors[:SAMPLED_TENSORS]
            if tensor.numel() and not tensor.is_complex()
        ]
        kept.append([self._sample(tensor) for tensor in flat])

    def keep_loss(self, loss: Any) -> None:
        """Keep the tensor whose backward() is called."""
        self.keep(LOSS, loss)
        if isinstance(loss, self._torch.Tensor):
            self.last_loss = loss.detach()

    def _sample(self, flat: Any) -> Any:
        stride = max(1, len(flat) // SAMPLED_NUMBERS)
        return flat[::stride][:SAMPLED_NUMBERS].to(self._torch.float32, copy=True)

    def loss_now(self) -> float | None:
        """The last loss, if it is one number; waits for the device."""
        loss = self.last_loss
        return float(loss) if loss is not None and loss.numel() == 1 else None

    def to_dict(self) -> dict[str, list[list[float]]]:
        """All samples as numbers; waits for the device."""
        return {
            name: [[number for tensor in one for number in tensor.tolist()] for one in kept]
            for name, kept in self._kept.items()
        }


def leaves(tree: Any) -> list[Any]:
    """What nested tuples, lists, dicts and objects with a `to_tuple` hold, in order."""
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves(part)]
    if isinstance(tree, dict):
        return [leaf for part in tree.values() for leaf in leaves(part)]
    return [tree]


def map_tree(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The same nested tuples, lists and dicts with changed leaves; other containers stay as they are."""
    if type(tree) in (list, tuple):
        return type(tree)(map_tree(part, change) for part in tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(map_tree(part, change) for part in tree))
    if isinstance(tree, dict):  # a model's output is a dict with attributes: changed in place, its class stays
        for key, part in list(tree.items()):
            changed = map_tree(part, change)
            if changed is not part:
                tree[key] = changed
        return tree
    return change(tree)
