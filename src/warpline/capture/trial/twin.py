"""The rounding twin: the program with each weight moved by one rounding error, which shows what rounding alone does."""

from __future__ import annotations

from typing import Any

from warpline.capture.precision import convolutions_in_tf32, matmuls_in_tf32

TF32_STEP = 2.0**-10
"""Of two neighbouring numbers, relative: TF32 has a mantissa of ten bits."""


def move_by_rounding(torch: Any, module: Any) -> None:
    """Move each weight by up to one rounding error of the type in which the program computes with it."""
    convolutions = {id(one.weight) for one in module.modules() if isinstance(one, torch.nn.modules.conv._ConvNd)}
    for parameter in known_weights(torch, module):
        if parameter.is_floating_point():
            move_by(torch, parameter, rounding_step(torch, parameter, id(parameter) in convolutions), seed=0)


def known_weights(torch: Any, module: Any) -> list[Any]:
    """Its parameters, without those of lazy modules, which their first call makes."""
    return [parameter for parameter in module.parameters() if not torch.nn.parameter.is_lazy(parameter)]


def round_again(torch: Any, optimizer: Any, update: int) -> None:
    """Move each weight by up to one rounding error of its own type: an update, computed otherwise, rounds otherwise."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.is_floating_point():
                move_by(torch, parameter, float(torch.finfo(parameter.dtype).eps), seed=update)


def move_by(torch: Any, parameter: Any, step: float, seed: int) -> None:
    """Move each number by up to this part of it, drawn at random; of a sharded parameter, those of this rank."""
    with torch.no_grad():
        own = parameter.to_local() if hasattr(parameter, "to_local") else parameter
        if 0 in own.stride():
            return  # expanded: its numbers share their memory
        generator = torch.Generator(own.device).manual_seed(seed)
        noise = torch.rand(own.shape, generator=generator, device=own.device) * 2 - 1
        own.mul_(1 + step * noise)


def rounding_step(torch: Any, parameter: Any, is_convolution: bool) -> float:
    """The relative step of the type in which matmuls with this weight are computed: cuDNN takes TF32 by default."""
    step = float(torch.finfo(parameter.dtype).eps)
    kind = parameter.device.type
    # Before torch 2.4, autocast cannot be asked by device.
    if hasattr(torch, "get_autocast_dtype") and torch.is_autocast_enabled(kind):
        return max(step, float(torch.finfo(torch.get_autocast_dtype(kind)).eps))
    in_tf32 = convolutions_in_tf32(torch) if is_convolution else matmuls_in_tf32(torch)
    return max(step, TF32_STEP) if parameter.is_cuda and parameter.dtype == torch.float32 and in_tf32 else step
