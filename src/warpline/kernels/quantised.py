"""GEMM libraries for low precision: DeepGEMM, Marlin, TensorRT-LLM's generated GEMMs, bitsandbytes, llama.cpp."""

from __future__ import annotations

import re

from warpline.kernels.catalogue import Catalogue
from warpline.kernels.draft import Draft
from warpline.kernels.grammar import is_integer, tokens_of
from warpline.kernels.normalise import NormalName, split_arguments
from warpline.kernels.types import dtype_of

_SCALAR_IDS = {
    "1125899906909960": "bf16",
    "1125899906910725": "f16",
    "1125899906843648": "u4",
    "1125899907892224": "u4",
    "2814749767172868": "e4m3",
    "562949953487106": "e2m1",
    "2814749767106568": "e8m0",
    "1125899906909952": "s8",
}
"""vLLM's ScalarType::id(): exponent, mantissa, sign, bias and NaN bits packed into one integer."""

_BMM_TYPE = r"(?:Mx|Nv|Dy)?(?:Bfloat16|Fp16|Fp32|E4m3|E5m2|E2m1|Int8|Int4)"
_BMM = re.compile(rf"(?>(?:bmm|gemm)\w*?_({_BMM_TYPE})_({_BMM_TYPE})({_BMM_TYPE})?_(Fp32|Fp16|Int32)_)(\w++)")
_BMM_WORD = re.compile(r"t(\d+x\d+x\d+)(?:u\d)?|s(\d+)|m(\d+x\d+x\d+)|(?:c|cga)(\d+x\d+x\d+)|sm(\d+)[af]?")
_DEEP = re.compile(r"(?>(?:sm(\d++)_)?(\w*?)(gemm|einsum|bmk_bnk_mn|mqa_logits))\w*+")
_TABLE = Catalogue("quantised")


def decode(name: NormalName) -> Draft | None:
    """Kernels of the quantised GEMM libraries."""
    base = name.base
    if "deep_gemm::" in name.scope or (base.startswith("fp8_gemm_kernel") and name.arguments):
        return _deep_gemm(name)
    if base == "Marlin" or base.startswith("Marlin_"):
        return _marlin(name)
    if base.startswith(("bmm_", "gemm_", "gemmGatedAct")) and (found := _BMM.fullmatch(base)) is not None:
        return _trtllm(name, found)
    entry = _TABLE.find(base)
    if entry is None:
        return None
    library = "bitsandbytes" if (base[0] == "k" and base[1:2].isupper()) or "4bit_inference" in base else None
    library = library or (
        "vllm" if "vllm" in name.scope or "marlin" in base else "llama.cpp" if not name.scope else None
    )
    draft = Draft("quantised", library)
    draft.token(base, entry.op.replace("_", " "))
    draft.kind(entry.kernel_class, entry.op, f"{base}: {entry.op.replace('_', ' ')}", tensor_core=entry.tensor_core)
    return draft


def _deep_gemm(name: NormalName) -> Draft | None:
    draft = Draft("deepgemm", "deepgemm")
    base = name.base
    draft.token(base, "DeepGEMM, compiled at run time for the shape")
    found = _DEEP.fullmatch(base)
    if found is None:
        if "transpose" in base or "pack" in base or "layout" in base:
            kind = "f32" if "fp32" in base else None
            draft.types("in the name", a=kind, out=kind if "pack" not in base else None)
            return draft.kind("layout", "transpose", f"{base} changes the layout of scales")
        return None
    arch, prefix, what = found.groups()
    if what == "mqa_logits":
        draft.kind("attention", "mqa_logits", base, tensor_core=True)
    else:
        draft.kind("gemm", "gemm", base, tensor_core=True)
    draft.reasons["tensor_core"] = "DeepGEMM is built on wgmma and tcgen05"
    if arch:
        draft.set("arch", f"sm{arch}", f"sm{arch} in the name")
        draft.token(f"sm{arch}", "architecture")
    if "fp8_fp4" in prefix:
        draft.types("fp8_fp4 in the name", a="e4m3", b="e2m1")
    elif "fp8" in prefix:
        draft.types("DeepGEMM's fp8 is e4m3, accumulated in fp32", a="e4m3", b="e4m3", acc="f32")
    elif "bf16" in prefix:
        draft.types("bf16 in the name, accumulated in fp32", a="bf16", b="bf16", acc="f32")
    elif "tf32" in prefix:
        draft.types("tf32 in the name", a="tf32", b="tf32", acc="f32")
    parts = split_arguments(name.arguments)
    if base == "fp8_gemm_kernel" and len(parts) >= 7 and all(is_integer(part) for part in parts[:7]):
        draft.set("tile", "x".join(parts[2:5]), "arguments 3 to 5: block M, N and K")
        draft.set("stages", int(parts[6]), "argument 7: stages")
        draft.types("DeepGEMM's fp8 is e4m3, accumulated in fp32", a="e4m3", b="e4m3", acc="f32")
    return draft


def _marlin(name: NormalName) -> Draft:
    moe = "moe" in name.scope
    draft = Draft("marlin", "marlin")
    draft.token("Marlin", "GEMM with weights of a few bits, dequantised on the fly")
    if moe:
        draft.kind("moe", "moe_gemm", "Marlin in a MoE namespace: one GEMM over the experts", tensor_core=True)
    else:
        draft.kind("gemm", "weight_only_gemm", "Marlin is a weight-only quantised GEMM", tensor_core=True)
    draft.reasons["tensor_core"] = "Marlin multiplies with mma instructions"
    parts = split_arguments(name.arguments)
    kinds = [_SCALAR_IDS.get(part) or dtype_of(part) for part in parts[:4]]
    ids = sum(1 for part in parts[:4] if part in _SCALAR_IDS)
    if ids >= 3:
        draft.types("ScalarType ids of A, B and C", a=kinds[0], b=kinds[1], out=kinds[2])
    elif kinds and kinds[0] in ("f16", "bf16"):
        draft.types("first type argument", a=kinds[0])
    threads = next((at for at, part in enumerate(parts) if part in ("128", "256")), None)
    if threads is not None and all(is_integer(part) for part in parts[threads + 1 : threads + 4]):
        numbers = parts[threads + 1 :]
        if len(numbers) >= 4:
            _blocks(draft, numbers)
    return draft


def _blocks(draft: Draft, numbers: list[str]) -> None:
    rows, columns, depth = (16 * int(part) for part in numbers[:3])
    rest = numbers[3:]
    if rest[0] in ("true", "false"):
        rows = 8 if rest[0] == "true" else rows
        rest = rest[1:]
    draft.set("tile", f"{rows}x{columns}x{depth}", "thread blocks of 16 along M, N and K")
    draft.token(", ".join(numbers[:3]), "blocks of 16 along M, N and K")
    if rest and is_integer(rest[0]):
        draft.set("stages", int(rest[0]), "the number after the blocks")


def _trtllm(name: NormalName, found: re.Match[str]) -> Draft:
    draft = Draft("trtllm-gen", "tensorrt-llm")
    out, first, second, accumulator, _ = found.groups()
    draft.kind("gemm", "batched_gemm" if name.base.startswith("bmm") else "gemm", "bmm: batched GEMM", tensor_core=True)
    draft.reasons["tensor_core"] = "generated for tcgen05 matrix instructions"
    draft.token(name.base.split("_")[0], "TensorRT-LLM's generated GEMM, one batch per expert in MoE layers")
    draft.types(
        "types of the output, A, B and the accumulator",
        a=dtype_of(first),
        b=dtype_of(second or first),
        out=dtype_of(out),
        acc=dtype_of(accumulator),
    )
    draft.token(f"{out}_{first}{second or ''}_{accumulator}", "types of the output, A and B, accumulator")
    tokens = tokens_of(found.group(5), name.truncated)
    for at, token in enumerate(tokens):
        word = _BMM_WORD.fullmatch(token)
        if word is not None:
            tile, stages, instruction, cluster, arch = word.groups()
            draft.set("tile", tile, f"{token}: tile")
            draft.set("stages", int(stages) if stages else None, f"{token}: stages")
            draft.set("instruction", instruction, f"{token}: matrix instruction")
            draft.set("cluster", cluster, f"{token}: cluster")
            draft.set("arch", f"sm{arch}" if arch else None, token)
            draft.token(token, _meaning(tile, stages, instruction, cluster))
        elif token in ("TN", "TT", "NN", "NT") and at and tokens[at - 1].startswith("r"):
            draft.set("layout", token, f"{token}: order of A and B")
            draft.token(token, "order of A and B")
        elif token == "swiGlu":
            draft.token(token, "SwiGLU in the epilogue")
        elif token in ("dynB", "dynBatch"):
            draft.token(token, "number of batches (experts) known at run time only")
    return draft


def _meaning(tile: str | None, stages: str | None, instruction: str | None, cluster: str | None) -> str:
    if tile:
        return "tile of a thread block, M x N x K"
    if stages:
        return "pipeline stages"
    if instruction:
        return "matrix instruction"
    return "thread-block cluster" if cluster else "architecture"
