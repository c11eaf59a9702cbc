"""Decode a kernel's name: the families in order of precedence, and the cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from msgspec.structs import replace

from warpline.kernels import (
    aiter_kernels,
    aten,
    attention,
    collectives,
    compilers,
    composable_kernel,
    cublas,
    cudnn,
    cutlass_named,
    cutlass_templates,
    handtuned,
    inductor,
    lexicon,
    memory_operations,
    miopen,
    nvjet,
    optimizers,
    primitives,
    quantised,
    rocm_math,
    serving,
    tensile,
    xmma,
)
from warpline.kernels.draft import Draft
from warpline.kernels.identity import KernelIdentity
from warpline.kernels.normalise import NormalName, normalise
from warpline.kernels.remarks import remarks_of

CACHE_SIZE = 1 << 20
"""Distinct names cached: more than one trace has, since several passes over more than this would decode all again."""

FAMILIES: tuple[Callable[[NormalName], Draft | None], ...] = (
    memory_operations.decode,
    nvjet.decode,
    cutlass_named.decode,
    handtuned.decode,
    xmma.decode,
    compilers.decode,
    inductor.decode,
    collectives.decode,
    primitives.decode,
    rocm_math.decode,
    optimizers.decode,
    aiter_kernels.decode,
    attention.decode,
    aten.decode,
    cutlass_templates.decode,
    cudnn.decode,
    quantised.decode,
    tensile.decode,
    miopen.decode,
    composable_kernel.decode,
    serving.decode,
    cublas.decode,
    lexicon.decode,
)
"""Specific grammars come before general ones; the lexicon comes last and always answers."""


@lru_cache(maxsize=CACHE_SIZE)
def identify(name: str, device_arch: str | None = None) -> KernelIdentity:
    """Decode a kernel's name. Never raises; what the name does not prove stays ``None``.

    ``device_arch`` (``sm90``) adds remarks on how the kernel fits the device it ran on.

    >>> warpline.identify("cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4").tensor_core
    True
    """
    normal = normalise(name)
    for family in FAMILIES:
        draft = family(normal)
        if draft is not None:
            if normal.truncated and normal.dialect == "mangled":
                # A truncated mangled name is only scanned, which loses built-in types.
                draft.dtype.clear()
                draft.reasons.pop("dtype", None)
            identity = draft.build(name, normal.truncated)
            remarks = remarks_of(identity, device_arch)
            return replace(identity, remarks=(*identity.remarks, *remarks)) if remarks else identity
    raise AssertionError("the lexicon answers every name")
