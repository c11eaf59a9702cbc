"""The Python API on an input: every way in, with nothing but a WarplineError allowed out."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import warpline
from tests.fuzz import values
from warpline.findings.diagnosis import diagnose
from warpline.reports.page.document import ServedPage
from warpline.trace.schema import TABLES

Function = Callable[[Path, random.Random], object]
FUNCTIONS: dict[str, Function] = {}


def function(given: Function) -> Function:
    """Registers a function under its name."""
    FUNCTIONS[given.__name__] = given
    return given


@function
def looks(path: Path, chance: random.Random) -> object:
    """What a notebook shows."""
    trace = warpline.open(path, cache=False)
    return repr(trace), trace._repr_html_(), trace.steps.summary, trace.window, trace.step_ns, json.dumps(trace.facts)


@function
def tables(path: Path, chance: random.Random) -> object:
    """Every table, as polars and as pandas."""
    trace = warpline.open(path, cache=False)
    name = chance.choice(list(TABLES))
    pandas = len(trace.to_pandas(name)) if find_spec("pandas") and find_spec("pyarrow") else None
    return [(table, trace.table(table).shape, str(trace.table(table).head(3))) for table in TABLES], pandas


@function
def diagnosis(path: Path, chance: random.Random) -> object:
    """The diagnosis as an object."""
    found = warpline.open(path, cache=False).diagnose(chance.choice([True, None]))
    return json.dumps(found.to_dict(), allow_nan=False, default=str), repr(found), found._repr_html_()


@function
def some_steps(path: Path, chance: random.Random) -> object:
    """A trace of some steps."""
    trace = warpline.open(path, cache=False)
    count = len(trace.steps)
    if not count:
        return None
    first = chance.randrange(count)
    part = trace.steps[first : first + 2]
    return part.table("gpu").shape, part.stats("cuda_gpu_kern_sum").shape, part.diagnose(False).to_dict()


@function
def predictions(path: Path, chance: random.Random) -> object:
    """Each fix alone."""
    return [found.to_dict() for found in warpline.open(path, cache=False).every_fix()]


@function
def served_page(path: Path, chance: random.Random) -> object:
    """What `warpline view` serves: the page, and the rows of any part of it."""
    page = ServedPage(diagnose(warpline.open(path, cache=False), chance.choice([False, None])))
    moments = [values.number(chance) for _ in range(4)]
    times = [int(one) for one in moments if isinstance(one, int) and abs(one) < 1 << 63]
    return len(page.document()), [len(page.rows(start, end)) for start in times for end in times]


@function
def other_tables(path: Path, chance: random.Random) -> object:
    """The roofline, the path of ops, and a query."""
    trace = warpline.open(path, cache=False)
    roofline = trace.roofline(by=chance.choice(["op", "kernel"]))
    return roofline.table.shape, repr(roofline), trace.path().shape, trace.sql("select count(*) from gpu").rows()
