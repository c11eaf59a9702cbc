"""Whether a turn of a loop needs the one before it, by the shapes and types of what its ops take and make.

A profile does not say which tensor is which. But a state that is carried from turn to turn goes into the turn and comes
out of it with one shape: where nothing does that could not be a part cut for the turn, the turns are independent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

from warpline.replay.patterns.op_results import PRODUCTS, Key, is_loss, results_of
from warpline.work.model import OpCall

VIEWS = (
    "aten::t",
    "aten::transpose",
    "aten::permute",
    "aten::view",
    "aten::reshape",
    "aten::expand",
    "aten::expand_as",
    "aten::unsqueeze",
    "aten::squeeze",
    "aten::flatten",
    "aten::select",
    "aten::slice",
    "aten::narrow",
    "aten::detach",
    "aten::movedim",
    "aten::unflatten",
    "aten::alias",
    "aten::numpy_T",
    "aten::mT",
    "aten::swapaxes",
)
"""Ops that compute nothing."""
ADDING = ("aten::add", "aten::add_")


@dataclass(slots=True)
class Turn:
    """What one turn takes and makes, found op by op."""

    there: Counter[Key] = field(default_factory=Counter)
    """Tensors that the turn has been given or has made so far."""
    parts: set[Key] = field(default_factory=set)
    """What was cut for this turn."""
    entered: set[Key] = field(default_factory=set)
    """What the turn takes, and can neither have made nor been given."""
    made: set[Key] = field(default_factory=set)
    begun: Counter[Key] = field(default_factory=Counter)
    """How often a shape comes up anew: as a part, or made of others."""
    merges: Counter[Key] = field(default_factory=Counter)
    """How often two of one shape become one."""
    met: set[Key] = field(default_factory=set)
    """What an op takes two of, or an op takes whose results are not known: a state and what updates it."""
    is_added_up: bool = False
    """Whether the turn ends with its result being added to what cannot have gone into it: a sum of all turns."""
    products: Counter[Key] = field(default_factory=Counter)
    """Results of products that nothing but products has taken yet."""
    unknown: int = 0
    """Results whose shape is not known, and that nothing has taken yet."""
    unknown_parts: int = 0

    def give(self, part: Key | None) -> None:
        """A part that was cut for this turn; None where its shape is not known."""
        if part is None:
            self.unknown_parts += 1
        else:
            self._begin(part)
            self.parts.add(part)

    def see(self, call: OpCall, viewed: tuple[int, ...] | None = None) -> None:
        """An op of the turn; a view with the shape that it gives."""
        tensors = [Key(tensor.shape, tensor.dtype) for tensor in call.all_tensors()]
        if call.name not in VIEWS:
            self.is_added_up = call.name in ADDING and self._is_apart(tensors)
        taken = [key for key in tensors if key.shape]
        if not taken:
            return
        if call.name in VIEWS:
            self._take(taken[:1])
            if viewed and Key(viewed, taken[0].dtype) != taken[0]:
                self._begin(Key(viewed, taken[0].dtype))
            return
        results = results_of(call, taken)
        is_product = call.name.removeprefix("aten::") in PRODUCTS
        if is_product and self._is_recurrent(taken, results or []):
            self.entered.add(taken[0])
        # What a loss compares a result with has its shape, and is no state.
        self._take(taken[:1] if is_loss(call.name) else taken)
        if not is_product:
            self.merges.update(taken)
            self.merges.subtract(set(taken))
            self.products.subtract(taken)
        else:
            self.products.update(results or [])
        self.met |= {key for key, count in Counter(taken).items() if count > 1 or results is None}
        self.unknown += results is None
        for key in results or []:
            self.made.add(key)
            self.there[key] += 1
            self.begun[key] += key not in taken

    def gather(self, shape: tuple[int, ...]) -> None:
        """What is put together after the loop is a result of the turn."""
        if self.unknown and all(key.shape != shape for key in self.made):
            self.unknown -= 1
            self.made |= {key for key in self.entered if key.shape == shape}

    @property
    def may_carry_a_state(self) -> bool:
        """Whether something may go into the turn that the turn before it made.

        Lines of tensors of one shape that meet must all have begun, with a part or made of something else: one that
        did not may have begun in the turn before.
        """
        if self.entered & self.made or (self.unknown and self.entered):
            return True
        return any(0 < self.begun[key] <= self.merges[key] for key in self.parts & self.made)

    def may_update_a_state(self, has_parts: bool, kept: Sequence[tuple[int, ...]]) -> bool:
        """The same, where the results of all turns are put together: who makes a chain keeps its end alone.

        A recurrence keeps them all, but there the state meets what updates it, which has its shape. And where no part
        distinguishes the turns, what is kept must be something else.
        """
        states = self.entered & self.made
        if (self.unknown and self.entered) or states & self.met:
            return True
        return not has_parts and (not kept or any(key.shape in kept for key in states))

    def _is_recurrent(self, taken: list[Key], results: list[Key]) -> bool:
        """Whether a product with square weights takes what only products have made: nobody multiplies twice in a row,
        but tanh(input @ w + state @ u) does one after the other."""
        state = taken[0]
        if results != [state] or state in self.parts or len(taken) < 2 or self.there[taken[1]]:
            return False
        return 0 < self.there[state] <= self.products[state]

    def _is_apart(self, operands: list[Key]) -> bool:
        """Whether one of two operands was made by this turn, and nothing like the other went into it."""
        if len(operands) != 2 or operands[0] != operands[1] or self.may_carry_a_state:
            return False
        size = prod(operands[0].shape)
        return not operands[0].shape or not any(prod(key.shape) == size for key in self.entered | self.parts)

    def _begin(self, key: Key) -> None:
        self.there[key] += 1
        self.begun[key] += 1

    def _take(self, keys: Iterable[Key]) -> None:
        for key, count in Counter(keys).items():
            while self.there[key] < count and self.unknown:
                self.unknown -= 1
                self.made.add(key)
                self._begin(key)
            while self.there[key] < count and self.unknown_parts:
                self.unknown_parts -= 1
                self.give(key)
            if self.there[key] < count:
                self.entered.add(key)
