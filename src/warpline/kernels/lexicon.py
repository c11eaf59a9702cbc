"""The fallback: whole words of an unknown kernel's identifier (user Triton, CUDA and TileLang kernels).

Strong words name an operation ("rmsnorm", "all_to_all"); the first match wins, in order. Weak words ("copy", "sum",
"index") count only if all of them agree. Only the class is decoded: no data types, no tensor cores.
"""

from __future__ import annotations

import re

from warpline.kernels.draft import Draft
from warpline.kernels.inductor import SPECIALISATION
from warpline.kernels.normalise import NormalName

MAX_WORDS = 24
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,200}")
_STRONG = (
    (
        "comm",
        "all_reduce allreduce all_gather allgather reduce_scatter reducescatter all_to_all alltoall a_2_a sendrecv "
        "nvshmem",
    ),
    ("moe", "moe expert experts routing router topk_route"),
    (
        "norm",
        "rmsnorm layernorm groupnorm batchnorm qknorm rms_norm layer_norm group_norm batch_norm instance_norm norm "
        "rms_normalize",
    ),
    ("quant", "quantize dequantize quant dequant mxfp8 nvfp4 fp8_cast cast_to_fp8"),
    ("conv", "conv2d conv3d conv1d convolution convolve wgrad dgrad fprop conv bwd_weight bwd_data"),
    (
        "attention",
        "attention attn fmha flashattention flash_attn mha mqa paged_decode paged_prefill mla_decode mla_prefill "
        "mla_reduce",
    ),
    ("reduction", "splitk_reduce split_k_reduce"),
    ("layout", "interleave repack unswizzle"),
    (
        "gemm",
        "gemm matmul gemv bmm sgemm hgemm dgemm scaled_mm mm mul_mat matrix_mul matrix_multiply matrix_multiplication "
        "matrixmul mfma wmma",
    ),
    ("other", "fft ifft fft2d"),
    ("softmax", "softmax logsoftmax"),
    ("optimizer", "adam adamw sgd adagrad optimizer lamb"),
    ("sort_scan", "topk argsort"),
    ("elementwise", "rope rotary silu gelu swiglu geglu sigmoid relu elementwise pointwise axpy saxpy"),
    ("layout", "to_dense transpose permute swizzle nchw nhwc im2col col2im reformat rearrange"),
    ("pooling", "maxpool avgpool pooling max_pool avg_pool"),
    ("rng", "dropout philox random curand rng"),
    ("sort_scan", "cumsum sort radix"),
)
_WEAK = {
    "memory": "copy memcpy memset fill zero cat concat cache store",
    "index": "gather scatter index indices embedding lookup slot slots locs positions position ids",
    "reduction": "reduce reduction sum mean argmax amax absmax histogram bincount prod",
    "elementwise": "add mul act activation bias clamp scale exp div sub timestep",
}
_NOTHING: frozenset[str] = frozenset()
_STRONG_WORDS = tuple((kernel_class, tuple(words.split())) for kernel_class, words in _STRONG)
_STRONG_STARTS = frozenset(mark.split("_")[0] for _, marks in _STRONG_WORDS for mark in marks)
"""A name without any of these words has no strong word."""
COLLECTIVES = dict(_STRONG_WORDS)["comm"]
"""Words of kernels that communicate."""
_WEAK_WORDS = {word: kernel_class for kernel_class, words in _WEAK.items() for word in words.split()}
_SUBJECTS = {
    "attention": "cache kvcache metadata indices slot slots locs concat cast copy pack softmax",
    "comm": "precompute count metadata",
    "conv": "state states window windows cache scatter post",
    "rng": "sample rejection",
    "sort_scan": "pack unpack mask remap fill compact metadata ids idx id indices lens scatter combine finalize "
    "schedule routes localize globalize sum swa transform map weighted",
}
"""Words which show that a strong word is the subject and not the operation: ``_pack_topk_ids_kernel``."""
_DOUBTS = "score lora mamba ssm kda gdn verify draft spec state states"
"""Subjects that make weak words unreliable."""
_EXCEPT = {kernel_class: frozenset(words.split()) for kernel_class, words in _SUBJECTS.items()}
_DOUBT = frozenset(_DOUBTS.split())


def decode(name: NormalName) -> Draft:
    """Always answers: with a class if the words prove one, otherwise with an abstention."""
    draft = Draft("words", None)
    base = SPECIALISATION.sub("", name.base[:300])
    if not _IDENTIFIER.fullmatch(base):
        return draft.abstain("not a kernel name of a known family")
    words = [word.lower() for word in _WORDS.findall(base)][:MAX_WORDS]
    if name.truncated and not name.arguments and words:
        words = words[:-1]
    joined = "_" + "_".join(words) + "_"
    draft.token(base, "an identifier of an unknown library; decoded by its words")
    present = frozenset(words)
    for kernel_class, marks in _STRONG_WORDS if not present.isdisjoint(_STRONG_STARTS) else ():
        mark = next((mark for mark in marks if f"_{mark}_" in joined), None)
        if mark is None:
            continue
        if present & _EXCEPT.get(kernel_class, _NOTHING):
            continue
        if kernel_class == "quant" and present & {"gemm", "matmul", "mm"} and not present & {"quantize", "dequantize"}:
            continue
        return draft.kind(kernel_class, mark, f"the word {mark} in {base}")
    if name.truncated and not name.arguments:
        return draft.abstain(f"{base} is truncated, and the rest does not clearly name an operation")
    if present & _DOUBT:
        return draft.abstain(f"{base} belongs to no known family, and its words are ambiguous")
    votes = {_WEAK_WORDS[word]: word for word in words if word in _WEAK_WORDS}
    if len(votes) == 1:
        kernel_class, word = next(iter(votes.items()))
        return draft.kind(kernel_class, word, f"the word {word} in {base}")
    if votes:
        return draft.abstain(f"the words of {base} point to different classes: {', '.join(sorted(votes))}")
    return draft.abstain(f"{base} belongs to no known family, and its words name no operation")
