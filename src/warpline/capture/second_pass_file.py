"""The file of a second pass, `NAME.look.json.gz`: which tensors each op took and made, and the lines of Python calls.

It is made of what torch's execution-trace observer writes, without the values of arguments and without names that the
program gives: only ops, ids, shapes, types and devices are kept.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from warpline.capture.process_record import file_beside
from warpline.capture.recorders import LINES
from warpline.capture.second_pass import DONE, OBSERVED, STACKS, STEP_MARK

SCHEMA = "warpline.look/1"
LOOK = ".look.json.gz"
COMPRESSION = 3
USER_SCOPE = 7
"""torch's RecordScope of record_function and of the observer's own nodes."""
TENSOR_FIELDS = 6
"""Tensor id, storage id, offset, elements, bytes per element, device."""
DTYPE = re.compile(r"Tensor\(([^()]*)\)")
READ, WRITE, UPDATE, MAKE, VIEW = "read", "write", "update", "make", "view"
ACCESSES = (READ, WRITE, UPDATE, MAKE, VIEW)
OVERWRITING = re.compile(
    r"aten::(copy_|_copy_from\w*|zero_|fill_|normal_|uniform_|random_|bernoulli_|exponential_|_foreach_(copy|zero)_)"
)
"""Ops that write their first argument without reading it."""


def write_second_pass(folder: Path, part: dict[str, Any]) -> None:
    """Put the files of a second pass together, name the result in the process's report, and remove the rest."""
    trace = str(part["file"])
    observed, lines = folder / file_beside(trace, OBSERVED), folder / file_beside(trace, LINES)
    of_stacks = folder / file_beside(trace, file_beside(STACKS, LINES))
    look = part["look"] or {"state": DONE, "steps": 0, "stacks_file": None, "file": None, "notes": []}
    content: dict[str, Any] = {"schema": SCHEMA}
    try:
        if observed.exists() and look["state"] == DONE:
            content.update(flow_of(observed))
        for file in (lines, of_stacks):
            if file.exists():
                content["lines"] = json.loads(file.read_text(encoding="ascii"))
        if len(content) > 1:
            target = folder / file_beside(trace, LOOK)
            with gzip.open(target, "wt", encoding="utf-8", compresslevel=COMPRESSION) as packed:
                json.dump(content, packed, separators=(",", ":"))
            part["look"] = {**look, "file": target.name}
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        part["look"] = {**look, "notes": [*look["notes"], f"{type(error).__name__}: {str(error)[:200]}"]}
    for left in (observed, lines, of_stacks):
        with contextlib.suppress(OSError):
            left.unlink()


def flow_of(observed: Path) -> dict[str, Any]:
    """The calls and tensors of the observer's file, as columns."""
    nodes = nodes_of(observed.read_text(encoding="utf-8", errors="replace"))
    return flow_of_nodes(nodes, lambda name: name.startswith(STEP_MARK))


def flow_of_nodes(nodes: Iterable[dict[str, Any]], is_step: Callable[[str], bool]) -> dict[str, Any]:
    """The same of its nodes, with what names the start of a step."""
    calls, tensors = _ColumnWriter("op", "thread", "parent", "step", "record_function"), _ColumnWriter(
        "call", "argument", "output", "access", "tensor", "storage", "offset", "elements", "extent", "item_bytes",
        "shape", "dtype", "device",
    )  # fmt: skip
    call_of: dict[int, int] = {}
    step = -1
    for node in sorted(nodes, key=lambda node: int(node["id"])):
        facts = {each["name"]: each["value"] for each in node.get("attrs", ())}
        above = call_of.get(int(node["ctrl_deps"]), -1)
        if facts.get("scope") == USER_SCOPE:
            step += is_step(str(node["name"]))
            call_of[int(node["id"])] = above
            continue
        number = call_of[int(node["id"])] = len(calls)
        name = calls.code("ops", str(node["name"]))
        calls.add(name, int(facts.get("tid", 0)), above, step, int(facts.get("rf_id", 0)))
        for row in _tensors(node, str(facts.get("op_schema", ""))):
            shape, dtype, device = (tensors.code(*pair) for pair in zip(("shapes", "dtypes", "devices"), row[-3:]))  # noqa: B905
            tensors.add(number, *row[:-3], shape, dtype, device)
    return {"calls": calls.content, "tensors": tensors.content}


class _ColumnWriter:
    """Rows as columns, with texts as numbers."""

    def __init__(self, *names: str) -> None:
        self._columns: tuple[list[int], ...] = tuple([] for _ in names)
        self._codes: dict[str, dict[str, int]] = {}
        self.content: dict[str, list[Any]] = dict(zip(names, self._columns))  # noqa: B905 - Python 3.9

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, *values: int) -> None:
        for column, value in zip(self._columns, values):  # noqa: B905 - Python 3.9
            column.append(value)

    def code(self, of: str, text: str) -> int:
        """The text's position in the list of that name."""
        known = self._codes.setdefault(of, {})
        if text not in known:
            known[text] = len(known)
            self.content.setdefault(of, []).append(text)
        return known[text]


def nodes_of(text: str) -> Iterator[dict[str, Any]]:
    """The nodes of the observer's file; of a damaged one, those before the damage."""
    decoder = json.JSONDecoder()
    position = text.index('"nodes"')
    position = text.index("[", position) + 1
    while (position := text.find("{", position)) >= 0:
        try:
            node, position = decoder.raw_decode(text, position)
        except ValueError:
            return
        yield node


def _tensors(node: dict[str, Any], schema: str) -> Iterator[tuple[Any, ...]]:
    """Argument, whether it is an output, access, ids, offset, elements, bytes an element, shape, dtype, device."""
    written = _written_arguments(schema, str(node["name"]))
    taken: dict[int, str] = {}
    for output in (False, True):
        side = node["outputs" if output else "inputs"]
        values = side["values"]
        strides = side.get("strides") or [None] * len(values)  # torch 2.4 and older do not say
        for position, (value, *sizes) in enumerate(zip(values, side["shapes"], strides)):  # noqa: B905 - Python 3.9
            dtypes = DTYPE.findall(str(side["types"][position]))
            for at, (tensor, size, steps) in enumerate(_flat(value, *sizes)):
                number, storage, offset, elements, item, device = tensor
                if output:
                    access = taken.get(storage, MAKE)
                    access = VIEW if access == READ else access
                else:
                    access = written.get(position, READ)
                    taken[storage] = access if taken.get(storage, READ) == READ else taken[storage]
                dtype = dtypes[at] if at < len(dtypes) else ""
                yield (
                    position, int(output), ACCESSES.index(access), number, storage, offset, elements,
                    _extent(size, steps, elements), item,
                    json.dumps(size, separators=(",", ":")), dtype, str(device),
                )  # fmt: skip


def _flat(value: Any, shape: Any, strides: Any) -> Iterator[tuple[list[Any], Any, Any]]:
    """The tensors within an argument, with their shapes and strides: it may be a list of them."""
    if not isinstance(value, list):
        return
    if len(value) == TENSOR_FIELDS and isinstance(value[-1], str) and all(isinstance(part, int) for part in value[:-1]):
        yield value, shape, strides
        return
    inner = [part if isinstance(part, list) and len(part) == len(value) else [None] * len(value)
             for part in (shape, strides)]  # fmt: skip
    for part, *sizes in zip(value, *inner):  # noqa: B905 - Python 3.9
        yield from _flat(part, *sizes)


def _extent(shape: Any, strides: Any, elements: int) -> int:
    """Elements of the storage from the tensor's first to its last; all between them may be another tensor's."""
    if not isinstance(shape, list) or not isinstance(strides, list) or len(shape) != len(strides) or not elements:
        return elements
    return 1 + sum((int(size) - 1) * abs(int(step)) for size, step in zip(shape, strides))  # noqa: B905 - Python 3.9


@functools.cache
def _written_arguments(schema: str, name: str) -> dict[int, str]:
    """Which arguments the op writes, by the marks in its schema: `Tensor(a!) self`."""
    if not schema:
        return {0: UPDATE} if name.endswith("_") else {}
    arguments = schema.partition("->")[0].partition("(")[2]
    found, depth, position, start = {}, 0, 0, 0
    for at, letter in enumerate(arguments):
        depth += (letter in "([") - (letter in ")]")
        if (letter == "," and not depth) or depth < 0:
            text = arguments[start:at].strip()
            start = at + 1
            if text == "*":
                continue
            if "!" in text:
                out_only = text.endswith(" out") or bool(OVERWRITING.fullmatch(name))
                found[position] = WRITE if out_only else UPDATE
            position += 1
    return found
