"""Kernels over lists of tensors: foreach ops, fused optimizers, apex and DeepSpeed.

``multi_tensor_apply_kernel`` alone proves nothing: the same wrapper runs Adam, gradient norms, copies and plain
arithmetic. The functor decides.
"""

from __future__ import annotations

import re

from warpline.kernels.draft import Draft
from warpline.kernels.grammar import head, inside
from warpline.kernels.normalise import NormalName, split_arguments
from warpline.kernels.types import dtype_of

_OPTIMIZERS = re.compile(r"Adam|Sgd|SGD|Lamb|LAMB|Adagrad|NovoGrad|Lion|RMSprop|Adadelta|Muon|LARS")
_STAND_ALONE = re.compile(
    r"(?:fused_)?(?:adam|sgd|lamb|lion|adagrad|muon)\w{0,80}_(?:cuda_)?kernel\w*|kOptimizer\w*|kPreconditionOptimizer\w*"
    r"|k(?:Adam|Sgd)\w*|reduce_block_in_lamb\w*|multi_tensor_adam\w*|adam_cuda_kernel\w*",
    re.IGNORECASE,
)
_NORMS = re.compile(r"L2Norm|LpNorm|MaxNorm|LpMax|L1Norm")
_OPERATIONS = {
    "plus": "add",
    "minus": "sub",
    "multiplies": "mul",
    "divides": "div",
    "Lerp": "lerp",
    "maximum": "maximum",
    "minimum": "minimum",
    "power_functor": "pow",
    "Sqrt": "sqrt",
}


def decode(name: NormalName) -> Draft | None:
    """``multi_tensor_apply_kernel`` and optimizers with their own kernel."""
    if name.base in ("multi_tensor_apply_kernel", "multi_tensor_apply_for_fused_optimizer"):
        return _multi_tensor(name)
    if (
        name.truncated
        and not name.arguments
        and len(name.base) > 10
        and "multi_tensor_apply_kernel".startswith(name.base)
    ):
        draft = Draft("multi-tensor", None)
        return draft.abstain("the name is truncated before the functor: optimizer, norm, copy or arithmetic")
    if name.base in ("cleanup", "cleanup_v2", "cleanup_v3"):
        draft = Draft("multi-tensor", "apex")
        draft.token(name.base, "last step of a multi-tensor norm")
        return draft.kind("reduction", "norm", f"apex' {name.base} finishes a multi-tensor norm")
    if _STAND_ALONE.fullmatch(name.base):
        library = "bitsandbytes" if name.base.startswith("k") else None
        draft = Draft("optimizer", library)
        draft.token(name.base, "an optimizer update")
        return draft.kind("optimizer", name.base, f"{name.base} updates parameters")
    return None


def _multi_tensor(name: NormalName) -> Draft:
    aten = "at::native" in name.scope
    draft = Draft("multi-tensor", "aten" if aten else "apex" if name.arguments else None)
    draft.token(name.base, "one launch over a list of tensors")
    parts = split_arguments(name.arguments)
    if len(parts) < 2 or (name.truncated and len(parts) == 2 and "<" not in parts[1]):
        return draft.abstain("multi_tensor_apply_kernel without its functor: optimizer, norm, copy or arithmetic")
    functor = head(parts[1])
    operation = head(parts[2]) if len(parts) > 2 else ""
    draft.set("functor", functor, "second template argument")
    draft.token(functor, "what is done to every element")
    types = split_arguments(inside(parts[1], f"{functor}<") or "")
    kind = dtype_of(types[0]) if types else None
    if _OPTIMIZERS.search(functor):
        draft.kind("optimizer", _optimizer(functor), f"functor {functor} updates parameters")
    elif _NORMS.search(functor):
        draft.kind("reduction", "norm", f"functor {functor}: a norm over the list")
    elif operation == "Copy" or functor in ("CopyFunctor", "ZeroFunctor"):
        draft.kind(
            "memory", "foreach_zero" if functor == "ZeroFunctor" else "foreach_copy", f"{functor} {operation}".strip()
        )
        pair = split_arguments(inside(parts[2], "Copy<") or "") if operation == "Copy" else types
        if functor == "UnaryOpFunctor":
            draft.types("element type of the functor", a=kind, out=kind)
        elif len(pair) >= 2:
            draft.types("source and target types", a=dtype_of(pair[1]), out=dtype_of(pair[0]))
        return draft
    else:
        draft.kind("elementwise", _foreach(functor, operation), f"functor {functor}: arithmetic by element")
    draft.types("element type of the functor", a=kind)
    return draft


def _optimizer(functor: str) -> str:
    found = _OPTIMIZERS.search(functor)
    return found.group().lower() if found else "optimizer"


def _foreach(functor: str, operation: str) -> str:
    word = next((op for mark, op in _OPERATIONS.items() if mark in operation), None)
    if functor.startswith("PointwiseOp"):
        return {"div": "foreach_addcdiv", "mul": "foreach_addcmul"}.get(word or "", "foreach_pointwise")
    if functor in ("ScaleFunctor", "AxpbyFunctor"):
        return functor.removesuffix("Functor").lower()
    return f"foreach_{word or operation.lower() or 'elementwise'}"
