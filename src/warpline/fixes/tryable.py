"""How `warpline try` makes a fix from outside: what it injects, where that cannot apply, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from warpline.capture.trial.use import ProgramUse

WhyNot = Callable[[ProgramUse], str | None]
"""Why the program has no use for a change, by what its first run showed; None if it may have."""


class TryableChange(Struct, frozen=True):
    """A change that is injected into an unchanged program and measured."""

    name: str
    """Of the change in `capture.trial.changes`."""
    does: str
    """In a few words: what differs from the program as it is."""
    lines: str
    """What to write into the program to have it."""
    why_not: WhyNot
    precision: str = ""
    """The data type that it computes in; empty if the arithmetic is the same up to its order."""
    compiles: bool = False
    """Whether it starts a compiler: it becomes ready late."""
    draws_otherwise: bool = False
    """Whether random ops give other numbers: a compiler's own, or the same ones at other places of a tensor."""
    is_bound: bool = False
    """Whether the changed program is not the same program: its time bounds what the fix can give."""
    part: str = ""
    """Where it makes only a part of the fix, so that the fix's prediction is not of it: of what the prediction is."""
    changes_batches: bool = False
    """Whether a loss is of other samples than before: results cannot be compared step by step."""
    environment: Mapping[str, str] = field(default_factory=dict)


def no_gpu(use: ProgramUse) -> str | None:
    """For changes that concern the GPU."""
    return None if use.on_gpu else "the program does not use a GPU"


def no_fp32_matmul(use: ProgramUse) -> str | None:
    """For changes of the precision."""
    return "the forward has no FP32 matmul" if use.matmuls and not use.matmuls.get("float32") else None


def no_convolution(use: ProgramUse) -> str | None:
    """For changes of images."""
    return None if any(module.convolutions for module in use.modules) else "the program calls no model with a Conv2d"


def no_module(use: ProgramUse) -> str | None:
    """For compilers."""
    if not any(module.parameters for module in use.modules):
        return "the program calls no module with parameters"
    return "the program compiles its modules itself" if all(module.is_compiled for module in use.modules) else None
