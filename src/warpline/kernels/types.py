"""C++ and library spellings of data types -> the short names that warpline uses."""

from __future__ import annotations

_SPELLINGS = {
    "f16": "half __half half_t Half _Float16 fp16 f16 Fp16 float16 half2 __half2 DF16_",
    "bf16": "BFloat16 __nv_bfloat16 __hip_bfloat16 hip_bfloat16 bfloat16_t bf16 Bfloat16 bfloat16 __bfloat __bf16 "
    "nv_bfloat16 __nv_bfloat162 bf16_t",
    "f32": "float f32 fp32 Fp32 float32 float4",
    "tf32": "tf32 tfloat32_t TF32",
    "f64": "double f64 fp64 double2",
    "e4m3": "Float8_e4m3fn Float8_e4m3fnuz float_e4m3_t float_e4m3fn_t __nv_fp8_e4m3 fp8_e4m3 e4m3 E4m3 f8e4m3 E4M3 "
    "__nv_fp8x2_e4m3 __nv_fp8x4_e4m3 MxE4m3 fp8e4m3",
    "e5m2": "Float8_e5m2 Float8_e5m2fnuz float_e5m2_t __nv_fp8_e5m2 fp8_e5m2 e5m2 E5m2 f8e5m2 E5M2",
    "e2m1": "float_e2m1_t e2m1 E2m1 MxE2m1 NvE2m1 mxfp4 nvfp4 __nv_fp4_e2m1 fp4 Float4_e2m1fn_x2",
    "e8m0": "Float8_e8m0fnu float_ue8m0_t ue8m0 UE8M0",
    "s4": "s4 int4b_t i4 int4",
    "u4": "u4 uint4b_t",
    "s8": "signed_char int8_t int8 i8 s8 char Int8",
    "u8": "unsigned_char uint8_t uint8 u8 Byte",
    "s16": "short int16_t i16 s16",
    "u16": "unsigned_short uint16_t u16",
    "s32": "int int32_t i32 s32 int32",
    "u32": "unsigned_int uint32_t u32 unsigned",
    "s64": "long long_long int64_t i64 s64 int64 __int64",
    "u64": "unsigned_long unsigned_long_long uint64_t u64",
    "bool": "bool",
    "cf32": "complex<float> float2 cf32",
    "cf64": "complex<double> cf64",
}
_SHORT = {spelling: short for short, spellings in _SPELLINGS.items() for spelling in spellings.split()}


def dtype_of(text: str) -> str | None:
    """The short name of a type as printed in a kernel's name, or None for anything else."""
    found = _SHORT.get(text)
    if found is not None:
        return found
    cleaned = text.replace("const", " ").strip(" *&")
    cleaned = "_".join(cleaned.split())
    cleaned = cleaned[cleaned.index("complex<") :] if "complex<" in cleaned else cleaned.rsplit("::", 1)[-1]
    return _SHORT.get(cleaned)
