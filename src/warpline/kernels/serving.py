"""Kernels of serving and training libraries, by identifier: vLLM, SGLang, FlashInfer, TensorRT-LLM,
TransformerEngine, apex, FBGEMM, xformers, torchao, torchvision, Triton kernels in common use.

The identifier decides, never the namespace alone: SGLang's sit in an anonymous namespace.
"""

from __future__ import annotations

import re

from warpline.kernels.catalogue import Catalogue, CatalogueEntry
from warpline.kernels.draft import Draft
from warpline.kernels.grammar import inside
from warpline.kernels.inductor import SPECIALISATION
from warpline.kernels.normalise import NormalName, split_arguments
from warpline.kernels.types import dtype_of

_TABLE = Catalogue("serving")
_LIBRARIES = (
    ("vllm::", "vllm"),
    ("sglang::", "sglang"),
    ("sgl_hip::", "sglang"),
    ("flashinfer::", "flashinfer"),
    ("tensorrt_llm::", "tensorrt-llm"),
    ("moe::dev::", "tensorrt-llm"),
    ("transformer_engine::", "transformer-engine"),
    ("fbgemm_gpu::", "fbgemm"),
    ("split_embedding", "fbgemm"),
    ("layer_norm::", "flash-attn"),
    ("vision::", "torchvision"),
    ("CUTENSOR_NAMESPACE::", "cutensor"),
    ("genericReformat::", "tensorrt"),
    ("tensorflow::", "tensorflow"),
    ("aiter::", "aiter"),
)
_FLOATS = ("f16", "bf16", "f32", "f64", "e4m3", "e5m2")
_INDICES = ("index", "memory", "moe", "layout", "other", "sort_scan")
_MATMUL_OGS = re.compile(
    r"_p?_?matmul_ogs_[NT]{3}_((?:mx)?+[a-wyz0-9]{1,12}+)x((?:mx)?+[a-wyz0-9]{1,12}+)x((?:mx)?+[a-wyz0-9]{1,12}+)_"
    r"([0-9]{1,4}+x[0-9]{1,4}+x[0-9]{1,4}+)x([0-9]{1,4}+)"
)
"""Three data types (bf16, mxfp4), a tile and split-K."""


def decode(name: NormalName) -> Draft | None:
    """Kernels known by their identifier, whatever their namespace."""
    base = SPECIALISATION.sub("", name.base) if name.base[-1:] in "dce" else name.base
    entry = _TABLE.find(base)
    if entry is None and name.truncated and not name.arguments and len(base) > 12:
        entry = _TABLE.complete(base)
    if entry is None:
        return None
    if entry.op == "activation" and "quant" in base:
        entry = CatalogueEntry("quant", "activation_quant")
    draft = Draft("known identifier", _library(name))
    draft.token(f"{name.scope}{base}", entry.op.replace("_", " "))
    draft.kind(entry.kernel_class, entry.op, f"{base}: {entry.op.replace('_', ' ')}", tensor_core=entry.tensor_core)
    if entry.either:
        draft.leave_units_open()
    draft.set("direction", entry.direction, base)
    if "rms" in base.lower() and entry.op == "layer_norm":
        draft.set("op", "rms_norm", base)
    _types(draft, name, entry.kernel_class)
    return draft


def _library(name: NormalName) -> str | None:
    text = name.text
    for mark, library in _LIBRARIES:
        if text.startswith(mark) or mark in name.scope:
            return library
    return None


def _types(draft: Draft, name: NormalName, kernel_class: str) -> None:
    traits = inside(name.arguments, "Kernel_traits<") or inside(name.arguments, "Kernel_traits_finalize<")
    if traits is not None:
        _traits(draft, traits)
        return
    if (found := _MATMUL_OGS.match(name.base)) is not None:
        out, first, second, tile, split = found.groups()
        draft.types("types of Y, X and W", out=dtype_of(out), a=dtype_of(first), b=dtype_of(second))
        draft.set("tile", tile, "block M x N x K")
        draft.set("split_k", int(split) > 1, "the last number is split-K")
        return
    parts = split_arguments(inside(name.arguments, "KernelParams<") or name.arguments)
    kinds = [kind for part in parts if (kind := dtype_of(part)) is not None]
    floats = [kind for kind in kinds if kind in _FLOATS]
    if not floats or (kernel_class in _INDICES and kinds and kinds[0] not in _FLOATS):
        return
    draft.types("first floating-point type argument", a=floats[0])
    if kernel_class == "quant" and len(floats) > 1 and floats[1] != "f32":
        draft.types("second floating-point type argument", out=floats[1])


def _traits(draft: Draft, traits: str) -> None:
    """``Kernel_traits<weight, input, [residual,] output, compute, unsigned int, …>``."""
    kinds: list[str] = []
    for part in split_arguments(traits):
        kind = dtype_of(part)
        if kind in ("u32", "s32"):
            break
        if kind is not None:
            kinds.append(kind)
    if len(kinds) >= 4:
        draft.types("types of the traits: weight, input, output, compute", a=kinds[1], out=kinds[-2], acc=kinds[-1])
