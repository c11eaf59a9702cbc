"""The functor of an ATen elementwise, reduction or foreach kernel, which says what it computes."""

from __future__ import annotations

import re

from msgspec import Struct

from warpline.kernels.grammar import head, inside
from warpline.kernels.normalise import split_arguments
from warpline.kernels.types import dtype_of

_SUFFIXES = (
    "_kernel_cuda",
    "_cuda_kernel",
    "_kernel_impl",
    "_kernel",
    "CUDAKernelImpl",
    "KernelImplInternal",
    "KernelImpl",
    "Kernel",
    "Functor",
    "_functor",
    "Ops",
    "_cuda_out",
    "_cuda",
)
_LAMBDA = re.compile(r"\{lambda\(([^{}]*)\)#\d+\}")
_IMPL = re.compile(r"\b(gpu_kernel_impl_nocast|gpu_kernel_impl|gpu_index_kernel|apply)<")
_COPY = re.compile(r"(?:direct|conj|neg)_?copy$|(?=\w*?float)\w*+(?<=copy)$|\w*+(?<=_copy)$|copy$|cast$")
_CLASSES = (
    ("memory", ("fill", "fill_functor", "launch_vectorized_templated_copy", "copy_op", "copy")),
    (
        "index",
        ("masked_scatter", "launch_masked_scatter", "index_put", "index", "take", "put", "index_fill", "index_copy"),
    ),
    ("rng", ("bernoulli", "uniform", "normal", "random", "exponential", "cauchy", "geometric", "log_normal")),
    ("quant", ("float_to_hfp8", "hfp8_to_float", "fake_quant", "quantize", "dequantize", "fake_quantize")),
)
_RENAMED = {
    "CUDAFunctor_add": "add",
    "CUDAFunctorOnSelf_add": "add_scalar",
    "CUDAFunctorOnOther_add": "add_scalar",
    "launch_clamp_scalar": "clamp",
    "clamp_min_scalar": "clamp_min",
    "clamp_max_scalar": "clamp_max",
    "direct_copy_kernel_cuda": "copy",
    "copy_device_to_device": "copy",
    "bfloat16_copy_kernel_cuda": "cast",
    "bfloat16tofloat32_copy_kernel_cuda": "cast",
    "float16_copy_kernel_cuda": "cast",
    "float8_copy_kernel_cuda": "cast",
    "GeluCUDAKernelImpl": "gelu",
    "GeluBackwardCUDAKernelImpl": "gelu_backward",
    "pow_tensor_scalar": "pow",
    "pow_tensor_tensor": "pow",
    "NormTwo": "norm2",
    "Welford": "var",
    "and": "all",
    "or": "any",
    "MaxNan": "max",
    "MinNan": "min",
    "compare_scalar": "compare",
    "CompareEq": "eq",
}


class Functor(Struct, frozen=True):
    """A functor: its identifier, the op it stands for, the class, and the types it is built for."""

    name: str
    op: str
    kernel_class: str
    a: str | None = None
    b: str | None = None
    out: str | None = None


def read_functor(text: str, cut: bool = False) -> Functor | None:
    """Read the functor of an elementwise kernel, unwrapping ``gpu_kernel_impl<…>::{lambda(int)#1}``.

    In a truncated name, an identifier that runs to the end is not used.
    """
    wrapped = _IMPL.search(text[:200])
    if wrapped is not None:
        text = inside(text[wrapped.start() :], wrapped.group()) or ""
    text = text.removeprefix("void ").strip()
    name = head(text)
    if not name or (cut and text.endswith(name)):
        return None
    if name in ("BinaryFunctor", "AUnaryFunctor", "BUnaryFunctor"):
        return _binary(text, name)
    if name.startswith("CUDAFunctor"):
        kind = dtype_of(inside(text, f"{name}<") or "")
        scalar = "On" in name
        return Functor(name, op_name(name), "elementwise", kind, None if scalar else kind, kind)
    if name == "FillFunctor":
        return Functor(name, "fill", "memory", out=dtype_of(inside(text, "FillFunctor<") or ""))
    op = op_name(name)
    kernel_class = class_of(op, name)
    a = b = out = None
    lambdas = _LAMBDA.findall(text)
    if lambdas:
        types = [dtype_of(part) for part in split_arguments(lambdas[-1])]
        if name.startswith("where"):
            types = types[1:]
        if types and "masked_fill" not in name:
            a, b = types[0], types[1] if len(types) == 2 else None
    elif (argument := inside(text, f"{name}<")) is not None:
        types = [dtype_of(part) for part in split_arguments(argument)]
        a = types[0] if types else None
        if name.startswith("Compare"):
            b, out = a, "bool"
        elif name in ("AbsFunctor",):
            out = a
    return Functor(name, op, kernel_class, a, b, out)


def _binary(text: str, name: str) -> Functor:
    parts = split_arguments(inside(text, f"{name}<") or "")
    inner = parts[-1] if parts else ""
    inner_name = head(inner.removeprefix("void "))
    if len(parts) < 4:
        return Functor(name, op_name(inner_name) if len(parts) == 1 and inner_name else "binary", "elementwise")
    a, b, out = (dtype_of(part) for part in parts[:3])
    return Functor(inner_name, op_name(inner_name), "elementwise", a, b if name == "BinaryFunctor" else None, out)


def op_name(identifier: str) -> str:
    """``sigmoid_backward_kernel_cuda`` -> ``sigmoid_backward``."""
    if identifier in _RENAMED:
        return _RENAMED[identifier]
    for suffix in _SUFFIXES:
        if identifier.endswith(suffix) and len(identifier) > len(suffix):
            identifier = identifier[: -len(suffix)]
            break
    return _RENAMED.get(identifier) or snake(identifier.lstrip("_"))


def snake(text: str) -> str:
    """``BitwiseAnd`` -> ``bitwise_and``; text that already has underscores is unchanged."""
    if "_" in text or text.islower():
        return text
    return "".join(f"_{char.lower()}" if char.isupper() and at else char.lower() for at, char in enumerate(text))


def class_of(op: str, identifier: str) -> str:
    """The class of an elementwise kernel by its functor: a copy is memory, a part of a norm is norm."""
    if _COPY.match(op):
        return "memory"
    lowered = identifier.lower()
    if "norm_" in lowered or "groupnorm" in lowered or "layernorm" in lowered or "batch_norm" in lowered:
        return "norm"
    for kernel_class, marks in _CLASSES:
        if any(op == mark or op.startswith(mark + "_") for mark in marks):
            return kernel_class
    return "elementwise"
