"""cuDNN's own kernels: run-time generated engines, older template kernels, batch norm, layout changes."""

from __future__ import annotations

import re

from warpline.kernels.catalogue import Catalogue
from warpline.kernels.draft import Draft
from warpline.kernels.grammar import SHAPE3, tokens_of
from warpline.kernels.normalise import NormalName, split_arguments
from warpline.kernels.types import dtype_of

_TABLE = Catalogue("cudnn")
_SDPA = re.compile(r"(fprop|bprop|fwd|bwd)")
_CONV = {"convFwd": ("conv_fprop", "fwd"), "convBwdData": ("conv_dgrad", "bwd"), "convBwdFilter": ("conv_wgrad", "bwd")}


def decode(name: NormalName) -> Draft | None:
    """``cudnn_generated_…``, ``cudnn::…``, ``cask_cudnn::…`` and bare identifiers that only cuDNN uses."""
    text = name.text
    if text.startswith(("cudnn_generated", "generatedNative")):
        return _generated(name)
    inside_cudnn = "cudnn" in name.scope
    entry = _TABLE.find(name.base)
    if entry is None and name.truncated and not name.arguments and inside_cudnn:
        entry = _TABLE.complete(name.base)
    if entry is None:
        return _rest(name) if inside_cudnn else None
    if not inside_cudnn and name.base.startswith(("dropout_", "im2col", "col2im", "dgrad_", "activation_")):
        return None
    draft = Draft("cudnn template", "cudnn")
    draft.token(f"{name.scope}{name.base}", f"{entry.op.replace('_', ' ')} of cuDNN")
    draft.kind(entry.kernel_class, entry.op, f"{name.base} of cuDNN", tensor_core=entry.tensor_core)
    draft.set("direction", entry.direction, name.base)
    kinds = [dtype_of(part) for part in split_arguments(name.arguments)[:6]]
    floats = [kind for kind in kinds if kind in ("f16", "bf16", "f32", "f64", "e4m3")]
    if floats and kinds and (kinds[0] in floats or entry.kernel_class == "conv"):
        draft.types("first type argument", a=floats[0])
        if entry.kernel_class == "layout" and len(floats) > 1:
            draft.types("first two type arguments", out=floats[1])
    return draft


def _rest(name: NormalName) -> Draft | None:
    scope = name.scope + name.base
    draft = Draft("cudnn template", "cudnn")
    if "winograd" in scope:
        return draft.kind("conv", "conv_winograd", "namespace winograd", tensor_core=False)
    if name.base.startswith("bn_") or "batchnorm" in scope.lower():
        return draft.kind("norm", "batch_norm", name.base)
    return None


def _generated(name: NormalName) -> Draft:
    tokens = tokens_of(name.text, name.truncated)
    draft = Draft("cudnn generated", "cudnn")
    draft.token("cudnn_generated_fort_native", "generated at run time by cuDNN's fusion engine")
    arch = next((token for token in tokens if re.fullmatch(r"sm\d+", token)), None)
    if arch:
        draft.set("arch", arch, arch)
        draft.token(arch, "architecture the kernel was generated for")
    joined = "_".join(tokens)
    if "sdpa" in tokens or "flash" in tokens or "mha" in tokens:
        found = _SDPA.search(joined)
        backward = found is not None and found.group().startswith("b")
        op = "sdpa_backward" if backward else "sdpa_forward"
        draft.kind("attention", op, "sdpa: scaled dot-product attention", tensor_core=True)
        draft.set("direction", "bwd" if backward else "fwd" if found else None, found.group() if found else "")
        draft.token("sdpa_flash", "attention that never writes the score matrix")
        mark = "wgmma" if "wgmma" in tokens else "wmma" if "wmma" in tokens else None
        draft.reasons["tensor_core"] = f"{mark}: matrix instructions" if mark else "cuDNN's flash engines use them"
        if "f16" in tokens:
            draft.token("f16", "a 16-bit float: fp16 or bf16, the name does not say which")
    else:
        conv = next((token for token in tokens if token in _CONV), None)
        if conv:
            op, direction = _CONV[conv]
            draft.kind("conv", op, conv)
            draft.set("direction", direction, conv)
            draft.set(
                "tensor_core", True if arch else None, "cuDNN's native convolution engines use matrix instructions"
            )
            draft.token(conv, op.replace("_", " "))
        elif "ointwise" in joined:
            draft.kind("elementwise", "pointwise", "generatedNativePointwise")
        elif "matmul" in joined.lower():
            draft.kind("gemm", "gemm", "matmul in the name")
        elif "eduction" in joined:
            draft.kind("reduction", "reduction", "reduction in the name")
        elif "norm" in joined.lower():
            draft.kind("norm", "norm", "norm in the name")
        else:
            draft.abstain("a generated cuDNN kernel whose operation is not in the name")
    _knobs(draft, tokens)
    return draft


def _knobs(draft: Draft, tokens: list[str]) -> None:
    for at, token in enumerate(tokens):
        if token == "knob" and at + 1 < len(tokens):
            draft.token(f"knob_{tokens[at + 1]}", "variant that the heuristics chose")
        elif SHAPE3.fullmatch(token) and "tile" not in draft.values:
            draft.set("tile", token, "first shape after the knob")
            draft.token(token, "tile")
