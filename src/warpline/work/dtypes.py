"""Data types as Kineto writes them, and PyTorch's type promotion."""

from __future__ import annotations

from collections.abc import Iterable

TYPES = {
    "float": "fp32",
    "double": "fp64",
    "c10::Half": "fp16",
    "Half": "fp16",
    "c10::BFloat16": "bf16",
    "BFloat16": "bf16",
    "c10::Float8_e4m3fn": "fp8",
    "c10::Float8_e5m2": "fp8",
    "c10::Float8_e4m3fnuz": "fp8",
    "c10::Float8_e5m2fnuz": "fp8",
    "c10::Float8_e8m0fnu": "fp8",
    "c10::Float4_e2m1fn_x2": "fp4x2",
    "long int": "int64",
    "long": "int64",
    "long long": "int64",
    "int": "int32",
    "short int": "int16",
    "short": "int16",
    "signed char": "int8",
    "char": "int8",
    "unsigned char": "uint8",
    "bool": "bool",
    "unsigned short": "uint16",
    "unsigned int": "uint32",
    "unsigned long": "uint64",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "c10::complex<c10::Half>": "complex32",
    "c10::quint8": "uint8",
    "c10::qint8": "int8",
    "c10::qint32": "int32",
}
"""Kineto's `Input type` of a tensor; other values are a scalar, a list or nothing."""

SIZES = {
    "fp64": 8,
    "fp32": 4,
    "fp16": 2,
    "bf16": 2,
    "fp8": 1,
    "fp4x2": 1,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint64": 8,
    "uint32": 4,
    "uint16": 2,
    "uint8": 1,
    "bool": 1,
    "complex128": 16,
    "complex64": 8,
    "complex32": 4,
}
"""Bytes per element; `fp4x2` holds two numbers in one byte."""

SCALAR_TYPES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "fp16",
    6: "fp32",
    7: "fp64",
    8: "complex32",
    9: "complex64",
    10: "complex128",
    11: "bool",
    12: "int8",
    13: "uint8",
    14: "int32",
    15: "bf16",
    23: "fp8",
    24: "fp8",
    25: "fp8",
    26: "fp8",
    27: "uint16",
    28: "uint32",
    29: "uint64",
}
"""The numbers of c10::ScalarType, which `Concrete Inputs` uses for a dtype argument (c10/core/ScalarType.h)."""

COLLECTIVE_TYPES = {
    "Float": "fp32",
    "Double": "fp64",
    "Half": "fp16",
    "BFloat16": "bf16",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "Float8_e4m3fn": "fp8",
    "Float8_e5m2": "fp8",
}
"""The `dtype` of Kineto's NCCL records."""

_ORDER = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "fp4x2",
    "fp8",
    "fp16",
    "bf16",
    "fp32",
    "fp64",
    "complex32",
    "complex64",
    "complex128",
)
_FLOATING = _ORDER.index("fp4x2")
_COMPLEX = _ORDER.index("complex32")


def category(dtype: str) -> int:
    """0 for bool, 1 for integers, 2 for floating point, 3 for complex."""
    rank = _ORDER.index(dtype)
    if rank >= _COMPLEX:
        return 3
    return 2 if rank >= _FLOATING else int(rank > 0)


def promote(dtypes: Iterable[str]) -> str:
    """The result type of arguments of these types (tensors with dimensions; see `Tensor.is_number`)."""
    result = ""
    for dtype in dtypes:
        if not result:
            result = dtype
        elif {result, dtype} == {"fp16", "bf16"}:
            result = "fp32"
        elif _ORDER.index(dtype) > _ORDER.index(result):
            result = dtype
    return result


def as_fraction(dtype: str) -> str:
    """The type of an operation whose result is always floating point, such as `exp`: integers become fp32."""
    return dtype if category(dtype) >= 2 else "fp32"


def arithmetic(dtype: str) -> str:
    """The type in which CUDA cores compute on such data: half precision is widened to fp32."""
    return "fp64" if dtype in {"fp64", "complex128"} else "fp32"
