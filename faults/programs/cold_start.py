"""Cause `cold_start`: loading, compiling and tuning inside the steps that are measured.

The stopwatch covers the first steps after the step is built; the fix is the same steps after a warm-up.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights

STEPS = 5
_NUMBERS = itertools.count(1)
"""Numbers never used before: shapes that no cache of this process has seen."""


def _new_constant() -> float:
    """A number that no cache on disk has seen either, so that code with it is compiled anew."""
    return 1.0 + time.time_ns() % 1_000_000_007 / 1e10


def _warmed(torch: Any, step: Step, fix: str | None) -> Step:
    """The step, with all of its shapes run once if fixed."""
    if fix:
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
    return step


@planted("cold_start", "warm_up", steps=STEPS, own_process=True)
def first_calls(torch: Any, fix: str | None) -> Step:
    """The first steps of a process: kernels are loaded when first used, and the libraries make their handles.

    None of it happens again, so a measurement begins after it.
    """
    functional = torch.nn.functional
    images = torch.randn(16, 32, 64, 64, device="cuda")
    filters = torch.randn(32, 32, 3, 3, device="cuda") * 0.05
    (weight,) = weights(torch, 1, 64, 64)

    def step() -> Any:
        y = functional.gelu(functional.conv2d(images, filters, padding=1))  # planted
        y = torch.softmax(y @ weight, -1)  # planted
        y = functional.scaled_dot_product_attention(y, y, y)  # planted
        return torch.topk(y.flatten(1), 8).values.sum()  # planted

    return _warmed(torch, step, fix)


@planted("cold_start", "warm_up", steps=STEPS, stacks=False)
def compile_in_the_first_step(torch: Any, fix: str | None) -> Step:
    """`torch.compile` compiles when its function is first called, which is in the first measured step.

    Every later step runs the compiled kernel.
    """
    torch._dynamo.reset()
    x = torch.randn(4096, 4096, device="cuda")
    scale = _new_constant()
    tanh = torch.tanh

    def curve(x: Any) -> Any:
        return tanh(x * scale) + x * x - 0.5

    function = torch.compile(curve, dynamic=False)

    def step() -> Any:
        return function(x)  # planted

    return _warmed(torch, step, fix)


@planted("cold_start", "warm_up", steps=STEPS, stacks=False)
def recompile_for_every_length(torch: Any, fix: str | None) -> Step:
    """A compiled function meets a new sequence length in every step, and is compiled for static shapes.

    Each length is compiled for once; lengths that were warmed up (or padded to a few sizes) cost nothing more.
    """
    torch._dynamo.reset()
    scale = _new_constant()
    lengths = itertools.cycle([torch.randn(512 + 64 * index, 2048, device="cuda") for index in range(STEPS)])
    tanh = torch.tanh

    def curve(x: Any) -> Any:
        return tanh(x * scale) * x

    function = torch.compile(curve, dynamic=False, options={"triton.autotune_pointwise": False})

    def step() -> Any:
        return function(next(lengths))  # planted

    return _warmed(torch, step, fix)


@planted("cold_start", "warm_up", steps=STEPS)
def tuning_for_every_shape(torch: Any, fix: str | None) -> Step:
    """`cudnn.benchmark` is on and every step brings images of a new size.

    Each size is tried with every algorithm first; with sizes that were seen before there is nothing to try.
    """
    torch.backends.cudnn.benchmark = True
    conv = torch.nn.functional.conv2d
    filters = [(torch.randn(64, 64, 3, 3, device="cuda") * 0.04).to(torch.bfloat16) for _ in range(2)]
    sizes = [8] + [32 + next(_NUMBERS) for _ in range(STEPS)]
    known, *new = [torch.randn(16, 64, size, 64, device="cuda", dtype=torch.bfloat16) for size in sizes]
    conv(known, filters[0], padding=1)  # loads the library, which is not this case's fault
    images = itertools.cycle(new)

    def step() -> Any:
        y = next(images)
        for weight in filters:
            y = torch.relu(conv(y, weight, padding=1))  # planted
        return y

    return _warmed(torch, step, fix)


@planted("cold_start", "warm_up", steps=STEPS)
def attention_planned_for_every_length(torch: Any, fix: str | None) -> Step:
    """Attention through cuDNN meets a sequence of a new length in every step.

    cuDNN builds a plan for each new shape, which takes tens of milliseconds of CPU; a length that was seen before
    has its plan.
    """
    attention = torch.nn.functional.scaled_dot_product_attention
    backend = torch.nn.attention.SDPBackend.CUDNN_ATTENTION
    lengths = [512] + [512 + 8 * next(_NUMBERS) for _ in range(STEPS)]
    known, *new = [torch.randn(4, 8, length, 64, device="cuda", dtype=torch.bfloat16) for length in lengths]
    inputs = itertools.cycle(new)

    def step(x: Any = None) -> Any:
        x = next(inputs) if x is None else x
        with torch.nn.attention.sdpa_kernel(backend):
            return attention(x, x, x)  # planted

    step(known)
    return _warmed(torch, step, fix)
