"""Work worked out on paper, family by family."""

from __future__ import annotations

import pytest
from calls import BRAIN, HALF, LONG, SINGLE, call

from warpline.work import KernelLaunch, OpCall, Work, work_of
from warpline.work.attention import Heads


def known(op: OpCall) -> Work:
    work = work_of(op)
    assert work is not None, op
    return work


def check(op: OpCall, read: int, written: int, *, matrix: int = 0) -> Work:
    work = known(op)
    assert (work.matrix_flops, work.read_bytes, work.written_bytes) == (matrix, read, written)
    return work


def test_a_product_reads_both_factors_and_writes_one() -> None:
    work = check(
        call("aten::mm", ((64, 32), HALF), ((32, 16), HALF)), 2 * (64 * 32 + 32 * 16), 2 * 64 * 16, matrix=65536
    )
    assert work.flops[0].dtype == "fp16"


def test_out_is_not_read() -> None:
    check(call("aten::mm", ((64, 32), HALF), ((32, 16), HALF), ((64, 16), HALF)), 5120, 2048, matrix=65536)


def test_an_addend_multiplied_by_zero_is_not_read() -> None:
    factors = ((64, 32), HALF), ((32, 16), HALF)
    check(call("aten::addmm", ((64, 16), HALF), *factors, 0, 1), 5120, 2048, matrix=65536)
    check(call("aten::addmm", ((16,), HALF), *factors, 1, 1), 5120 + 32, 2048, matrix=65536)


def test_an_expanded_factor_is_stored_once() -> None:
    check(call("aten::bmm", ((4, 8, 2), SINGLE), ((4, 2, 8), SINGLE, (0, 8, 1))), 4 * (64 + 16), 4 * 256, matrix=1024)


def test_linear_has_its_weight_transposed() -> None:
    check(
        call("aten::linear", ((2, 3, 8), SINGLE), ((5, 8), SINGLE), ((5,), SINGLE)),
        4 * (48 + 40 + 5),
        4 * 30,
        matrix=2 * 6 * 8 * 5,
    )


def test_fp8_products_count_one_byte_an_element_and_write_what_was_asked() -> None:
    fp8, one = "c10::Float8_e4m3fn", ((), SINGLE)
    work = check(
        call("aten::_scaled_mm", ((64, 32), fp8), ((32, 16), fp8), one, one, None, None, 15, True),
        64 * 32 + 32 * 16 + 8,
        2 * 64 * 16,
        matrix=65536,
    )
    assert work.flops[0].dtype == "fp8"


def test_packed_fp4_holds_two_numbers_a_byte() -> None:
    fp4 = "c10::Float4_e2m1fn_x2"
    work = known(call("aten::_scaled_mm", ((64, 16), fp4), ((16, 8), fp4), ((), SINGLE), ((), SINGLE), None, None, 15))
    assert work.matrix_flops == 2 * 64 * 8 * 32
    assert work.flops[0].dtype == "fp4"


def test_int8_products_write_int32() -> None:
    work = check(call("aten::_int_mm", ((64, 32), "signed char"), ((32, 16), "signed char")), 2560, 4096, matrix=65536)
    assert work.flops[0].dtype == "int8"


@pytest.mark.parametrize(
    ("left", "right", "flops"),
    [
        ((96, 32), (4, 32, 16), 2 * 96 * 32 * 16),
        ((4, 24, 32), (4, 32, 16), 2 * 4 * 24 * 32 * 16),
        ((32, 96), (96, 16), 2 * 32 * 96 * 16),
    ],
)
def test_grouped_products(left: tuple[int, ...], right: tuple[int, ...], flops: int) -> None:
    work = known(call("aten::_grouped_mm", (left, BRAIN), (right, BRAIN), ((4,), "int")))
    assert work.matrix_flops == flops


def test_convolution_with_stride_and_padding() -> None:
    # (32 + 2 - 3) // 2 + 1 = 16 points a side.
    op = call(
        "aten::cudnn_convolution",
        ((2, 4, 32, 32), SINGLE),
        ((8, 4, 3, 3), SINGLE),
        [1, 1],
        [2, 2],
        [1, 1],
        1,
        False,
        False,
        True,
    )
    check(op, 4 * (8192 + 288), 4 * 2 * 8 * 256, matrix=2 * 2 * 256 * 8 * 4 * 9)


def test_gradients_of_a_convolution_that_are_not_wanted_cost_nothing() -> None:
    def backward(wanted: list[bool]) -> OpCall:
        return call(
            "aten::convolution_backward",
            ((2, 8, 16, 16), SINGLE),
            ((2, 4, 18, 18), SINGLE),
            ((8, 4, 3, 3), SINGLE),
            [8],
            [1, 1],
            [0, 0],
            [1, 1],
            False,
            [0, 0],
            1,
            wanted,
        )

    one = 2 * 2 * 256 * 8 * 4 * 9
    assert known(backward([True, True, False])).matrix_flops == 2 * one
    assert known(backward([False, True, True])).matrix_flops == one
    check(backward([False, True, True]), 4 * (4096 + 2592), 4 * (288 + 8), matrix=one)


def test_attention_forward_in_bytes() -> None:
    q = ((2, 8, 128, 64), BRAIN)
    op = call("aten::_cudnn_attention_forward", q, q, q, None, None, None, 128, 128, True, 0.0, False, False, 0.125)
    size = 2 * 2 * 8 * 128 * 64
    check(op, 3 * size, size + 4 * 2 * 8 * 128, matrix=4 * 2 * 8 * 128 * 128 * 64)


def test_grouped_heads_are_read_once_and_used_by_all_queries() -> None:
    q, k = ((1, 16, 1, 64), BRAIN), ((1, 4, 149, 64), BRAIN)
    op = call("aten::_cudnn_attention_forward", q, k, k, None, None, None, 1, 149, False, 0.0, False, False, 0.125)
    check(op, 2 * (16 * 64 + 2 * 4 * 149 * 64), 2 * 16 * 64, matrix=4 * 16 * 149 * 64)


@pytest.mark.parametrize(
    ("queries", "keys", "top", "bottom"),
    [
        (4, 4, 10, 10),
        (2, 4, 3, 7),
        (4, 2, 7, 3),
        (1, 5, 1, 5),
        (5, 1, 5, 1),
    ],
)
def test_pairs_under_a_causal_mask(queries: int, keys: int, top: int, bottom: int) -> None:
    sizes = Heads(1, 1, queries, keys, 8, 8)
    assert (sizes.pairs("top"), sizes.pairs("bottom"), sizes.pairs("")) == (top, bottom, queries * keys)
    by_hand = sum(min(keys, max(0, i + keys - queries + 1)) for i in range(queries))
    assert sizes.pairs("bottom") == by_hand


def test_packed_sequences_are_an_estimate() -> None:
    q = ((96, 8, 64), BRAIN)
    op = call("aten::_flash_attention_forward", q, q, q, ((4,), "int"), ((4,), "int"), 40, 40, 0.0, False, False)
    work = known(op)
    assert work.matrix_flops == 4 * 3 * 8 * 32 * 32 * 64
    assert work.estimate


def test_softmax_to_fp32_writes_four_bytes() -> None:
    check(call("aten::_softmax", ((8, 16), HALF), -1, True), 256, 512)
    check(call("aten::_softmax", ((8, 16), HALF), -1, False), 256, 256)


def test_layer_norm_keeps_statistics_in_fp32() -> None:
    op = call("aten::native_layer_norm", ((2, 3, 8), HALF), [8], ((8,), HALF), ((8,), HALF), 1e-5)
    check(op, 2 * (48 + 16), 2 * 48 + 2 * 6 * 4)


def test_layer_norm_backward_writes_what_is_wanted() -> None:
    x, w, s = ((6, 8), SINGLE), ((8,), SINGLE), ((6, 1), SINGLE)
    check(
        call("aten::native_layer_norm_backward", x, x, [8], s, s, w, w, [True, True, True]), 4 * (96 + 12 + 8), 4 * 64
    )
    check(call("aten::native_layer_norm_backward", x, x, [8], s, s, w, w, [True, False, False]), 4 * 116, 4 * 48)


def test_operands_broadcast_and_the_wider_type_wins() -> None:
    check(call("aten::add", ((4, 1, 8), BRAIN), ((3, 8), SINGLE), 1), 2 * 32 + 4 * 24, 4 * 96)


def test_an_expanded_operand_is_read_where_it_is_stored() -> None:
    check(call("aten::div", ((8, 1024, 2048), SINGLE, (1024, 1, 0)), ((), LONG)), 4 * 8192 + 8, 4 * 8 * 1024 * 2048)


def test_numbers_do_not_decide_the_type() -> None:
    check(call("aten::mul", ((16,), HALF), ((), "double")), 32 + 8, 32)


def test_in_place_writes_the_first_operand() -> None:
    check(call("aten::add_", ((16,), HALF), ((16,), SINGLE), 1), 32 + 64, 32)


def test_comparisons_write_truth_values() -> None:
    check(call("aten::eq", ((16,), LONG), ((16,), LONG)), 256, 16)


def test_exponentials_of_whole_numbers_are_fp32() -> None:
    check(call("aten::exp", ((16,), LONG)), 128, 64)


def test_where_takes_its_type_from_the_choices() -> None:
    check(call("aten::where", ((32,), "bool"), ((), SINGLE), ((1, 32), SINGLE)), 32 + 4 + 128, 128)


def test_reductions_keep_what_is_not_reduced() -> None:
    check(call("aten::sum", ((64, 256), SINGLE), [0], True, None), 65536, 1024)
    check(call("aten::mean", ((4, 8), SINGLE), [-1], True, None), 128, 16)
    check(call("aten::sum", ((64,), LONG), None), 512, 8)
    check(call("aten::argmax", ((2, 8), SINGLE), -1, False), 64, 16)
    check(call("aten::max", ((2, 8), SINGLE), -1, False), 64, 2 * (4 + 8))


def test_an_embedding_reads_the_rows_it_names() -> None:
    check(call("aten::embedding", ((30000, 64), HALF), ((2, 5), LONG)), 10 * 128 + 80, 10 * 128)


def test_index_select_and_gather() -> None:
    check(call("aten::index_select", ((100, 8), HALF), 0, ((7,), LONG)), 7 * 16 + 56, 7 * 16)
    check(call("aten::gather", ((4, 100), SINGLE), 1, ((4, 3), LONG)), 48 + 96, 48)


def test_gathers_carry_whole_sectors() -> None:
    # Seven rows of 16 bytes in sectors of 32; twelve elements of 4; rows of 32 bytes, named by an expanded index.
    assert known(call("aten::index_select", ((100, 8), HALF), 0, ((7,), LONG))).extra_bytes == 7 * 16
    assert known(call("aten::gather", ((4, 100), SINGLE), 1, ((4, 3), LONG))).extra_bytes == 12 * 28
    assert known(call("aten::gather", ((100, 8), SINGLE), 0, ((7, 8), LONG, (1, 0)))).extra_bytes == 0


def test_what_is_added_to_a_small_tensor_reads_and_writes_it_once() -> None:
    op = call("aten::index_add_", ((64,), SINGLE), 0, ((4096,), LONG), ((4096,), SINGLE), 1)
    check(op, 4096 * 12 + 256, 256)
    assert known(op).additions == 4096
    op = call("aten::scatter_add_", ((64,), SINGLE), 0, ((4096,), LONG), ((4096,), SINGLE))
    check(op, 4096 * 12 + 256, 256)
    assert known(op).additions == 4096


def test_the_gradient_of_an_index_is_known_without_the_index() -> None:
    op = call("aten::_index_put_impl_", ((2, 1024), SINGLE), None, ((8192, 1024), SINGLE), True, True)
    check(op, 4 * 8192 * 1024 + 8192, 8192)
    # 8,192 places of 8 bytes and their keys, read and written in one pass.
    assert known(op).extra_bytes == 8192 * 32
    assert work_of(call("aten::_index_put_impl_", ((2, 1024), SINGLE), None, ((), SINGLE), False, True)) is None


def test_long_sorts_pass_over_their_keys_for_every_byte() -> None:
    # Keys of 4 bytes and places of 8, read and written four times; the first reading and the last writing are counted.
    for arguments in ((-1, False), (False, -1, False)):
        op = call("aten::sort", ((10_000,), "int"), *arguments)
        check(op, 40_000, 120_000)
        assert known(op).extra_bytes == 10_000 * (4 * 24 - 16)
    assert known(call("aten::sort", ((10, 1000), "int"), -1, False)).extra_bytes == 0


def test_cat_takes_its_type_from_the_kernel() -> None:
    kernel = KernelLaunch(
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned>"
    )
    check(call("aten::cat", [(0,), (4, 8)], -1, launches=(kernel,)), 64, 64)
    assert work_of(call("aten::cat", [(4, 8), (4, 8)], -1)) is None


def test_copies_convert() -> None:
    check(call("aten::copy_", ((16,), SINGLE), ((16,), BRAIN), False), 32, 64)


def test_fills_read_nothing() -> None:
    check(call("aten::fill_", ((16,), SINGLE), 0), 0, 64)
    check(call("aten::arange", 0, 10, 1, ((0,), LONG)), 0, 80)


def test_dropout_writes_a_mask() -> None:
    check(call("aten::native_dropout", ((16,), SINGLE), 0.1, True), 64, 64 + 16)


def test_adam_reads_four_lists_and_writes_three() -> None:
    kernel = KernelLaunch(
        "multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float, 4>, double>"
    )
    lists = [(8, 8), (8,)]
    check(call("aten::_fused_adamw_", lists, lists, lists, lists, launches=(kernel,)), 4 * 72 * 4, 3 * 72 * 4)


def test_adam_without_shapes_is_bounded_by_its_launch() -> None:
    kernel = KernelLaunch("multi_tensor_apply_kernel<X, FusedAdamMathFunctor<c10::BFloat16, 4>, double>", 320, 512)
    work = known(call("aten::_fused_adamw_", None, None, None, None, launches=(kernel,)))
    assert work.read_bytes == 4 * 320 * 65536 * 2
    assert work.estimate


def test_pooling() -> None:
    op = call("aten::max_pool2d_with_indices", ((1, 2, 8, 8), SINGLE), [2, 2], [2, 2], [0, 0], [1, 1], False)
    check(op, 4 * 128, (4 + 8) * 32)


def test_a_fused_kernel_counts_each_argument_once_and_large_ones_in_part() -> None:
    op = call("triton_poi_fused_mul_silu_2", ((8, 16), BRAIN), ((1000, 16), BRAIN), 128)
    work = known(op)
    assert work.bytes == 2 * (128 + 128)
    assert work.total_flops == 2 * 128
    assert work.estimate


def test_loss_reads_one_logit_a_row() -> None:
    check(call("aten::nll_loss_forward", ((8, 1000), SINGLE), ((8,), LONG), None, 1, -100), 32 + 64, 8)
    check(call("aten::nll_loss_backward", ((), SINGLE), ((8, 1000), SINGLE), ((8,), LONG), None, 1, -100), 64, 32)


def test_topk_writes_values_and_places() -> None:
    check(call("aten::topk", ((4, 1000), SINGLE), 5, -1, True, True), 16000, 4 * 5 * 12)


def test_an_old_gradient_of_a_convolution_asks_the_op_around_it() -> None:
    parent = call(
        "aten::cudnn_convolution_backward", ((2, 4, 18, 18), SINGLE), ((2, 8, 16, 16), SINGLE), ((8, 4, 3, 3), SINGLE)
    )
    op = call(
        "aten::cudnn_convolution_backward_weight",
        None,
        ((2, 8, 16, 16), SINGLE),
        ((2, 4, 18, 18), SINGLE),
        parent=parent,
    )
    assert known(op).matrix_flops == 2 * 2 * 256 * 8 * 4 * 9
    assert work_of(call(op.name, None, ((2, 8, 16, 16), SINGLE), ((2, 4, 18, 18), SINGLE))) is None
