"""Fused attention: FlashAttention 2 and 3, memory-efficient attention, TensorRT-LLM, FlashInfer, vLLM, AMD.

Only the loop kernels use tensor cores: preprocessing, conversion and combine kernels do not.
"""

from __future__ import annotations

import re

from warpline.kernels.catalogue import Catalogue
from warpline.kernels.draft import Draft
from warpline.kernels.grammar import head, inside, is_integer
from warpline.kernels.normalise import NormalName, split_arguments
from warpline.kernels.types import dtype_of

_TABLE = Catalogue("attention")
_MEM_EFF = re.compile(
    r"fmha_cutlass([FB])_(\w{1,40}?)_(aligned|notaligned)_(\d+)x(\d+)_(?:(rf|gmem)|k(\d+))((?:_dropout|_seqaligned)*)_sm(\d+)"
)
_TRTLLM = re.compile(
    r"fmhaSm(\d+)[af]?Kernel_(?:Q(?P<q>[A-Z]\w{0,20}?)Kv(?P<kv>[A-Z]\w{0,20}?)|Qkv(?P<qkv>[A-Z]\w{0,20}?))"
    r"O(?P<o>[A-Z][A-Za-z]{0,20}+\d{1,2}(?:m\d)?)"
    r"H(?P<h>Qk\d++HV\d++|\d++)(?P<rest>\w*)"
)
_TILES = re.compile(r"Q(\d+)Kv(\d+)")
_AMD_TYPES = {"bf16": "bf16", "fp16": "f16", "fp8": "e4m3"}
"""AITER's 8-bit type is e4m3."""
_FUSED_V2 = re.compile(r"(?:fmha_v2|fused_multihead\w{0,80}?_v2|fused_multihead_flash_attention)_")


def decode(name: NormalName) -> Draft | None:
    """Every fused attention kernel that does not come from cuDNN or Triton."""
    text, base = name.text, name.base
    if base.startswith(("flash_fwd", "flash_bwd")) and "mla" not in base:
        return _flash2(name)
    if base == "device_kernel" and ("flash::" in name.arguments or "fmha" in name.arguments.lower()):
        return _wrapped(name)
    if base.startswith("fmha_cutlass"):
        return _memory_efficient(name)
    if base.startswith("fmhaSm"):
        return _trtllm(name)
    if _FUSED_V2.match(base):
        draft = _draft(name, "tensorrt", "TensorRT's fused attention")
        draft.kind("attention", "fused_attention", base, tensor_core=True)
        draft.set("direction", "fwd", "TensorRT runs inference only")
        if (found := re.search(r"_(fp16|bf16|int8|e4m3|fp32)_", base)) is not None:
            kind = dtype_of(found.group(1))
            draft.types(found.group(1), a=kind, b=kind)
        if (arch := re.search(r"_sm(\d+)", base)) is not None:
            draft.set("arch", f"sm{arch.group(1)}", arch.group())
        return draft
    if base == "kentry" or "aiter" in name.scope:
        return _amd(name)
    if base in ("attention_kernel_batched_impl", "attention_kernel_backward_batched_impl", "attention_kernel"):
        draft = _draft(name, "xformers", "memory-efficient attention")
        draft.kind("attention", "memory_efficient_attention", base)
        return draft
    entry = _TABLE.find(base)
    if entry is None:
        return None
    library = "flashinfer" if "flashinfer" in text else "vllm" if "vllm" in text or "paged" in base else None
    draft = _draft(name, library, entry.op.replace("_", " "))
    draft.kind(entry.kernel_class, entry.op, f"{base}: {entry.op.replace('_', ' ')}", tensor_core=entry.tensor_core)
    draft.set("direction", entry.direction, base)
    _first_float(draft, name)
    return draft


def _draft(name: NormalName, library: str | None, meaning: str) -> Draft:
    draft = Draft("attention", library)
    draft.token(name.base, meaning)
    return draft


def _first_float(draft: Draft, name: NormalName) -> None:
    for part in split_arguments(name.arguments):
        kind = dtype_of(part)
        if kind in ("f16", "bf16", "f32", "e4m3"):
            draft.types("first floating-point type argument", a=kind)
            return


def _flash2(name: NormalName) -> Draft:
    base = name.base
    draft = Draft("flash attention 2", "aten" if "pytorch_flash" in name.scope else "flash-attn")
    backward = base.startswith("flash_bwd")
    helper = any(word in base for word in ("combine", "dot_do_o", "convert_dq", "convert_dkv", "clear"))
    op = "flash_attention_backward" if backward else "flash_attention_forward"
    draft.kind("attention", op, f"{base} of FlashAttention 2")
    draft.set("direction", "bwd" if backward else "fwd", base)
    if name.arguments or not name.truncated:
        reason = "a helper without matrix arithmetic" if helper else "the loop multiplies on tensor cores"
        draft.set("tensor_core", not helper, reason)
    draft.token(base, "FlashAttention 2: " + ("helper around the loop" if helper else "the attention loop"))
    traits = inside(name.arguments, "kernel_traits<")
    if traits is None:
        return draft
    parts = split_arguments(traits)
    if len(parts) >= 4 and all(is_integer(part) for part in parts[:4]):
        head_dim, block_m, block_n, warps = parts[:4]
        draft.set("head_dim", int(head_dim), "first number of the traits (rounded up to a supported size)")
        draft.set("tile", f"{block_m}x{block_n}", "traits: query block x key block")
        draft.token(f"{head_dim}, {block_m}, {block_n}, {warps}", "head dimension, query block, key block, warps")
    element = next((kind for part in parts if (kind := dtype_of(part)) in ("f16", "bf16", "e4m3")), None)
    draft.types("element type of the traits; FlashAttention accumulates in fp32", a=element, b=element)
    if element and element != "e4m3":
        draft.types("element type of the traits; FlashAttention accumulates in fp32", out=element, acc="f32")
    flags = [part for part in split_arguments(name.arguments)[1:] if part in ("true", "false", "0", "1")]
    at = 0 if "splitkv_kernel" in base else 1
    if not helper and len(flags) > at + 1 and not name.truncated:
        draft.set("causal", flags[at] in ("true", "1"), f"flag {at} of {base}")
        draft.token(flags[at], "causal mask" if flags[at] in ("true", "1") else "no causal mask")
    return draft


def _wrapped(name: NormalName) -> Draft:
    text = name.arguments
    found = re.search(r"\b(FlashAttn\w+|Sm\d+Fmha\w+|\w*Fmha\w*|fmha::\w+)", text)
    what = found.group(1) if found else head(text)
    draft = Draft(
        "flash attention 3" if "flash::" in text else "cutlass fmha", "flash-attn" if "flash::" in text else "cutlass"
    )
    draft.token("cutlass::device_kernel", "CUTLASS' generic wrapper")
    draft.token(what, "the attention kernel inside")
    backward = "Bwd" in what
    helper = any(word in what for word in ("Preprocess", "Postprocess", "Combine", "Reduction", "Convert", "SumOdO"))
    op = "flash_attention_backward" if backward else "flash_attention_forward"
    draft.kind("attention", op, f"{what} inside device_kernel")
    if not (name.truncated and text.endswith(what)):
        draft.set("tensor_core", not helper, "a helper without matrix arithmetic" if helper else "wgmma main loop")
    draft.set("direction", "bwd" if backward else "fwd", what)
    arch = re.search(r"arch::Sm(\d+)", text) or re.search(r"Sm(\d+)", what)
    if arch is not None:
        draft.set("arch", f"sm{arch.group(1)}", arch.group())
    element = re.search(r"cutlass::(bfloat16_t|half_t|float_e4m3_t)", text)
    if element is not None:
        kind = dtype_of(element.group(1))
        draft.types("element type of the main loop", a=kind, b=kind)
    main = inside(text, "CollectiveMainloopFwdSm90<") or inside(text, "CollectiveMainloopFwdSm80<")
    if main is not None:
        _mainloop(draft, main)
    return draft


def _mainloop(draft: Draft, text: str) -> None:
    parts = split_arguments(text)
    sizes = re.findall(r"C<(\d+)>", parts[2]) if len(parts) > 2 else []
    if parts and is_integer(parts[0]):
        draft.set("stages", int(parts[0]), "first number of the main loop")
    if len(sizes) == 3:
        draft.set("tile", f"{sizes[0]}x{sizes[1]}", "query block x key block of the main loop")
        draft.set("head_dim", int(sizes[2]), "third size of the tile")
    flags = [part for part in parts if part in ("true", "false")]
    if len(flags) > 3:
        draft.set("causal", flags[0] == "true", "first flag of the main loop")


def _memory_efficient(name: NormalName) -> Draft:
    draft = Draft("memory-efficient attention", "aten" if "PyTorchMemEff" in name.raw else "xformers")
    backward = name.base.startswith("fmha_cutlassB")
    op = "memory_efficient_attention_" + ("backward" if backward else "forward")
    draft.kind("attention", op, name.base[:13])
    draft.set("direction", "bwd" if backward else "fwd", name.base[:13])
    draft.token(name.base[:13], "memory-efficient attention, " + ("backward" if backward else "forward"))
    found = _MEM_EFF.fullmatch(name.base)
    if found is None:
        return draft
    _, kind, aligned, queries, keys, place, max_k, _, arch = found.groups()
    element = dtype_of(kind)
    draft.token(kind, f"element type {element}")
    draft.token(aligned, "alignment of the head dimension")
    draft.set("tile", f"{queries}x{keys}", "query block x key block")
    draft.token(f"{queries}x{keys}", "query block x key block")
    if place:
        draft.token(place, "output kept in registers" if place == "rf" else "output accumulated in global memory")
    if max_k:
        draft.token(f"k{max_k}", f"head dimension up to {max_k}")
    draft.set("arch", f"sm{arch}", f"sm{arch}; runs on every later chip")
    draft.token(f"sm{arch}", "architecture the kernel was built for; runs on later chips too")
    if element == "f32" and int(arch) >= 80:
        draft.set("tensor_core", True, "f32 on sm80 is computed as three TF32 multiplications (OpMultiplyAddFastF32)")
        draft.types("element type", a="f32", b="f32", out="f32", acc="f32")
    elif element == "f32":
        draft.set("tensor_core", False, "f32 before sm80 runs on CUDA cores")
        draft.types("element type", a="f32", b="f32", out="f32", acc="f32")
    else:
        draft.set("tensor_core", int(arch) >= 70, "16-bit floats are multiplied on tensor cores from Volta on")
        draft.types("element type", a=element, b=element, acc="f32")
    return draft


def _trtllm(name: NormalName) -> Draft:
    draft = Draft("trtllm-gen attention", "tensorrt-llm")
    draft.kind("attention", "fused_attention", "fmhaSm…Kernel", tensor_core=True)
    draft.set("direction", "fwd", "inference kernels")
    draft.token("fmhaSm", "TensorRT-LLM's generated attention, also shipped by FlashInfer")
    found = _TRTLLM.fullmatch(name.base)
    if found is None:
        return draft
    query = found["q"] or found["qkv"]
    key = found["kv"] or found["qkv"]
    draft.set("arch", f"sm{found.group(1)}", f"Sm{found.group(1)}")
    draft.types("types of Q, KV and O", a=dtype_of(query), b=dtype_of(key), out=dtype_of(found["o"]))
    draft.token(f"Q {query}, Kv {key}, O {found['o']}", "types of queries, keys and values, output")
    if found["h"].isdigit():
        draft.set("head_dim", int(found["h"]), f"H{found['h']}")
    draft.token(f"H{found['h']}", "head dimension")
    rest = found["rest"]
    if "Causal" in rest:
        draft.set("causal", True, "Causal")
        draft.token("Causal", "causal mask")
    elif "Dense" in rest:
        draft.set("causal", False, "Dense")
        draft.token("Dense", "no mask")
    if (tiles := _TILES.search(rest)) is not None:
        draft.set("tile", f"{tiles.group(1)}x{tiles.group(2)}", "query tile x key tile")
        draft.token(tiles.group(), "query tile x key tile")
    if "Context" in rest:
        draft.token("Context", "prefill")
    elif "ForGen" in rest:
        draft.token("ForGen", "decode")
    return draft


def _amd(name: NormalName) -> Draft | None:
    text = name.text
    found = re.search(r"\b(Fmha\w+)<", text) or re.search(r"\b(fmha_\w+|mla_\w+|pa_\w+)", name.base)
    if found is None:
        return None
    what = found.group(1)
    draft = Draft("amd attention", "aiter" if "aiter" in name.scope else "ck")
    draft.token(what, "fused attention")
    helper = any(word in what for word in ("DotO", "Convert", "Combine", "AppendKV", "reduce"))
    backward = "Bwd" in what or "bwd" in what
    draft.kind("attention", "fmha_" + ("backward" if backward else "forward"), what, tensor_core=not helper)
    draft.reasons["tensor_core"] = "a helper without matrix arithmetic" if helper else "MFMA matrix cores"
    draft.set("direction", "bwd" if backward else "fwd", what)
    if (size := re.search(r"hd(\d+)", what)) is not None:
        draft.set("head_dim", int(size.group(1)), size.group())
    element = re.search(r"_(bf16|fp16|fp8)(?=_|$)", what) if "Fmha" not in what else None
    if element is not None:
        kind = _AMD_TYPES[element.group(1)]
        draft.types("type in the name", a=kind, b=kind)
    problem = re.search(r"Problem<([\w: ]{1,80}), ([\w: ]{1,80}),", text)
    if problem is not None and not helper:
        draft.types("types of the pipeline problem", a=dtype_of(problem.group(1)), b=dtype_of(problem.group(2)))
    return draft
