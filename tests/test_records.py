"""`warpline.records.dataclass` behaves as the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, asdict, field, fields, is_dataclass, replace
from typing import Any

import pytest

from warpline.records import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A frozen class with slots."""

    x: int
    y: int = 2
    names: list[str] = field(default_factory=list, hash=False, repr=False)

    def moved(self, by: int) -> Point:
        """Another point."""
        return replace(self, x=self.x + by)


@dataclass(slots=True)
class Total:
    """A class that changes, with a field that is computed."""

    parts: list[int]
    total: int = field(init=False)
    seen: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.total = sum(self.parts)


@dataclass(frozen=True)
class Shown:
    """A class with its own text."""

    value: int

    def __repr__(self) -> str:
        return f"<{self.value}>"


@dataclass(frozen=True, slots=True)
class Farther(Point):
    """A class with one more field."""

    z: int = 3


def _standard(**options: Any) -> type:
    kinds = [
        ("x", int),
        ("y", int, field(default=2)),
        ("names", list, field(default_factory=list, hash=False, repr=False)),
    ]
    return dataclasses.make_dataclass("Point", kinds, frozen=True, **options)


@pytest.mark.parametrize("arguments", [(1,), (1, 5), (1, 5, ["a"])])
def test_a_record_is_made_and_shown_as_one_of_the_standard_library(arguments: tuple[Any, ...]) -> None:
    mine, other = Point(*arguments), _standard()(*arguments)
    assert repr(mine) == repr(other)
    assert hash(mine) == hash(other)
    assert asdict(mine) == asdict(other)
    assert [one.name for one in fields(mine)] == [one.name for one in fields(other)]
    assert is_dataclass(mine)
    assert Point.__match_args__ == other.__match_args__


def test_equal_fields_of_one_class_make_equal_records() -> None:
    assert Point(1) == Point(1, 2, [])
    assert Point(1) != Point(2)
    assert Point(1) != Farther(1)
    assert Point(1).moved(2) == Point(3)
    assert Point(1).names is not Point(1).names


def test_a_frozen_record_refuses_changes_and_other_attributes() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    assert not hasattr(point, "__dict__")


def test_a_record_that_changes_has_no_hash_and_computes_its_fields() -> None:
    total = Total([1, 2])
    assert (total.total, total.seen) == (3, False)
    total.seen = True
    assert repr(total) == "Total(parts=[1, 2], total=3, seen=True)".replace("Total", Total.__qualname__)
    with pytest.raises(TypeError):
        hash(total)
    with pytest.raises(TypeError):
        Total([1], 2)  # type: ignore[call-arg]


def test_own_methods_stay_and_fields_are_inherited() -> None:
    assert repr(Shown(4)) == "<4>"
    assert Farther(1, 2, ["a"], 4) == Farther(x=1, y=2, names=["a"], z=4)
    assert [one.name for one in fields(Farther)] == ["x", "y", "names", "z"]


@pytest.mark.parametrize("record", [Point(1, 2, ["a"]), Shown(3), Total([1])])
def test_records_are_copied_and_pickled(record: Any) -> None:
    assert copy.copy(record) == copy.deepcopy(record) == record
    assert pickle.loads(pickle.dumps(record)) == record
