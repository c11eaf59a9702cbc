"""What holds of every model: no odd input raises, work is never negative, and it grows with the batch."""

from __future__ import annotations

import json
from typing import Any

import pytest
from calls import BRAIN, LONG, SINGLE, call
from hypothesis import given
from hypothesis import strategies as st

from warpline.work import KernelLaunch, call_from_kineto, known_ops, why_no_work, work_of

SHAPES = st.lists(st.integers(0, 65), max_size=5)
TYPES = st.sampled_from(
    [
        "float",
        "c10::Half",
        "c10::BFloat16",
        "long int",
        "bool",
        "Scalar",
        "ScalarList",
        "TensorList",
        "",
        "GenericList",
        "c10::Float8_e4m3fn",
        "c10::Float4_e2m1fn_x2",
        "unsigned char",
        "c10::complex<float>",
        "nonsense",
    ]
)
TEXTS = st.sampled_from(
    ["", "0", "1", "-1", "True", "False", "[1, 1]", "[0]", "[-1]", "[True, False, True]", "15", "[", "1e9"]
)
ARGUMENT = st.tuples(st.one_of(SHAPES, st.lists(SHAPES, max_size=3)), TYPES, SHAPES, TEXTS)


@given(st.sampled_from(known_ops()), st.lists(ARGUMENT, max_size=17))
def test_no_arguments_make_a_model_raise_or_go_negative(name: str, arguments: list[Any]) -> None:
    columns = [json.dumps([argument[i] for argument in arguments]) for i in range(4)]
    kernel = KernelLaunch("multi_tensor_apply_kernel<A, AddFunctor<float, 1, 1, 0>>", 3, 512)
    op = call_from_kineto(name, *columns, launches=(kernel,))
    work = work_of(op)
    if work is None:
        assert why_no_work(op)
        return
    assert work.read_bytes >= 0
    assert work.written_bytes >= 0
    assert all(part.count >= 0 for part in work.flops)
    assert all(type(part.count) is int for part in work.flops)
    assert type(work.bytes) is int


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_no_text_makes_the_parser_raise(shapes: str, dtypes: str, strides: str, concrete: str) -> None:
    work_of(call_from_kineto("aten::mm", shapes, dtypes, strides, concrete))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=12,
)


@given(
    st.sampled_from(["aten::mm", "aten::cat", "aten::add", "aten::_softmax"]), st.lists(JSON, min_size=4, max_size=4)
)
def test_no_json_makes_the_parser_raise(name: str, columns: list[Any]) -> None:
    work_of(call_from_kineto(name, *(json.dumps(column) for column in columns)))


def growing(batch: int) -> list[Any]:
    q = ((batch, 4, 32, 16), BRAIN)
    x = ((batch, 8, 16, 16), SINGLE)
    return [
        call("aten::bmm", ((batch, 8, 4), SINGLE), ((batch, 4, 8), SINGLE)),
        call("aten::linear", ((batch, 8), SINGLE), ((4, 8), SINGLE)),
        call("aten::convolution", x, ((4, 8, 3, 3), SINGLE), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
        call("aten::_scaled_dot_product_flash_attention", q, q, q, 0.0, True),
        call("aten::_softmax", x, -1, False),
        call("aten::native_layer_norm", x, [16], ((16,), SINGLE), ((16,), SINGLE), 1e-5),
        call("aten::gelu", x, "none"),
        call("aten::add", x, x, 1),
        call("aten::sum", x, [1], False, None),
        call("aten::embedding", ((100, 16), SINGLE), ((batch, 3), LONG)),
        call("aten::copy_", x, x, False),
        call("aten::max_pool2d_with_indices", x, [2, 2], [2, 2], [0, 0], [1, 1], False),
    ]


@pytest.mark.parametrize("position", range(12))
def test_work_scales_with_the_batch(position: int) -> None:
    one, four = work_of(growing(1)[position]), work_of(growing(4)[position])
    assert one is not None
    assert four is not None
    assert four.total_flops == 4 * one.total_flops
    assert one.bytes < four.bytes <= 4 * one.bytes


def test_ops_without_a_model_say_so() -> None:
    op = call("mylib::secret", ((4,), SINGLE))
    assert work_of(op) is None
    assert why_no_work(op) == "no model for mylib::secret"
