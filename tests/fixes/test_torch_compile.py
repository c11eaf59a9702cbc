"""What a compiler makes of chains of ops: how many kernels, what they move, and how long they take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from small_programs import CAT, GEMM_BF16, MUL, STEPS, Program, asked, judged

from warpline.replay.compiler.grouping import Group, Unit, groups
from warpline.replay.compiler.units import cuts, unit_of
from warpline.replay.labelled_graph import AUTOGRAD
from warpline.work import call_from_kineto, work_of
from warpline.work.model import KernelLaunch, Tensor

MIB = 1 << 20
SMS = 132


def tensor(*shape: int) -> Tensor:
    return Tensor(shape, "fp32")


def by_element(*operands: Tensor, shape: tuple[int, ...] | None = None, name: str = "mul") -> Unit:
    whole = tensor(*(shape or operands[0].shape))
    return Unit(name, operands, whole.shape, whole.bytes)


def reduced(x: Tensor, *dims: int, name: str = "sum") -> Unit:
    unit = Unit(name, (x,), x.shape, 0, dims)
    return replace(unit, written=4 * unit.rows)


def members(units: list[Unit | None]) -> list[list[int]]:
    return [group.members for group in groups(units)]


def only(units: list[Unit | None]) -> Group:
    (group,) = groups(units, SMS)
    return group


def test_a_norm_written_out_is_one_kernel_that_reads_and_writes_once() -> None:
    x, rows = tensor(4096, 4096), tensor(4096, 1)
    group = only(
        [
            reduced(x, 1, name="mean"),
            by_element(x, rows),
            by_element(x, x),
            reduced(x, 1, name="mean"),
            by_element(rows),
            by_element(x, rows),
            by_element(x, tensor(4096)),
        ]
    )
    # 64 MiB in and out; a mean, a gain and other small results of 16 KiB each.
    assert group.bytes == pytest.approx(128 * MIB, rel=0.001)
    assert group.operations == 6 * 16 * MIB + 4096
    assert not group.cut_up


def test_rows_too_long_for_the_cache_are_read_again() -> None:
    x, rows = tensor(1024, 65536), tensor(1024, 1)
    passes: list[Unit | None] = [
        reduced(x, 1, name="amax"),
        by_element(x, rows),
        reduced(x, 1),
        by_element(x, rows),
        reduced(x, 1, name="mean"),
    ]
    # The maximum and the sum are one pass over 256 MiB; the mean is another, half of which the cache still has.
    assert only(passes).bytes == pytest.approx(1.5 * 256 * MIB, rel=0.001)
    assert only(passes[:3]).bytes == pytest.approx(256 * MIB, rel=0.001)


def test_what_is_larger_than_all_inputs_and_results_never_exists() -> None:
    left, right, pairs = tensor(4096, 1, 64), tensor(1, 1024, 64), tensor(4096, 1024, 64)
    group = only([by_element(left, right, shape=pairs.shape), by_element(pairs), reduced(pairs, 2)])
    assert group.bytes == left.bytes + right.bytes + 4 * 4096 * 1024
    assert group.operations == 3 * pairs.elements


def test_a_reduction_over_other_rows_is_another_kernel() -> None:
    x = tensor(512, 512)
    assert members([reduced(x, 1), by_element(x, tensor(512, 1)), reduced(x, 0), by_element(x, tensor(512))]) == [
        [0, 1],
        [2, 3],
    ]
    assert members([reduced(x, 1), by_element(tensor(512, 1)), reduced(tensor(512), 0)]) == [[0, 1], [2]]


def test_results_of_other_rows_are_awaited() -> None:
    # The forces on 128 bodies move them, and the next forces need the places of all.
    places, pairs = tensor(128, 3), tensor(128, 128, 3)
    apart = by_element(tensor(1, 128, 3), tensor(128, 1, 3), shape=pairs.shape, name="sub")
    assert members([apart, reduced(pairs, 1), by_element(places), apart, reduced(pairs, 1)]) == [[0, 1, 2], [3, 4]]
    of_own_row = by_element(tensor(128, 1, 3), tensor(128, 1, 3), shape=pairs.shape)
    assert members([apart, reduced(pairs, 1), by_element(places), of_own_row]) == [[0, 1, 2, 3]]


def test_few_long_rows_are_added_up_by_two_kernels_and_awaited() -> None:
    x = tensor(4, 1_000_000)
    first, second = groups([reduced(x, 1), by_element(x, tensor(4, 1))], SMS)
    assert first.cut_up and not second.cut_up
    assert not only([reduced(tensor(4, 8000), 1)]).cut_up
    assert not only([reduced(tensor(2 * SMS, 1_000_000), 1)]).cut_up
    assert only([reduced(tensor(2 * SMS - 1, 1_000_000), 1)]).cut_up
    (unknown,) = groups([reduced(x, 1)])
    assert not unknown.cut_up, "how many rows are few is not known"


def test_a_norm_of_few_long_rows_reads_them_twice() -> None:
    x = tensor(4, MIB)
    norm = Unit("native_group_norm", (x,), x.shape, x.bytes, (1,), back=True, steps=10)
    assert only([norm]).kernels == [(x.bytes, 8 * x.elements), (2 * x.bytes, 2 * x.elements)]


def test_a_loop_is_one_kernel_if_all_is_elementwise_and_else_one_for_each_turn() -> None:
    x = tensor(4096, 4096)
    plain, moved = by_element(x), replace(by_element(x, name="roll"), moves=True)
    added = by_element(x, x, name="add")
    assert len(groups([plain, added] * 5)) == 1
    assert members([moved, added] * 3) == [[0, 1], [2, 3], [4, 5]]
    iterations = groups([plain, *[moved, added] * 8, plain])
    assert [group.begins_iteration for group in iterations] == [False, *[True] * 8]
    assert members([replace(plain, in_place=True), added] * 3) == [[0, 1], [2, 3], [4, 5]]


def test_the_same_again_in_place_or_joined_is_done_to_another_tensor() -> None:
    # Two networks' weights follow others; the keys and the values of the past get a token more.
    x, past, new = tensor(4096, 4096), tensor(16, 4096, 64), tensor(16, 1, 64)
    follow = replace(by_element(x, x, name="lerp"), in_place=True)
    assert members([follow, follow, follow]) == [[0], [1], [2]]
    assert [group.bytes for group in groups([follow, follow])] == [3 * x.bytes] * 2
    whole = past.elements + new.elements
    cat = Unit("cat", (past, new), (whole,), 4 * whole, moves=True, joins=True)
    assert [group.bytes for group in groups([cat, cat])] == [2 * 4 * whole] * 2
    # Once something else is done to it, it is one tensor that is changed step by step.
    assert len(groups([by_element(x, name="neg"), follow, follow])) == 1


def test_scattering_is_a_kernel_of_its_own_and_what_is_unknown_gets_the_benefit_of_the_doubt() -> None:
    x = by_element(tensor(64, 64))
    scatter = unit_of(call_from_kineto("aten::scatter", None, None), None)
    assert members([x, scatter, x]) == [[0], [1], [2]]
    assert [group.known for group in groups([x, None, x])] == [False]


def test_what_is_concatenated_is_computed_for_every_element() -> None:
    half, whole = tensor(1024, 512), tensor(1024, 1024)
    cat = Unit("cat", (half, half), (whole.elements,), whole.bytes, steps=4, moves=True, joins=True)
    assert only([by_element(half), cat]).operations == 5 * whole.elements


def test_pieces_of_a_result_are_no_reads_and_pieces_of_an_input_are_it() -> None:
    # Boxes: corners of pairs are computed, and width times height is one piece times the other.
    pairs, piece = tensor(512, 256, 2), Tensor((512, 256), "fp32", (512, 2))
    corners = by_element(tensor(512, 1, 2), tensor(1, 256, 2), shape=pairs.shape, name="maximum")
    area = by_element(piece, piece, name="mul")
    group = only([corners, area, reduced(tensor(512, 256), 1)])
    assert group.bytes == 4 * (512 * 2 + 256 * 2 + 512)
    # Gates: four pieces of what a product left, the same function of two of them.
    gate = by_element(Tensor((4096, 512), "fp32", (2048, 1)), name="sigmoid")
    assert only([gate]).flow.read == 4096 * 512 * 4
    assert only([gate, gate]).flow.read == 2 * 4096 * 512 * 4
    assert only([gate] * 9).flow.read == 4 * 4096 * 512 * 4


def test_what_is_overwritten_cannot_be_read_again() -> None:
    # e.mul_(0.999).add_(p): both are read, one is written.
    x = tensor(512, 1024)
    scaled, added = by_element(x), by_element(x, x, name="add")
    assert only([replace(scaled, in_place=True), replace(added, in_place=True)]).bytes == 3 * x.bytes
    assert only([scaled, added]).bytes == 2 * x.bytes


def test_only_a_product_takes_a_value_twice() -> None:
    left, right, pairs = tensor(512, 1), tensor(1, 512), tensor(512, 512)
    apart = by_element(left, right, shape=pairs.shape, name="sub")
    assert only([apart, by_element(pairs, pairs, name="mul")]).flow.read == left.bytes + right.bytes
    assert only([apart, by_element(pairs, pairs, name="div")]).flow.read == left.bytes + right.bytes + pairs.bytes


def test_a_backward_pass_multiplies_by_what_the_forward_one_left() -> None:
    x = tensor(512, 512)
    spread, times = by_element(tensor(1), shape=x.shape, name="div"), by_element(x, x)
    (forwards,), (backwards,) = groups([spread, times]), groups([spread, times], backward=True)
    assert forwards.bytes == x.bytes + 4
    assert backwards.bytes == 2 * x.bytes + 4


def test_a_result_without_a_size_yet_is_no_operand() -> None:
    call = call_from_kineto("aten::abs", "[[64, 32], [0]]", '["float", "float"]')
    unit = unit_of(call, work_of(call))
    assert unit is not None
    assert unit.operands == (tensor(64, 32),)


def test_a_backward_pass_is_compiled_by_itself(tmp_path: Path) -> None:
    def program(thread: int) -> float:
        program = Program()
        for _ in range(STEPS):
            with program.step():
                for _ in range(2):
                    program.op("aten::mul", (MUL, 200), shapes=[[16384, 4096]], dtype="float")
                first = len(program.events)
                for _ in range(2):
                    program.op("aten::mul", (MUL, 200), shapes=[[16384, 4096]], dtype="float")
                for event in program.events[first:]:
                    if event["cat"] != "kernel":
                        event["tid"] = thread
        (folder := tmp_path / str(thread)).mkdir()
        return program.judged(folder).evidence.question.ask("torch_compile").new_step_ns.expected

    main = Program().events[0]["tid"]
    assert program(main + 1) == pytest.approx(2 * program(main), rel=0.03)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("aten::add", ["", "", "1"], 1),
        ("aten::div", ["", ""], 3),
        ("aten::exp_", [""], 3),
        ("aten::sigmoid", [""], 7),
        ("aten::tanh", [""], 5),
        ("aten::erf", [""], 12),
        ("aten::gelu", ["", "none"], 16),
        ("aten::addcmul", ["", "", ""], 3),
        ("aten::pow", ["", "2"], 1),
        ("aten::pow", ["", "2.5"], 12),
    ],
)
def test_a_function_costs_as_much_as_several_additions(name: str, arguments: list[str], expected: int) -> None:
    shapes = [[64, 32] if not text else [] for text in arguments]
    types = ["float" if not text else "Scalar" for text in arguments]
    call = call_from_kineto(name, json.dumps(shapes), json.dumps(types), None, json.dumps(arguments))
    unit = unit_of(call, work_of(call))
    assert unit is not None
    assert unit.steps == expected


@pytest.mark.parametrize(("shape", "dim", "each"), [((64, 32, 1), "-1", 9), ((64, 32), "1", 3), ((64, 32), "0", 3)])
def test_pieces_that_alternate_are_loaded_one_by_one(shape: tuple[int, ...], dim: str, each: int) -> None:
    shapes, types = json.dumps([[shape, shape], []]), json.dumps(["TensorList", "Scalar"])
    call = call_from_kineto("aten::cat", shapes, types, None, json.dumps(["", dim]), launches=(KernelLaunch(CAT),))
    unit = unit_of(call, work_of(call))
    assert unit is not None
    assert unit.steps == 2 * each


def test_threads_hand_a_backward_pass_over_however_it_is_compiled(tmp_path: Path) -> None:
    def program(pause: float) -> float:
        program = Program()
        for _ in range(STEPS):
            with program.step():
                for _ in range(20):
                    program.op("aten::mul", (MUL, 2), cpu=60, shapes=[[64, 64]], dtype="float")
                program.now += pause
                first = len(program.events)
                for _ in range(20):
                    program.op(f"{AUTOGRAD}evaluate_function: MulBackward0", (MUL, 2), cpu=60)
                for event in program.events[first:]:
                    if event["cat"] != "kernel":
                        event["tid"] += 1
                program.op("aten::mul", (MUL, 2), cpu=60, shapes=[[64, 64]], dtype="float")
        (folder := tmp_path / str(pause)).mkdir()
        return program.judged(folder).evidence.question.ask("torch_compile").new_step_ns.expected

    assert program(100) - program(20) == pytest.approx(80_000, rel=0.2)


@pytest.mark.parametrize(
    ("name", "shapes", "types", "concrete", "expected"),
    [
        ("aten::sum", [[64, 32], [], [], []], ["float", "ScalarList", "Scalar", ""], ["", "[-1]", "False", ""], (1,)),
        ("aten::amax", [[64, 32], [], []], ["float", "ScalarList", "Scalar"], ["", "[0]", "False"], (0,)),
        ("aten::sum", [[64, 32], []], ["float", ""], ["", ""], (0, 1)),
        ("aten::sum", [[64, 32, 3], [], [], []], ["float", "ScalarList", "Scalar", ""], ["", "[2]", "False", ""], ()),
        ("aten::_softmax", [[8, 64, 32], [], []], ["float", "Scalar", "Scalar"], ["", "-1", "False"], (2,)),
        (
            "aten::native_layer_norm",
            [[8, 64, 32], [], [32], [32], []],
            ["float", "ScalarList", "float", "float", ""],
            ["", "[32]", "", "", ""],
            (2,),
        ),
    ],
)
def test_dimensions_are_read_off_the_call(
    name: str, shapes: list[list[int]], types: list[str], concrete: list[str], expected: tuple[int, ...]
) -> None:
    call = call_from_kineto(name, json.dumps(shapes), json.dumps(types), None, json.dumps(concrete))
    unit = unit_of(call, work_of(call))
    assert unit is not None
    assert unit.dims == expected
    assert unit.elements == (64 * 32 if expected == () else unit.operands[0].elements)


def test_a_fused_kernel_takes_as_long_as_its_bytes(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(3):
            program.op("aten::mul", (MUL, 200), shapes=[[16384, 4096]], dtype="float")

    question = judged(tmp_path, body).evidence.question
    # 256 MiB in, as many out, at the 4,260 GB/s that were measured on an H200.
    expected = 1_500 + 1.05 * 2 * 256 * MIB / 4_259.5
    assert question.ask("torch_compile").new_step_ns.expected == pytest.approx(expected, rel=0.01)


def test_batch_norms_keep_their_time_and_what_follows_them_is_fused_into_them(tmp_path: Path) -> None:
    """Three kernels of a batch norm (600 µs in all) and an activation: 600 µs remain, where one pass would take 131."""

    def body(program: Program) -> None:
        shapes = [[64, 256, 64, 64]]
        program.op("aten::native_batch_norm", (MUL, 200), (MUL, 200), (MUL, 200), shapes=shapes, dtype="float")
        program.op("aten::clamp_min_", (MUL, 200), shapes=shapes, dtype="float")

    question = judged(tmp_path, body).evidence.question
    assert question.ask("torch_compile").new_step_ns.expected == pytest.approx(600_000, rel=0.02)


def test_libraries_are_asked_one_by_one(tmp_path: Path) -> None:
    def body(program: Program) -> None:
        for _ in range(10):
            program.op("aten::mm", (GEMM_BF16, 2), (MUL, 1), cpu=60, shapes=[[64, 64], [64, 64]])
            program.op("aten::mul", (MUL, 2), cpu=60, shapes=[[64, 64]])
            program.op("aten::add", (MUL, 2), cpu=60, shapes=[[64, 64]])

    question = judged(tmp_path, body).evidence.question
    host = question.labelled.host
    call, launch, library = (cost.expected for cost in (host.region, host.compiled_launch, host.launched_op))
    # Of each iteration remain the product, the second kernel that its library launches, and one kernel for the other two ops.
    expected = call + 10 * (library + 2 * launch)
    assert question.ask("torch_compile").new_step_ns.expected == pytest.approx(expected, rel=0.02)
    # A graph is one launch, and its 40 kernels take 70 µs.
    assert question.ask("cuda_graph").gain.expected > question.ask("torch_compile").gain.expected


@pytest.mark.parametrize("name", ["aten::sort", "aten::_cudnn_rnn", "aten::linalg_cholesky_ex", "flash_attn::forward"])
def test_what_lies_within_an_op_of_a_library_is_not_fused(tmp_path: Path, name: str) -> None:
    def body(program: Program) -> None:
        for _ in range(3):
            program.op(name, (MUL, 200), shapes=[[16384, 4096]], dtype="float")

    assert judged(tmp_path, body).evidence.question.ask("torch_compile").gain.expected < 1.05


def test_without_shapes_a_chain_is_cut_by_the_names_of_its_ops() -> None:
    norm = ["pow", "mean", "add", "rsqrt", "mul", "mul"]
    assert cuts(norm) == [0]
    assert cuts(["mul", "sum"] * 12) == [0, 8, 16]  # four sums each
    assert cuts(["lerp_", "lerp_", "lerp_"]) == [0, 1, 2]
    assert cuts(["neg", "cat", "mul", "cat", "add"]) == [0]
    assert cuts(["sin", "cos", "cat"] * 5) == [0, 2, 3, 5, 6, 8, 9, 11, 12, 14]


@pytest.mark.parametrize("compiled", [0, 20, 200])
def test_what_is_compiled_is_not_told_to_compile(tmp_path: Path, compiled: int) -> None:
    """60 small ops one by one, beside none, some and more kernels of a compiled region."""

    def body(program: Program) -> None:
        for _ in range(60):
            program.op("aten::mul", (MUL, 3), shapes=[[256, 256], [256, 256]])
        if compiled:
            with program.within("Torch-Compiled Region: 0/0"):
                for number in range(compiled):
                    program.op(f"triton_poi_fused_mul_{number}", (f"triton_poi_fused_mul_{number}", 3))

    found = [finding for finding in judged(tmp_path, body).findings if finding.fix == "torch_compile"]
    assert found[0].claim.startswith("60 operations a step" + " outside the compiled code" * bool(compiled))
    assert ("compiled already" in found[0].how) == bool(compiled)


@pytest.mark.parametrize("ops", [1, 100])
def test_many_ops_on_the_cpu_before_a_launch_are_code_of_the_program(tmp_path: Path, ops: int) -> None:
    """A batch is made of 100 rows on the CPU, each by an op of 16 µs: too many for the dispatch of what follows. As long
    a pause before a single op may be dispatch."""

    def body(program: Program) -> None:
        for _ in range(ops):
            program.op("aten::copy_", cpu=1500 / ops)
        for _ in range(40):
            program.op("aten::mul", (MUL, 2), shapes=[[64, 64], [64, 64]])
        program.wait()

    question = asked(tmp_path, body)
    host = question.labelled.host
    assert host.own_work.expected < 1_500_000 < host.long_work.expected
    left = question.ask("torch_compile").new_step_ns.expected
    if ops > 1:
        assert left > 1_000_000  # without what recording them cost
        assert question.ask("less_host_code").gain.expected > 2
    else:
        assert left < 500_000
        assert not question.ask("less_host_code").applies
