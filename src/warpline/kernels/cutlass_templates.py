"""CUTLASS kernels without a name: the template itself, often mangled, and CuTe DSL's Python kernels.

``cutlass::device_kernel`` wraps GEMMs, FlashAttention-3, collectives and users' own kernels alike: only
its first template argument says which. ``cutlass`` in a CuTe DSL name says nothing about the operation.
"""

from __future__ import annotations

import re

from warpline.kernels.draft import Draft
from warpline.kernels.grammar import head, inside, is_integer
from warpline.kernels.normalise import NormalName, split_arguments
from warpline.kernels.types import dtype_of

WRAPPERS = {"Kernel", "Kernel2", "device_kernel"}
_SHAPE = re.compile(r"GemmShape<(\d+), (\d+), (\d+)>")
_ARCH = re.compile(r"arch::Sm(\d+)\b")
_MAINLOOP = re.compile(r"\b(Mainloop(Sm\d++)?\w*+)<")
_SM = re.compile(r"(?:Mainloop|KernelTma|Kernel|SM|Sm)(?:Sm)?(\d{2,3})")
_TUPLE = re.compile(r"(?:cute::)?tuple<(?:cute::)?C<(\d+)>, (?:cute::)?C<(\d+)>, (?:cute::)?C<(\d+)>>")
_ATOM = re.compile(r"\bSM(\d+)_(?:MMA_)?(\d+x\d+x\d+)?_?(F64|F32|F16|S32|TF32)(\w*)")
_CONV = re.compile(r"Conv[23]d(Fprop|Dgrad|Wgrad|Deconv)")
_DSL = re.compile(r"kernel_cutlass_(\w+)")
_SETUP_WORDS = (
    "grouped_gemm_data",
    "grouped_gemm_args",
    "group_gemm_args",
    "group_gemm_starts",
    "fill_tensormaps",
    "get_group_gemm",
    "setup_grouped_gemm",
    "GemmPreCompute",
    "gemm_pre_compute",
)
_GEMM_WORDS = ("GemmUniversal", "gemm::kernel::", "CollectiveMma", "GemmKernel", "cutlass_3x_gemm", "cutlass_2x_gemm")
_DSL_WORDS = (
    ("norm", ("RMSNorm", "rmsnorm", "LayerNorm", "layernorm")),
    ("attention", ("FlashAttention", "flash_attn", "FmhaF", "Fmha", "fmha", "Attention", "mla_")),
    ("softmax", ("Softmax", "softmax")),
    ("gemm", ("GemmKernel", "Gemm", "gemm", "gmm")),
    ("elementwise", ("Rope", "rope", "Silu", "silu", "elementwise")),
    ("quant", ("Quant", "quant")),
    ("sort_scan", ("TopK", "topk")),
    ("reduction", ("Reduce", "reduce")),
)


def decode(name: NormalName) -> Draft | None:
    """Unnamed CUTLASS instances and CuTe DSL kernels."""
    if name.text.startswith("kernel_cutlass_"):
        return _dsl(name)
    if name.base not in WRAPPERS:
        return _setup(name)
    if not name.arguments:
        draft = Draft("cutlass", "cutlass")
        draft.token(name.base, "CUTLASS' generic wrapper")
        return draft.abstain(f"{name.base} wraps every kind of CUTLASS kernel; the short name drops which one")
    return _wrapped(name)


def _setup(name: NormalName) -> Draft | None:
    """Tiny kernels that fill the argument tables of a grouped GEMM."""
    if not any(word in name.base for word in _SETUP_WORDS):
        return None
    draft = Draft("cutlass", "cutlass")
    draft.token(name.base, "writes the pointers and shapes of a grouped GEMM")
    return draft.kind("other", "grouped_gemm_setup", "prepares a grouped GEMM, does no arithmetic itself")


def _wrapped(name: NormalName) -> Draft | None:
    text = name.arguments
    if "flash::" in text or "fmha" in text.lower() or "Attention" in text[:200]:
        return None
    draft = Draft("cutlass", "cudnn" if "cudnn" in name.scope else "cutlass")
    draft.token(f"{name.scope}{name.base}", "CUTLASS' generic wrapper; the template argument is the kernel")
    if "ReduceSplitK" in text[:200] or "reduction::kernel" in text[:200]:
        draft.token("ReduceSplitK", "adds the partial results of a split-K GEMM")
        return draft.kind("reduction", "split_k_reduce", "reduction::kernel::ReduceSplitK")
    found = _CONV.search(text)
    if "ImplicitGemmConvolution" in text or "conv::kernel" in text or found is not None:
        kind = found.group(1).lower() if found else None
        draft.kind("conv", f"conv_{kind}" if kind else "conv", "an implicit GEMM convolution")
        draft.set("direction", {"fprop": "fwd", "dgrad": "bwd", "wgrad": "bwd"}.get(kind or ""), f"Conv2d {kind}")
    elif any(word in text for word in _GEMM_WORDS):
        draft.kind("gemm", "gemm", f"{head(text)} is a GEMM")
    else:
        return draft.abstain(f"{name.base} of {head(text) or 'an unreadable type'}: not a known CUTLASS operation")
    if "CollectiveMma" in text or "Mainloop" in text:
        _collective(draft, text)
    else:
        _threadblock(draft, text)
    _machine(draft, text)
    return draft


def _threadblock(draft: Draft, text: str) -> None:
    """CUTLASS 2: GemmShape of the block, of the warp, and of the instruction, in this order."""
    shapes = _SHAPE.findall(text)
    if shapes:
        draft.set("tile", "x".join(shapes[0]), "first GemmShape: the thread block's tile")
        draft.token(f"GemmShape<{', '.join(shapes[0])}>", "tile of a thread block, M x N x K")
    if "MmaTensorOp" in text or "OpClassTensorOp" in text or "TensorOpMultiplicand" in text:
        draft.set("tensor_core", True, "MmaTensorOp: tensor-core instructions")
        draft.token("MmaTensorOp", "tensor cores")
    elif "MmaSimt" in text or "OpClassSimt" in text:
        draft.set("tensor_core", False, "MmaSimt: CUDA cores")
        draft.token("MmaSimt", "CUDA cores")
    warp = inside(text, "MmaTensorOp<") or inside(text, "MmaSimt<")
    if warp is not None:
        parts = split_arguments(warp)
        if len(parts) > 5:
            draft.types("operands of the warp-level multiplication", a=dtype_of(parts[1]), b=dtype_of(parts[3]))
            draft.types("operands of the warp-level multiplication", acc=dtype_of(parts[5]))
    operation = inside(text, "arch::Mma<")
    if operation is not None and (found := _SHAPE.search(operation)) is not None:
        draft.set("instruction", "x".join(found.groups()), "GemmShape of arch::Mma")


def _collective(draft: Draft, text: str) -> None:
    """CUTLASS 3: CollectiveMma<Mainloop<Stages, …, Cluster>, Tile, A, strideA, B, strideB, TiledMma…>."""
    mainloop = _MAINLOOP.search(text)
    if mainloop is not None:
        draft.token(mainloop.group(1), "the main loop: TMA loads, warp specialisation, architecture")
        settings = split_arguments(inside(text, mainloop.group()) or "")
        if settings and is_integer(settings[0]) and int(settings[0]) > 0:
            draft.set("stages", int(settings[0]), f"first number of {mainloop.group(1)}")
            draft.token(settings[0], "pipeline stages")
        cluster = next((found for part in settings if (found := _TUPLE.fullmatch(part))), None)
        if cluster is not None:
            draft.set("cluster", "x".join(cluster.groups()), "tuple in the main loop's policy")
            draft.token("x".join(cluster.groups()), "thread-block cluster")
    collective = inside(text, "CollectiveMma<")
    if collective is None:
        return
    parts = split_arguments(collective)
    if len(parts) > 4 and (tile := _TUPLE.fullmatch(parts[1])) is not None:
        draft.set("tile", "x".join(tile.groups()), "tile shape of the collective")
        draft.token("x".join(tile.groups()), "tile of a thread block, M x N x K")
        draft.types("element types of the collective", a=dtype_of(parts[2]), b=dtype_of(parts[4]))


def _machine(draft: Draft, text: str) -> None:
    atom = _ATOM.search(text)
    if atom is not None:
        draft.set("tensor_core", True, f"{atom.group()}: a matrix instruction")
        draft.set("instruction", atom.group(2), atom.group())
        draft.types("accumulator of the instruction", acc=dtype_of(atom.group(3).lower().replace("tf32", "f32")))
        draft.token(atom.group(), "the matrix instruction")
    if "TmaGmma" in text or "Umma" in text or "TmaWarpSpecialized" in text:
        draft.set("tensor_core", True, "warp-specialised main loops exist for wgmma and tcgen05 only")
    found = _ARCH.search(text) or _SM.search(text)
    if found is not None and "Mainloop" in text:
        loop = re.search(r"MainloopSm(\d+)", text)
        draft.set("arch", f"sm{(loop or found).group(1)}", f"{(loop or found).group()} in the template")
    elif (arch := _ARCH.search(text)) is not None:
        draft.set("arch", f"sm{arch.group(1)}", arch.group())
    if draft.values.get("tensor_core") is None and "fp8" in text:
        draft.set("tensor_core", True, "fp8 is multiplied on tensor cores only")


def _dsl(name: NormalName) -> Draft:
    found = _DSL.match(name.text)
    words = found.group(1) if found else ""
    draft = Draft("cute dsl", "cute")
    draft.token("kernel_cutlass_", "written in CuTe's Python DSL; says nothing about the operation")
    subject = words.split("_object_at_", 1)[0]
    if words.startswith("prepare_kernel"):
        draft.token("prepare_kernel", "set-up before the kernel proper")
        return draft.kind("other", "set-up", "prepare_kernel does no arithmetic itself")
    for kernel_class, marks in _DSL_WORDS:
        mark = next((mark for mark in marks if mark in subject), None)
        if mark is None:
            continue
        draft.kind(kernel_class, kernel_class, f"{mark} in the module path or class")
        draft.token(mark, f"the class of the kernel: {kernel_class}")
        if (arch := re.search(r"[Ss]m(\d{2,3})", subject)) is not None:
            draft.set("arch", f"sm{arch.group(1)}", arch.group())
        if kernel_class in ("gemm", "attention") and "arch" in draft.values:
            draft.set("tensor_core", True, "a GEMM of CuTe for this architecture is built on its matrix instruction")
        if (element := re.search(r"ptr(bf16|f16|f32|f8E4M3FN)gmem", name.text)) is not None:
            kind = {"f8E4M3FN": "e4m3"}.get(element.group(1), element.group(1))
            draft.types("element type of the first tensor argument", a=kind)
        return draft
    return draft.abstain("the Python path in the name contains no known operation")
