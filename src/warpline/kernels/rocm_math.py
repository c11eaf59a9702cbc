"""AMD's libraries of mathematics: rocBLAS, rocSPARSE, rocSOLVER, rocFFT and rocRAND.

A name prints the routine that the kernel is a part of: ``rocblas_symv_kernel_upper…``,
``rocsparse::csrmvn_general_kernel`` (format csr, routine mv), ``rocsolver::…::getri_kernel_large1``,
``fft_rtc_fwd_len4096_…``. Routines are named as in BLAS and LAPACK. Sources: the libraries in ROCm/rocm-libraries.
"""

from __future__ import annotations

import re

from warpline.kernels.draft import Draft
from warpline.kernels.normalise import NormalName

_MATRIX = "(?:ge|sy|he|tr|gb|sb|hb|tb|sp|hp|tp)"
_FORMAT = "(?:dense|csr|csc|coo|ell|hyb|bs[rc]|gebs[rc]|sell|bell)"
_BLAS = (
    (re.compile(rf"{_MATRIX}mm|(?:sy|he)r2?k"), "gemm", "gemm"),
    (re.compile(rf"{_MATRIX}mv|ger|(?:sy|he|sp|hp)r2?(?![a-z])"), "gemm", "gemv"),
    (re.compile(r"t[rbp]s[vm]|trtri|tritri"), "other", "linear_solve"),
    (re.compile(r"dot|nrm2|asum|iama[xi]|iamin|reduction"), "reduction", "blas_reduction"),
    (re.compile(r"copy|swap|set_|memset"), "memory", "copy"),
    (re.compile(r"axpy|scal(?![a-z])|rot|dgmm|geam"), "elementwise", "vector_update"),
)
"""Routines of BLAS: products of matrices, and with vectors; triangular solves; updates of vectors."""
_SPARSE = (
    (re.compile(r"\w{0,40}?copy_scale"), "elementwise", "vector_update"),
    (re.compile(r"doti|kernel_nrm|\w{0,40}?_(?:max|min)_"), "reduction", "reduce"),
    (re.compile(r"\w{0,20}_transpose"), "layout", "transpose"),
    (re.compile(rf"\w{{0,40}}?{_FORMAT}2{_FORMAT}|prune_|nnz_|ell_width"), "layout", "convert_format"),
    (re.compile(rf"{_FORMAT}(?:x|_aos|i)*(?:mv|mm|gemm)|sddmm|gemvi|spgemm"), "gemm", "spmm"),
    (re.compile(r"gthr|sctr"), "index", "gather"),
    (re.compile(r"axpyi|roti|conjugate|scale_|\w{1,40}_scale"), "elementwise", "vector_update"),
)
"""Routines of rocSPARSE, of which all others solve, factorise, reorder or check."""
_SOLVER = (
    (re.compile(r"copy_trans"), "layout", "transpose"),
    (re.compile(r"(?:re)?init_|reset_"), "memory", "fill"),
    (re.compile(r"conj_in_place"), "elementwise", "vector_update"),
    *_BLAS,
)
"""Routines of rocSOLVER, of which all others factorise and solve."""
_FFT = (
    (
        re.compile(r"(?:fft|bluestein|chirp|twiddle)_|(?:r2c|c2r)_even_|sb(?:cc|rr|rc|cr)_\d|\w{1,40}_partial_pass"),
        "fft",
    ),
    (re.compile(r"(?:r2c|c2r|c2herm|herm2c|realc2c|real2complex|complex2real)_|apply_real_callback"), "fft_pack"),
)


def decode(name: NormalName) -> Draft | None:
    """Kernels of these libraries, by namespace or prefix."""
    base = name.base
    if base.startswith("rocblas_"):
        return _routine("rocblas", base.removeprefix("rocblas_"), name, _BLAS)
    if name.scope.startswith("rocsparse::"):
        return _routine("rocsparse", base, name, _SPARSE) or _rest("rocsparse", name, "sparse_solve")
    if name.scope.startswith("rocsolver::"):
        return _routine("rocsolver", base, name, _SOLVER) or _rest("rocsolver", name, "linear_solve")
    if "rocrand" in name.scope:
        draft = Draft("rocm library", "rocrand")
        draft.token(base, "random numbers")
        return draft.kind("rng", "random", f"{base} of rocRAND")
    for pattern, op in _FFT if not name.scope else ():
        if pattern.match(base):
            draft = Draft("rocm library", "rocfft")
            draft.token(base, "a Fourier transform, or one of its steps")
            return draft.kind("other", op, f"{base} is named as rocFFT names its kernels")
    return None


def _routine(
    library: str, base: str, name: NormalName, routines: tuple[tuple[re.Pattern[str], str, str], ...]
) -> Draft | None:
    for pattern, kernel_class, op in routines:
        if found := pattern.match(base):
            draft = Draft("rocm library", library)
            draft.token(found[0], f"{library}: {op.replace('_', ' ')}")
            # A product with a vector is bound by memory, and none uses matrix cores.
            return draft.kind(
                kernel_class, op, f"{name.base} of {library}", tensor_core=False if op == "gemv" else None
            )
    return None


def _rest(library: str, name: NormalName, op: str) -> Draft:
    draft = Draft("rocm library", library)
    draft.token(name.base, f"a step of a solver or factorisation of {library}")
    return draft.kind("other", op, f"{name.base} of {library}, which solves and factorises")
