"""Whether an iteration of a loop depends on the previous one, by the shapes and types of its inputs and results.

A profile does not identify tensors. But a state carried between iterations enters and leaves an iteration with the same
shape: if no tensor does that, except slices taken for the iteration, the iterations are independent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import prod

from msgspec import Struct, field

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


class Iteration(Struct):
    """Inputs and results of one iteration, collected op by op."""

    there: Counter[Key] = field(default_factory=Counter)
    """Tensors that the iteration was given or has computed so far."""
    parts: set[Key] = field(default_factory=set)
    """Slices taken for this iteration."""
    entered: set[Key] = field(default_factory=set)
    """Inputs that the iteration neither computed nor was given."""
    results: set[Key] = field(default_factory=set)
    begun: Counter[Key] = field(default_factory=Counter)
    """How often a tensor of this shape is new: a slice, or computed from other shapes."""
    merges: Counter[Key] = field(default_factory=Counter)
    """How often two tensors of one shape are combined into one."""
    met: set[Key] = field(default_factory=set)
    """Shapes of which one op takes two, or that an op with unknown results takes: a state and its update."""
    is_added_up: bool = False
    """Whether the iteration ends by adding its result to a tensor it did not read: a sum over all iterations."""
    products: Counter[Key] = field(default_factory=Counter)
    """Results of matmuls that only matmuls have read so far."""
    unknown: int = 0
    """Unread results of unknown shape."""
    unknown_parts: int = 0

    def give(self, part: Key | None) -> None:
        """Adds a slice taken for this iteration; None if its shape is unknown."""
        if part is None:
            self.unknown_parts += 1
        else:
            self._begin(part)
            self.parts.add(part)

    def see(self, call: OpCall, viewed: tuple[int, ...] | None = None) -> None:
        """Adds an op of the iteration; a view with the shape of its result."""
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
        # The target of a loss has the shape of the result, and is not a state.
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
            self.results.add(key)
            self.there[key] += 1
            self.begun[key] += key not in taken

    def gather(self, shape: tuple[int, ...]) -> None:
        """Marks what is joined after the loop as a result of the iteration."""
        if self.unknown and all(key.shape != shape for key in self.results):
            self.unknown -= 1
            self.results |= {key for key in self.entered if key.shape == shape}

    @property
    def may_carry_a_state(self) -> bool:
        """Whether the iteration may read a result of the previous one.

        Tensors of one shape that are combined must all originate in this iteration, from a slice or from other shapes;
        one that does not may come from the previous iteration.
        """
        if self.entered & self.results or (self.unknown and self.entered):
            return True
        return any(0 < self.begun[key] <= self.merges[key] for key in self.parts & self.results)

    def may_update_a_state(self, has_parts: bool, joined: Sequence[tuple[int, ...]]) -> bool:
        """The same, if the results of all iterations are joined: a plain chain keeps only its last result.

        A recurrence keeps all results, but combines the state with an update of the same shape. If no slice
        distinguishes the iterations, the kept result must be something else than the state.
        """
        states = self.entered & self.results
        if (self.unknown and self.entered) or states & self.met:
            return True
        return not has_parts and (not joined or any(key.shape in joined for key in states))

    def _is_recurrent(self, taken: list[Key], results: list[Key]) -> bool:
        """Whether a matmul with square weights reads a result that only matmuls have read: two matmuls in a row are
        unusual, but tanh(input @ w + state @ u) has them."""
        state = taken[0]
        if results != [state] or state in self.parts or len(taken) < 2 or self.there[taken[1]]:
            return False
        return 0 < self.there[state] <= self.products[state]

    def _is_apart(self, operands: list[Key]) -> bool:
        """Whether this iteration computed one of two operands, and read nothing like the other."""
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
                self.results.add(key)
                self._begin(key)
            while self.there[key] < count and self.unknown_parts:
                self.unknown_parts -= 1
                self.give(key)
            if self.there[key] < count:
                self.entered.add(key)
