"""Everything that can be tried: the changes that fixes declare, and settings that only a measurement can judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from msgspec import Struct

from warpline.capture.trial.use import ProgramUse
from warpline.errors import UsageError, meant
from warpline.fixes.registry import all_fixes
from warpline.fixes.tryable import TryableChange, no_convolution, no_gpu

EXPANDABLE = "expandable_segments:True"


class Candidate(Struct, frozen=True):
    """A change to try, with the fix that it makes."""

    name: str
    """The change's name, with its value: `threads=4`."""
    change: TryableChange
    fix: str | None
    """None if no fix predicts it."""


def _no_cudnn(use: ProgramUse) -> str | None:
    return no_gpu(use) or no_convolution(use) or ("it is on already" if use.cudnn_benchmark else None)


def _no_threads(use: ProgramUse) -> str | None:
    if use.on_gpu:
        return "the ops run on the GPU"
    return None if use.threads > 1 else "an op has one thread already"


SETTINGS = (
    TryableChange(
        "static_cache",
        "generate() with a static KV cache, whose decoding step is compiled",
        "model.generate(…, cache_implementation='static')",
        lambda use: None if use.generate_calls else "generate() was not called",
        compiles=True,
        draws_otherwise=True,
    ),
    TryableChange(
        "set_to_none",
        "zero_grad() frees the gradients instead of writing zeros",
        "optimizer.zero_grad(set_to_none=True)",
        lambda use: None if use.gradients_kept else "zero_grad(set_to_none=False) was not called",
    ),
    TryableChange(
        "cudnn_benchmark",
        "cuDNN measures its algorithms and keeps the fastest",
        "torch.backends.cudnn.benchmark = True",
        _no_cudnn,
    ),
    TryableChange(
        "allocator",
        "the allocator's segments grow",
        f"PYTORCH_CUDA_ALLOC_CONF={EXPANDABLE}",
        no_gpu,
        environment={"PYTORCH_CUDA_ALLOC_CONF": EXPANDABLE, "PYTORCH_ALLOC_CONF": EXPANDABLE},
    ),
    TryableChange("no_gc", "Python's garbage collector stands still", "gc.freeze(); gc.disable()", lambda use: None),
    TryableChange("threads", "half of the threads for an op", "torch.set_num_threads(N)", _no_threads),
)
"""No trace shows what these would change, so no fix predicts them."""
NOTHING = TryableChange("nothing", "nothing: the error of the measurement", "", lambda use: None)
"""Tried only where it is asked for."""


@cache
def tryable() -> Mapping[str, tuple[TryableChange, str | None]]:
    """All changes by name, each with its fix; compilers last, because they start late."""
    declared = [(change, fix.name) for fix in all_fixes().values() for change in fix.tried]
    every = [*declared, *((change, None) for change in SETTINGS)]
    ordered = sorted(every, key=lambda one: one[0].compiles)
    return {change.name: (change, fix) for change, fix in ordered}


def candidates(asked: Iterable[str]) -> list[Candidate]:
    """What to try: the changes asked for by their own name or the fix's, in that order, each once; without any, all."""
    known = {**tryable(), NOTHING.name: (NOTHING, None)}
    names = list(dict.fromkeys(asked)) or list(tryable())
    found = [one for name in names for one in _named(name, known)]
    return list({one.name: one for one in found}.values())


def _named(name: str, known: Mapping[str, tuple[TryableChange, str | None]]) -> list[Candidate]:
    word, equals, _ = name.partition("=")
    found = [Candidate(own, *pair) for own, pair in known.items() if own == word or (pair[1] == word and not equals)]
    if found:
        return [Candidate(name, found[0].change, found[0].fix)] if equals else found
    fix = all_fixes().get(word)
    if fix is not None:
        raise UsageError(
            "cannot-try", f"{word} cannot be made from outside: {fix.not_tried}", "see warpline try --help"
        )
    raise UsageError("unknown-fix", f"there is no fix {word!r} to try", meant(word, known))
