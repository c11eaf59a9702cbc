"""nvjet, the GEMMs of cuBLAS since CUDA 12.8: three grammars, all on tensor cores.

``nvjet_[sm90_]tst_128x256_64x4_2x1[_2cta]_v_bz[_coopA][_splitK][_bias]_TNT`` on Hopper and data-centre Blackwell,
``nvjet_sm121_tst_mma_192x144x64_2_48x72x64_tmaAB_bz_TNNN`` on consumer Blackwell. NVIDIA does not document it; the
decoding follows measurements and the launching ops' strides.
"""

from __future__ import annotations

import re

from warpline.kernels.draft import Draft
from warpline.kernels.grammar import SHAPE2, SHAPE3, tokens_of
from warpline.kernels.normalise import NormalName

_LETTERS = {"h": "f16", "t": "bf16", "s": "f32", "q": "e4m3", "r": "e5m2", "o": "e2m1", "d": "f64"}
_ACCUMULATORS = {"s": "f32", "h": "f16", "d": "f64"}
_TYPES = re.compile(r"[htsqrodi]{3}|[htsqrodi]{5}")
_LAYOUT = re.compile(r"[NT]{3,4}")
_SCALE = re.compile(r"([AB])vec(\d+)(U?E\dM\d)")
_NOTES = {
    "h": "raster order of the tiles: horizontal",
    "v": "raster order of the tiles: vertical",
    "bz": "beta is zero: C is not read",
    "badd": "C is added",
    "bx": "other beta",
    "coopA": "two consumer warpgroups share the A side",
    "coopB": "two consumer warpgroups share the B side",
    "2cta": "Blackwell's MMA of a pair of thread blocks",
    "bias": "adds a bias",
    "mma": "warp-level matrix instructions",
    "tmaAB": "A and B loaded by TMA",
    "algo2": "variant of the algorithm",
}


def decode(name: NormalName) -> Draft | None:
    """Names that start with ``nvjet_``."""
    if not name.text.startswith("nvjet_"):
        return None
    draft = Draft("nvjet", "cublas")
    draft.token("nvjet", "GEMM generator of cuBLAS, tensor cores only")
    draft.kind("gemm", "gemm", "nvjet is cuBLAS' GEMM family", tensor_core=True)
    tokens = tokens_of(name.text, name.truncated)[1:]
    shapes: list[str] = []
    for token in tokens:
        _token(draft, token, shapes)
    return draft


def _token(draft: Draft, token: str, shapes: list[str]) -> None:
    if token.startswith("sm") and token[2:].rstrip("af").isdigit():
        draft.set("arch", token.rstrip("af"), f"the token {token}")
        draft.token(token, "architecture the kernel was built for")
    elif "dtype" not in draft.reasons and _TYPES.fullmatch(token):
        _types(draft, token)
    elif SHAPE3.fullmatch(token):
        shapes.append(token)
        if len(shapes) == 1:
            draft.set("tile", token, f"{token}: first shape")
            draft.token(token, "tile of a thread block, M x N x K")
        else:
            draft.token(token, "tile of a warp")
    elif SHAPE2.fullmatch(token):
        shapes.append(token)
        _shape(draft, token, shapes)
    elif token.isdigit() and shapes and "stages" not in draft.values:
        draft.set("stages", int(token), "the number after the tile")
        draft.token(token, f"{token} stages in flight along K")
    elif token == "splitK":
        draft.set("split_k", True, token)
        draft.token(token, "K is split; splitKreduce adds the parts afterwards")
    elif _LAYOUT.fullmatch(token):
        draft.set("layout", token, f"{token}: BLAS op letters of A and B, then the output's side")
        draft.token(token, "op of A, op of B (T = transposed), then which side is the instruction's M")
    elif (scale := _SCALE.fullmatch(token)) is not None:
        draft.token(token, f"one {scale.group(3)} scale per {scale.group(2)} elements of {scale.group(1)}")
    elif token.startswith("alignCD") and token[7:].isdigit():
        draft.set("alignment", int(token[7:]), token)
        draft.token(token, f"C and D aligned to {token[7:]} elements")
    elif token in _NOTES:
        draft.token(token, _NOTES[token])


def _shape(draft: Draft, token: str, shapes: list[str]) -> None:
    if len(shapes) == 1:
        draft.set("tile", token, f"{token}: first shape")
        draft.token(token, "tile of a thread block")
    elif len(shapes) == 2:
        depth, stages = token.split("x")
        draft.set("tile", f"{shapes[0]}x{depth}", f"{shapes[0]} and the K block of {token}")
        draft.set("stages", int(stages), f"{token}: K block x stages")
        draft.token(token, f"K block of {depth}, {stages} stages in flight")
    elif len(shapes) == 3:
        draft.set("cluster", token, f"{token}: third shape")
        draft.token(token, "thread-block cluster")


def _types(draft: Draft, token: str) -> None:
    if len(token) == 3:
        first, compute, last = token[0], token[1], token[2]
        second = first
    else:
        first, second, compute, last = token[0], token[1], token[3], token[4]
    kinds = [_LETTERS.get(letter) for letter in (first, second, last)]
    draft.types(
        f"{token}: letters of the operands, the computation and the output",
        a=kinds[0],
        b=kinds[1],
        out=kinds[2],
        acc=_ACCUMULATORS.get(compute),
    )
    draft.token(token, f"A {kinds[0]}, B {kinds[1]}, accumulated in {_ACCUMULATORS.get(compute)}, output {kinds[2]}")
