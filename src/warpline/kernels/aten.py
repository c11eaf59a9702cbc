"""PyTorch's native CUDA kernels: the base identifier gives the access pattern, the functor gives the op.

``elementwise`` kernels: ``vectorized_`` (contiguous, with the access width), ``unrolled_`` (with casts or irregular
strides), plain (strided). AT_DISPATCH case numbers (``#12``) are never decoded: they differ between releases. With a
run-time cast (``LoadWithCast``), one data type is not in the name.
"""

from __future__ import annotations

from warpline.kernels.catalogue import Catalogue, CatalogueEntry
from warpline.kernels.draft import Draft
from warpline.kernels.functors import op_name, read_functor
from warpline.kernels.grammar import head, inside, is_integer
from warpline.kernels.normalise import NormalName, split_arguments
from warpline.kernels.types import dtype_of

WARP = 32
_ELEMENTWISE = {
    "vectorized_elementwise_kernel": (1, "contiguous"),
    "vectorized_templated_elementwise_kernel": (1, "contiguous"),
    "unrolled_elementwise_kernel": (0, "unrolled"),
    "unrolled_elementwise_kernel_for_multi_outputs": (1, "several outputs"),
    "elementwise_kernel": (2, "strided"),
    "elementwise_kernel_manual_unroll": (2, "strided, unrolled by hand"),
    "elementwise_kernel_with_index": (1, "value from the index"),
    "legacy_elementwise_kernel": (2, "strided"),
    "kernelPointwiseApply1": (0, "strided"),
    "kernelPointwiseApply2": (0, "strided"),
    "kernelPointwiseApply3": (0, "strided"),
}
_TABLE = Catalogue("aten")
_FOREIGN = ("vllm", "sglang", "flashinfer", "fbgemm", "tensorrt", "cudnn", "cub::", "thrust", "transformer_engine")


def decode(name: NormalName) -> Draft | None:
    """Kernels of ``at::native`` and their bare identifiers."""
    base = name.base
    if any(mark in name.scope for mark in _FOREIGN):
        return None
    if base in _ELEMENTWISE:
        return _elementwise(name)
    if base == "reduce_kernel":
        return _reduce(name)
    entry = _TABLE.find(base)
    if entry is None and name.truncated and not name.arguments:
        entry = _cut(name)
    if entry is None:
        return None
    draft = Draft("aten", "aten")
    draft.token(base, entry.op.replace("_", " "))
    draft.kind(entry.kernel_class, entry.op, f"{base} of ATen", tensor_core=entry.tensor_core)
    draft.set("direction", entry.direction, base)
    _DETAILS.get(entry.op, _plain)(draft, name)
    return draft


def _cut(name: NormalName) -> CatalogueEntry | None:
    if "at::native" not in name.scope and "at::cuda" not in name.scope:
        return None
    if any(kernel.startswith(name.base) for kernel in _ELEMENTWISE) and len(name.base) > 10:
        return CatalogueEntry("elementwise", "elementwise")
    return _TABLE.complete(name.base)


_ALSO = {
    "clamp": "; ReLU is one with a minimum of 0",
    "clamp_min": "; ReLU is one with a minimum of 0",
    "binary": " with a number as one operand, such as the scale of attention scores; which op is in its own arguments",
}
"""What users call such an op."""


def _elementwise(name: NormalName) -> Draft:
    position, shape = _ELEMENTWISE[name.base]
    draft = Draft("aten", "aten")
    draft.token(name.base, f"a few elements per thread, {shape}")
    parts = split_arguments(name.arguments)
    draft.kind("elementwise", "elementwise", f"{name.base} of ATen")
    if name.base.startswith("vectorized") and parts and is_integer(parts[0]):
        draft.set("vector_width", int(parts[0]), "first template argument: elements per access")
        draft.token(parts[0], f"{parts[0]} elements per access")
    # Names that someone shortened by hand have the functor alone.
    at = position if len(parts) > position else 0 if len(parts) == 1 and not is_integer(parts[0]) else None
    functor = read_functor(parts[at], name.truncated) if at is not None else None
    if functor is None:
        if name.truncated:
            _partial(draft, name.arguments.rsplit("::", 1)[-1].rsplit("<", 1)[-1])
        return draft
    draft.set("functor", functor.name, "the functor in the template arguments")
    draft.kind(functor.kernel_class, functor.op, f"functor {functor.name}")
    draft.token(functor.name, f"the op: {functor.op}{_ALSO.get(functor.op, '')}")
    if functor.op.endswith("_backward"):
        draft.set("direction", "bwd", functor.name)
    cast = "LoadWithCast" in name.arguments or "StoreWithCast" in name.arguments or "gpu_kernel_impl<" in name.arguments
    if name.base == "unrolled_elementwise_kernel" and name.truncated:
        cast = True
    if cast:
        draft.token(
            "LoadWithCast / gpu_kernel_impl", "types are converted at run time: not all of them are in the name"
        )
        compute = functor.a or functor.out
        draft.types("type that the functor computes in; the tensors are cast at run time", acc=compute)
    else:
        draft.types(f"types of {functor.name}", a=functor.a, b=functor.b, out=functor.out)
    return draft


def _partial(draft: Draft, start: str) -> None:
    """A functor truncated by the profiler: accepted only if its start matches one op."""
    if start.startswith("direct_cop"):
        draft.kind("memory", "copy", f"functor starts with {start}")
    elif start.startswith("FillFunct"):
        draft.kind("memory", "fill", f"functor starts with {start}")


def _warp_rows(log_elements: int) -> str:
    elements = 1 << log_elements
    own = f"each thread reduces {elements // WARP} of them, then " if elements > WARP else ""
    steps = min(log_elements, WARP.bit_length() - 1)
    return f"rows of up to {elements} elements (log2), one warp each: {own}{steps} warp shuffles, no shared memory"


def _reduce(name: NormalName) -> Draft:
    draft = Draft("aten", "aten")
    draft.token("reduce_kernel", "reduces one or more dimensions")
    draft.kind("reduction", "reduce", "reduce_kernel of ATen")
    parts = split_arguments(inside(name.arguments, "ReduceOp<") or "")
    if len(parts) < 2:
        return draft
    operation = parts[1]
    identifier = head(operation)
    wrapped = split_arguments(inside(operation, "func_wrapper_t<") or "") if identifier == "func_wrapper_t" else []
    if len(wrapped) > 1:
        identifier = head(wrapped[1])
    op = op_name(identifier)
    draft.set("functor", identifier, "the reduction's operation")
    draft.set("op", op, f"operation {identifier}")
    draft.token(identifier, f"the reduction: {draft.values['op']}")
    out = dtype_of(parts[3]) if len(parts) > 3 else None
    accumulated = dtype_of(wrapped[0]) if wrapped else None
    inner = split_arguments(inside(operation, "Ops<") or inside(operation, "sum_functor<") or "")
    if len(inner) > 1 and accumulated is None:
        accumulated = dtype_of(inner[1])
    if identifier == "sum_functor":
        summed = split_arguments(inside(operation, "sum_functor<") or "")
        accumulated = dtype_of(summed[1]) if len(summed) > 1 else None
    if not (name.truncated and len(parts) < 4):
        draft.types(
            "types of ReduceOp: input, operation, index, output", a=dtype_of(parts[0]), out=out, acc=accumulated
        )
    return draft


def _plain(draft: Draft, name: NormalName) -> None:
    parts = split_arguments(name.arguments)
    kinds = [dtype_of(part) for part in parts]
    first = next((kind for kind in kinds if kind in ("f16", "bf16", "f32", "f64", "cf32", "cf64", "e4m3")), None)
    if first is not None and kinds.index(first) <= 5:
        draft.types("first floating-point type argument", a=first)


def _softmax(draft: Draft, name: NormalName) -> None:
    parts = split_arguments(name.arguments)
    if name.base.startswith("softmax_warp") and len(parts) >= 4:
        draft.types(
            "input, output and accumulator", a=dtype_of(parts[0]), out=dtype_of(parts[1]), acc=dtype_of(parts[2])
        )
        if is_integer(parts[3]) and int(parts[3]) < 20:
            draft.token(parts[3], _warp_rows(int(parts[3])))
        if len(parts) > 4 and parts[4] == "true":
            draft.set("op", "log_softmax", "fifth argument: is_log_softmax")
    elif name.base.startswith("softmax_warp"):
        draft.token(name.base, "softmax of short rows, one warp each: it reduces a row by shuffles, in registers")
    elif name.base.startswith("cunn_SoftMax") and len(parts) >= 4:
        types = [kind for part in parts if (kind := dtype_of(part)) is not None]
        if len(types) >= 3:
            draft.types("input, accumulator and output", a=types[0], acc=types[1], out=types[2])
        if "LogSoftMax" in name.arguments:
            draft.set("op", "log_softmax", "the epilogue is LogSoftMax")


def _cat(draft: Draft, name: NormalName) -> None:
    parts = split_arguments(name.arguments)
    if parts and not parts[0].endswith(">"):
        draft.types("element type", a=dtype_of(parts[0]), out=dtype_of(parts[0]))
    elif parts and "OpaqueType<" in parts[0]:
        draft.token(head(parts[0]), f"{inside(parts[0], 'OpaqueType<')} bytes per element; the type is hidden")


def _random(draft: Draft, name: NormalName) -> None:
    for mark in ("normal", "uniform", "exponential", "bernoulli", "random_from_to", "random", "cauchy", "geometric"):
        if f"{mark}_" in name.arguments or f"{mark}<" in name.arguments:
            draft.set("op", mark, f"{mark} in the functor")
            draft.token(mark, "the distribution")
            return


def _layer_norm(draft: Draft, name: NormalName) -> None:
    _plain(draft, name)
    parts = split_arguments(name.arguments)
    if len(parts) > 1 and dtype_of(parts[0]) and dtype_of(parts[1]):
        draft.types("element type and accumulator", acc=dtype_of(parts[1]))
    if (
        len(parts) == 3
        and parts[2] == "true"
        and name.base in ("vectorized_layer_norm_kernel", "layer_norm_grad_input_kernel")
    ):
        draft.set("op", "rms_norm", "third argument: rms_norm")


def _sort(draft: Draft, name: NormalName) -> None:
    types = [kind for part in split_arguments(name.arguments) if (kind := dtype_of(part)) is not None]
    draft.types("first type argument: the keys", a=types[0] if types else None)


def _quiet(draft: Draft, name: NormalName) -> None:
    """Kernels whose type arguments are indices or byte counts."""


_DETAILS = {
    "softmax": _softmax,
    "cat": _cat,
    "random": _random,
    "layer_norm": _layer_norm,
    "sort": _sort,
    "topk": _sort,
    "scan": _sort,
    "gather": _quiet,
    "scatter_gather": _quiet,
    "index": _quiet,
    "nonzero": _quiet,
}
