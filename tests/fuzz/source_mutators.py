"""Damage to programs: pieces that are deep, many, odd or in another place, most of them still valid Python."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.fuzz import values

Mutation = Callable[[list[str], random.Random], None]
MUTATIONS: dict[str, Mutation] = {}
EXPRESSIONS = [
    "x.item()",
    "torch.cuda.synchronize()",
    "model(x.cuda()).cpu()",
    "time.time() - begin",
    "torch.cat([x, x])",
    "x[x > 0].nonzero()",
    "x.to(device, non_blocking=True)",
    "start.elapsed_time(end)",
    "kernel[grid](x, N=x.shape[0])",
]
WRAPPED: dict[str, Callable[[str, int], str]] = {
    "attributes": lambda inner, depth: inner + ".a" * depth,
    "calls": lambda inner, depth: inner + ".cpu()" * depth,
    "indices": lambda inner, depth: inner + "[0]" * depth,
    "negated": lambda inner, depth: "not " * depth + inner,
    "lists": lambda inner, depth: "[" * depth + inner + "]" * depth,
    "lambdas": lambda inner, depth: "lambda: " * depth + inner,
    "choices": lambda inner, depth: "1 if x else " * depth + inner,
    "sum": lambda inner, depth: " + ".join([inner] * depth),
    "comparison": lambda inner, depth: " < ".join([inner] * depth),
    "formatted": lambda inner, depth: "f'{" + inner + "!r:>{" + inner + "}}'",
    "comprehension": lambda inner, depth: f"[{inner} {'for x in x ' * min(depth, 18)}]",
}


def mutation(function: Mutation) -> Mutation:
    """Registers a mutation under its name."""
    MUTATIONS[function.__name__] = function
    return function


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


@mutation
def wrapped_expression(lines: list[str], chance: random.Random) -> None:
    """A statement with an expression that is deep or long."""
    at = chance.randint(0, len(lines))
    made = WRAPPED[chance.choice(list(WRAPPED))](chance.choice(EXPRESSIONS), chance.choice([2, 20, 80, 300, 3000]))
    lines.insert(at, f"{_indent(lines[at - 1]) if at else ''}{chance.choice(['', 'y = ', 'return ', 'x += '])}{made}")


@mutation
def repeated_statement(lines: list[str], chance: random.Random) -> None:
    """A line many times."""
    if lines:
        at = chance.randrange(len(lines))
        lines[at:at] = [lines[at]] * chance.choice([2, 30, 600])


@mutation
def deep_blocks(lines: list[str], chance: random.Random) -> None:
    """The rest of the program within blocks."""
    at, heads = (
        chance.randint(0, len(lines)),
        ["for x in xs:", "if x % 2:", "with timer():", "while x:", "def f(x):", "try:"],
    )
    before = _indent(lines[at]) if at < len(lines) else ""
    depth = chance.choice([1, 5, 18, 60, 110])
    blocks = [before + " " * number + chance.choice(heads[:-1]) for number in range(depth)]
    lines[at:] = [*blocks, *(" " * depth + line for line in lines[at:] or ["pass"])]


@mutation
def other_order(lines: list[str], chance: random.Random) -> None:
    """Two lines exchanged, or one with the indentation of another."""
    if len(lines) > 1:
        one, other = chance.sample(range(len(lines)), 2)
        if chance.random() < 0.5:
            lines[one], lines[other] = lines[other], lines[one]
        else:
            lines[one] = _indent(lines[other]) + lines[one].lstrip()


@mutation
def odd_token(lines: list[str], chance: random.Random) -> None:
    """An odd number, text, name or encoding in a line of its own."""
    odd = [
        f"y = {'9' * chance.choice([5, 4300, 5000])}",
        f"y = {values.text(chance)[:2000]!r}",
        "# -*- coding: " + chance.choice(["latin-1", "utf-16", "x", "utf-8-sig", "rot13"]) + " -*-",
        f"import {'.'.join('abc' * chance.choice([1, 90]))} as torch",
        "from __future__ import " + chance.choice(["annotations", "braces"]),
        "class A(A): __exit__ = A.__exit__",
        "x = y = z = *a, b = (c := x.item()), *d",
        "\x0c\t y = 1",
        "# warpline: ignore[" + chance.choice(["", "sync-in-loop", "*", "[" * 50, ",,"]) + "]",
        "def f(x, /, *, y=x.item(), **z) -> x.cuda(): return f(f)",
        "type X[T: int] = list[T]",
        "global x; nonlocal y; await z; yield",
    ]
    at = chance.randint(0, len(lines))
    lines.insert(at, (_indent(lines[at - 1]) if at else "") + chance.choice(odd))
