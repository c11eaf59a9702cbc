"""Odd values: what a damaged or hostile file may hold in a place that expects a text, a number or a list."""

from __future__ import annotations

import copy
import random
from typing import Any

from tests.fuzz.raw_json import Raw

CONTROLS = [
    "\x1b[31m",
    "\x1b]0;title\x07",
    "\x9b2J",
    "\x00",
    "\x08" * 4,
    "\x7f",
    "\r",
    "\n",
    "\t",
    "\u202e",
    "\u2066",
    "\u200f",
]
MARKUP = [
    "[bold]x[/bold]",
    "[/]",
    "[red]",
    "[link=http://x]y[/link]",
    "<b>&amp;</b>",
    "| a | b |",
    "`x`",
    "=1+1",
    '","',
    "[/red",
]
UNUSUAL = [
    "",
    " ",
    "\ud800",
    "\udfff\ud800",
    "\uffff",
    "e\u0301" * 20,
    "\U0001f680",
    "ß" * 64,
    "%s%n{0}",
    "null",
    "None",
    "nan",
]
LONG = [
    "a" * 5_000,
    "<" * 3_000,
    "void f<" * 800 + ">" * 800,
    "(" * 2_000 + ")" * 2_000,
    "x::" * 2_000,
    "[" * 4_000,
    "\n" * 500,
]
REPEATED = [
    "a",
    "_",
    " ",
    "0",
    ".",
    "::",
    "<",
    "(",
    "[",
    "a-",
    "x__",
    "-.",
    '\\"',
    ", ",
    "\t",
    "a.",
    "@",
    "/",
    "_x_",
    "\n",
]
FILES = [
    "/home/ada/model.py(12): forward",
    "train.py(999999999999999999999): f",
    "<string>(-1): <module>",
    "C:\\x\\y.py(1): g",
]
NUMBERS_AS_TEXT = ["0", "-1", "1e400", "9223372036854775808", "0x10", "１２", "1_000", "1.5", "inf", " 7"]
NAMES = [
    *(
        "ProfilerStep#0",
        "ProfilerStep#",
        "ProfilerStep#99999999999999999999",
        "Optimizer.step#Adam.step",
        "Optimizer.step#SGD.step",
    ),
    *(
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "Torch-Compiled Region: 0/0",
        "## Call CompiledFxGraph x ##",
    ),
    *(
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "nccl:all_reduce",
        "c10d::allreduce_",
    ),
    *(
        "cudaDeviceSynchronize",
        "cudaStreamSynchronize",
        "cudaGraphLaunch",
        "cudaMalloc",
        "cudaFree",
        "cudaEventRecord",
        "cudaStreamWaitEvent",
    ),
    *(
        "cudaMemcpyAsync",
        "cuLaunchKernelEx",
        "hipLaunchKernel",
        "cudaEventSynchronize",
        "cudaHostAlloc",
        "cudaEventQuery",
    ),
    *(
        "Memcpy DtoH (Device -> Pageable)",
        "Memcpy HtoD (Pinned -> Device)",
        "Memcpy DtoD (Device -> Device)",
        "Memset (Device)",
        "Memcpy (",
    ),
    *(
        "aten::mm",
        "aten::bmm",
        "aten::addmm",
        "aten::linear",
        "aten::convolution",
        "aten::convolution_backward",
        "aten::_softmax",
        "aten::item",
    ),
    *(
        "aten::_local_scalar_dense",
        "aten::copy_",
        "aten::to",
        "aten::_to_copy",
        "aten::cat",
        "aten::stack",
        "aten::native_layer_norm",
    ),
    *(
        "aten::_scaled_dot_product_flash_attention",
        "aten::_efficient_attention_forward",
        "aten::_foreach_add_",
        "aten::_fused_adamw_",
    ),
    *(
        "aten::nonzero",
        "aten::index",
        "aten::embedding",
        "aten::sort",
        "aten::max_pool2d_with_indices",
        "aten::mul",
        "aten::add_",
        "aten::empty",
    ),
    *(
        "autograd::engine::evaluate_function: AddmmBackward0",
        "AddmmBackward0",
        "nn.Module: Linear_0",
        "aten::zero_",
        "aten::_scaled_mm",
    ),
    *(
        "cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4",
        "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN",
        "triton_poi_fused_add_0",
    ),
    *(
        "ampere_sgemm_128x64_nn",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul>>(int)",
    ),
    *(
        "flash_fwd_kernel",
        "_ZN2at6native18elementwise_kernelILi128ELi4EEEvi",
        "Cijk_Ailk_Bljk_BBS_BH_MT128x128x32_MI32x32x8x1",
        "cudaLaunchKernel",
    ),
]
INTEGERS = [
    *(
        0,
        1,
        -1,
        2,
        7,
        127,
        128,
        255,
        256,
        -128,
        32768,
        65535,
        65536,
        2**31 - 1,
        2**31,
        -(2**31),
        -(2**31) - 1,
        2**32 - 1,
        2**32,
        2**32 + 7,
    ),
    *(2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1, 2**63, 2**64 - 1, 2**64, 10**30, -(10**30), 10**400),
]
FLOATS = [0.5, -0.5, -0.0, 1e-300, 1e15, 1e18, 9.3e18, -9.3e18, 1e300, 1.7e308, 0.1 + 0.2, 123456789.987654321]
NOT_FINITE = [float("nan"), float("inf"), float("-inf")]
RAW = [
    "1e999",
    "-1e999",
    "1e-999",
    "00012",
    "+5",
    ".5",
    "5.",
    "1.",
    "Infinity",
    "undefined",
    "'x'",
    '"\\u00"',
    '"\\x"',
    "0" * 400 + "1",
    "9" * 400,
    '"\x1b[2J"',
    '"\x00"',
    "tru",
    "[1,2",
    '{"a":',
]
SHAPES = [
    *([], [[]], [[4, 4], [4, 4]], [[-1, 4], [4]], [[0, 0], [0]], [[2**40, 2**40], [2**40]], [[4, 4]], "[[4,4],[4,4]]", [["a"]], [[[4, 4], [4, 4]], [2]]),
    *([[1] * 40] * 3, [None, None], [[None]], [[1.5, 2.5]], [[4, 4], [], [], []], {"a": [1]}, [[True, False]], [[10**30]], [[8, 8], [8, 8], [8, 8]] * 30),
]  # fmt: skip
DTYPES = [
    [],
    ["float", "float"],
    ["c10::BFloat16", "c10::Half"],
    ["", ""],
    [None],
    ["Scalar", "ScalarList", "TensorList"],
    "float",
    [["float"]],
    ["long int", "bool", "float8"],
    {"a": 1},
]


def own(value: Any) -> Any:
    """A copy: a later change must not change the lists above, or the next input would depend on this one."""
    return copy.deepcopy(value)


def text(chance: random.Random) -> str:
    """A text that may break whatever prints or parses it."""
    kinds = [CONTROLS, MARKUP, UNUSUAL, LONG, FILES, NUMBERS_AS_TEXT, NAMES, NAMES]
    one = chance.choice(chance.choice(kinds))
    if chance.random() < 0.3:
        other = chance.choice(chance.choice(kinds))
        at = chance.randint(0, len(other))
        return (other[:at] + one + other[at:])[:20_000]
    return one


def long_text(chance: random.Random) -> str:
    """A piece many times: what a pattern or a parser whose time grows faster than its text does not end on."""
    unit = chance.choice([*REPEATED, chance.choice(NAMES)])
    return unit * (chance.choice([3_000, 30_000, 100_000]) // len(unit)) + chance.choice(
        ["", "!", "\n", "\x00", "]", ")"]
    )


def deep_nesting(chance: random.Random) -> Raw:
    """Lists or objects within each other, as deep as parsers take."""
    before, after = chance.choice([("[", "]"), ('{"a":', "}"), ("[0,[", "],0]")])
    depth = chance.choice([60, 300, 900])
    return Raw(before * depth + "1" + after * depth)


def number(chance: random.Random) -> float:
    """A number, seldom one that makes sense."""
    pool: list[Any] = chance.choice([INTEGERS, INTEGERS, FLOATS, NOT_FINITE])
    chosen: float = chance.choice(pool)
    if isinstance(chosen, int) and chance.random() < 0.2:
        return chosen + chance.randint(-2, 2)
    return chosen


def nested(chance: random.Random, depth: int = 0) -> Any:
    """A small tree of lists and objects, sometimes a deep one."""
    if depth == 0 and chance.random() < 0.1:
        depth = chance.choice([5, 60, 2_000])
        return Raw(chance.choice(["[" * depth + "1" + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth]))
    if depth > 2 or chance.random() < 0.4:
        return anything(chance) if depth < 2 else number(chance)
    inner = [nested(chance, depth + 1) for _ in range(chance.randint(0, 4))]
    return inner if chance.random() < 0.5 else {text(chance)[:30]: value for value in inner}


def anything(chance: random.Random) -> Any:
    """A value of any type."""
    match chance.randrange(10):
        case 0 | 1:
            return None
        case 2 | 3:
            return number(chance)
        case 4 | 5:
            return text(chance)
        case 6:
            return chance.choice([True, False, [], {}, "", 0])
        case 7:
            return nested(chance)
        case 8:
            return own(chance.choice(SHAPES + DTYPES))
        case _:
            return Raw(chance.choice(RAW))
