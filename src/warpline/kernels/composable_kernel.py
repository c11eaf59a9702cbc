"""Composable Kernel: ``ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm…<layouts, types, …>>`` and
``ck_tile::kentry<…, ck_tile::Rmsnorm2dFwd<…>>``.

``xdl`` and ``wmma`` are matrix instructions, ``dl`` and ``dpp`` vector units. Sources: ``include/ck`` and
``include/ck_tile`` of Composable Kernel, where ``bhalf_t`` is ``unsigned short``.
"""

from __future__ import annotations

import re
from itertools import groupby

from warpline.kernels.catalogue import Catalogue
from warpline.kernels.draft import Draft
from warpline.kernels.grammar import head, inside, is_integer
from warpline.kernels.identity import MATRIX_CLASSES
from warpline.kernels.normalise import NormalName, split_arguments
from warpline.kernels.types import dtype_of

_TILE_SHAPE = re.compile(r"TileGemmShape<(?:ck_tile::)?sequence<(\d+), (\d+), (\d+)>")
_PROBLEM = re.compile(r"Problem\w{0,80}<([\w: ]{1,80}), ([\w: ]{1,80}),")
_BF16 = "unsigned short"
_BLOCK_SIZES = {"64", "128", "256", "512", "1024"}
"""Threads of a block: whole waves of 64."""
_PASSES = {
    "bwd_data": ("conv_dgrad", "bwd"),
    "bwd_weight": ("conv_wgrad", "bwd"),
    "BackwardData": ("conv_dgrad", "bwd"),
    "BackwardWeight": ("conv_wgrad", "bwd"),
    "fwd": ("conv_fprop", "fwd"),
    "Forward": ("conv_fprop", "fwd"),
}
_ARCHITECTURE = re.compile(r"gfx\w{1,6}_t$")
"""The first argument of ``ck_tile::kentry`` since 2025: ``ck_tile::gfx950_t``."""
_TABLE = Catalogue("composable_kernel")


def decode(name: NormalName) -> Draft | None:
    """Kernels of Composable Kernel and of its tile library."""
    if not name.scope.startswith(("ck::", "ck_tile::")):
        return None
    draft = _kind(name)
    if draft is not None and draft.values["kernel_class"] in ("gemm", "conv", "moe"):
        _operands(draft, name)
    elif draft is not None and (problem := _PROBLEM.search(name.text)) is not None:
        draft.types("types of the problem", a=_element(problem.group(1)))
    return draft


def _operands(draft: Draft, name: NormalName) -> None:
    """Types and tile of a GEMM: the layouts come first, then the types of A, B and the accumulator."""
    if (shape := _TILE_SHAPE.search(name.text)) is not None:
        draft.set("tile", "x".join(shape.groups()), shape.group())
    gridwise = re.search(r"\b(Gridwise\w+)<", name.text)
    if gridwise is None:
        problem = re.search(r"Gemm\w{0,40}Problem\w{0,80}<([\w: ]{1,80}), ([\w: ]{1,80}), ([\w: ]{1,80}),", name.text)
        if problem is not None:
            a, b, acc = (_element(one) for one in problem.groups())
            draft.types("types of the problem", a=a, b=b, acc=acc)
        return
    arguments = split_arguments(inside(name.text, f"{gridwise.group(1)}<") or "")
    draft.set("tile", _tile(arguments), f"of a block of {gridwise.group(1)}")
    kinds = [kind for kind in map(_element, arguments[:10]) if kind is not None]
    layouts = [one.rsplit("::", 1)[-1] for one in arguments[:2]]
    if len(kinds) >= 3:
        acc = next((kind for kind in kinds[2:4] if kind in ("f32", "f64", "s32")), None)
        draft.types(f"types of {gridwise.group(1)}", a=kinds[0], b=kinds[1], acc=acc)
    if set(layouts) <= {"RowMajor", "ColumnMajor"} and len(layouts) == 2 and draft.values["kernel_class"] != "conv":
        layout = "".join("t" if one == "RowMajor" else "n" for one in layouts)
        draft.set("layout", layout, f"{layouts[0]} A, {layouts[1]} B (n is column-major, as in BLAS)")


def _tile(arguments: list[str]) -> str | None:
    """M x N x K of a block, which follow the block's size in the first run of integers."""
    runs = groupby(arguments, is_integer)
    numbers = next((list(run) for is_run, run in runs if is_run), [])
    size = next((place for place, one in enumerate(numbers[:3]) if one in _BLOCK_SIZES), None)
    return None if size is None or len(numbers) < size + 4 else "x".join(numbers[size + 1 : size + 4])


def _element(text: str) -> str | None:
    text = text.strip()
    return "bf16" if text == _BF16 or text.endswith("bhalf_t") else dtype_of(text)


def _kind(name: NormalName) -> Draft | None:
    draft = Draft("composable kernel", "ck")
    what = name.base if name.base != "kentry" else _entry(name)
    draft.token(what, "Composable Kernel")
    entry = _TABLE.find(what)
    if entry is None:
        return draft.abstain("a kernel of Composable Kernel that is not known")
    matrix = entry.tensor_core
    if entry.kernel_class in MATRIX_CLASSES and matrix is None:
        words = f"{what} {name.text[:400]}".lower()
        vector = re.search(r"_(dl|dpp)(_|\b)", what) is not None
        matrix = True if re.search(r"xdl|wmma|mfma|gemm_?pipeline|flatmm", words) else False if vector else None
    draft.kind(entry.kernel_class, entry.op, f"{what}: {entry.op.replace('_', ' ')}", tensor_core=matrix)
    if entry.kernel_class == "conv":
        op, direction = next((kind for word, kind in _PASSES.items() if word in what), ("conv", None))
        draft.set("op", op, what)
        draft.set("direction", direction, what)
    elif entry.direction:
        draft.set("direction", entry.direction, what)
    return draft


def _entry(name: NormalName) -> str:
    """What ``ck_tile::kentry`` runs: its first argument that is a type."""
    arguments = (one for one in split_arguments(name.arguments) if not is_integer(one))
    return head(next((one for one in arguments if not _ARCHITECTURE.search(one)), ""))
