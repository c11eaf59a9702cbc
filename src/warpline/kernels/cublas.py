"""cuBLAS's template kernels: matrix-vector products (GEMV), small GEMMs, split-K reductions, epilogues.

None of them uses tensor cores. A "matmul" with one row usually runs one of these.
"""

from __future__ import annotations

import re

from warpline.kernels.draft import Draft
from warpline.kernels.grammar import is_integer
from warpline.kernels.normalise import NormalName, split_arguments
from warpline.kernels.types import dtype_of

_TENSOR = re.compile(r"cublasGemvTensor\w{0,80}+<([\w: ]{1,200}+)>")
_OLD = re.compile(r"(?:magma_|fermi|sm\d+_|kepler_|maxwell_)?([sdczhCSDZ])gemm\w*")
_SOLVERS = ("getrf", "getrs", "getrfs", "potrf", "geqrf", "trsm", "trsv", "laswp", "ipiv", "syevj", "gesvd", "larft")


def decode(name: NormalName) -> Draft | None:
    """Base identifiers that only cuBLAS, cuBLASLt, cuSOLVER and cuSPARSE use."""
    base = name.base
    if base == "kernel" and ("gemvx" in name.scope or "cublasGemv" in name.arguments):
        return _gemv(name, "internal::gemvx::kernel")
    if base.startswith(("gemv2T", "gemv2N", "gemvNSP", "gemvx", "gemvSN", "gemv1")):
        return _gemv(name, base)
    if base.startswith(("splitKreduce", "splitkreduce")):
        return _split_k(name)
    if base.startswith(("gemmSN_", "gemmk1_", "gemm_kernel2x2", "gemmNx")):
        return _small(name)
    if base.startswith(("reduce_1Block_kernel", "dot_kernel", "asum_kernel", "nrm2_kernel", "iamax_kernel")):
        draft = _draft(name, "one step of a BLAS-1 reduction (dot, nrm2, asum)")
        return draft.kind("reduction", base.split("_kernel")[0], f"{base} of cuBLAS reduces vectors to a number")
    if base == "globalKernel" and "epilogue" in name.scope:
        draft = _draft(name, "a GEMM's epilogue (bias, activation) run as its own kernel")
        return draft.kind("elementwise", "gemm_epilogue", "cublasLt::epilogue: bias and activation by element")
    if base.startswith(("transpose_readWrite", "geam_kernel")):
        return _draft(name, "transposes a matrix").kind("layout", "transpose", base)
    if base.startswith(("scal_kernel", "axpy_kernel", "scal_64addr")):
        return _draft(name, "BLAS-1 vector update").kind("elementwise", base.split("_")[0], base)
    if base.startswith(_SOLVERS) or "trsm" in base[:12]:
        draft = _draft(name, "a step of a dense factorisation or triangular solve")
        draft.library = "cusolver"
        return draft.kind("other", "linear_solve", f"{base} belongs to a factorisation or triangular solve")
    if base in ("partition_kernel", "csr_partition_kernel") and "cusparse" in name.scope:
        draft = _draft(name, "divides the rows of a sparse matrix among the blocks of the product that follows")
        draft.library = "cusparse"
        return draft.kind("index", "sparse_partition", f"cusparse::{base} looks up where each block begins")
    return _old_gemm(name)


def _draft(name: NormalName, meaning: str) -> Draft:
    draft = Draft("cublas template", "cublas")
    draft.token(name.base, meaning)
    return draft


def _gemv(name: NormalName, token: str) -> Draft:
    draft = Draft("cublas template", "cublas")
    draft.token(token, "matrix-vector product (GEMV) on CUDA cores: memory-bound")
    draft.kind("gemm", "gemv", f"{token} is cuBLAS' matrix-vector product", tensor_core=False)
    kinds = [
        kind for part in split_arguments(name.arguments)[:8] if (kind := dtype_of(part)) not in (None, "s32", "s64")
    ]
    if len(kinds) >= 4:
        draft.types("types of A, x, y and the computation", a=kinds[0], b=kinds[1], out=kinds[2], acc=kinds[3])
        draft.token(", ".join(kind for kind in kinds[:4] if kind), "types of A, x, y and the computation")
    return draft


def _split_k(name: NormalName) -> Draft:
    draft = Draft("cublas template", "cublas")
    draft.token(name.base, "adds the partial results of a split-K GEMM, then applies the epilogue")
    draft.kind("reduction", "split_k_reduce", "splitKreduce adds the partial sums of a split-K GEMM")
    return draft


def _small(name: NormalName) -> Draft:
    draft = Draft("cublas template", "cublas")
    what = (
        "small-N GEMM" if name.base.startswith("gemmSN") else "GEMM with K = 1" if "k1" in name.base else "small GEMM"
    )
    draft.token(name.base, f"{what} on CUDA cores")
    draft.kind("gemm", "gemm", f"{name.base} is a {what}", tensor_core=False)
    tensors = [dtype_of(found) for found in _TENSOR.findall(name.arguments)]
    if len(tensors) >= 3:
        draft.types("element types of the tensors A, B and C", a=tensors[0], b=tensors[1], out=tensors[2])
    layout = name.base.split("_")[1] if name.base.startswith("gemmSN_") else ""
    if layout in ("NN", "TN", "NT", "TT"):
        draft.set("layout", layout.lower(), f"{layout} in {name.base}")
        draft.token(layout, "op of A and B")
    compute = next((dtype_of(part) for part in split_arguments(name.arguments) if not is_integer(part)), None)
    if compute not in (None, "s32", "s64", "bool"):
        draft.types(draft.reasons.get("dtype", "first type argument"), acc=compute)
    return draft


def _old_gemm(name: NormalName) -> Draft | None:
    found = _OLD.match(name.base)
    if found is None or name.base.startswith(("sgemmx_kernel_ref",)):
        return None
    letter = found.group(1).lower()
    draft = Draft("cublas template", "cublas")
    draft.token(name.base, "an older GEMM on CUDA cores")
    draft.kind("gemm", "gemm", f"{name.base}: BLAS letter without instruction digits", tensor_core=False)
    kind = {"s": "f32", "d": "f64", "c": "cf32", "z": "cf64", "h": "f16"}[letter]
    if "Ex" not in name.base:
        draft.types(f"BLAS letter {letter}", a=kind, b=kind, out=kind, acc=kind)
    return draft
