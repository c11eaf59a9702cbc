"""Whatever the text: an answer, always the same, with a reason for every field, in bounded time."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from warpline.kernels import CLASSES, KernelIdentity, identify

NAMES = [json.loads(line)["name"] for line in (Path(__file__).parent / "labelled.jsonl").read_text().splitlines()]
WORDS = [word for name in NAMES for word in name.replace("<", " < ").replace(",", " , ").replace("_", " _ ").split(" ")]
UNREASONED = {"name", "library", "family", "truncated", "reasons", "tokens", "remarks"}
FAR = 20_000
names = import_module("warpline.kernels.normalise")  # the package has a function of this name


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS), max_size=30).map("".join)))
@settings(max_examples=150, deadline=None)
def test_any_text_gets_an_answer(text: str) -> None:
    identity = identify.__wrapped__(text)
    assert identity.kernel_class in CLASSES
    assert identity == identify.__wrapped__(text)
    json.dumps(identity.to_dict())


@given(st.sampled_from(NAMES), st.integers(1, 200))
@settings(max_examples=100, deadline=None)
def test_cut_names_get_an_answer(name: str, size: int) -> None:
    assert identify.__wrapped__(name[:size] + "...").kernel_class in CLASSES


@pytest.mark.parametrize("name", NAMES)
def test_every_field_has_its_reason(name: str) -> None:
    identity = identify(name)
    empty = KernelIdentity(name)
    for entry in fields(identity):
        if entry.name in UNREASONED or getattr(identity, entry.name) == getattr(empty, entry.name):
            continue
        key = "class" if entry.name == "kernel_class" else entry.name
        assert identity.reasons.get(key), key
    assert "class" in identity.reasons


def test_an_abstention_says_why() -> None:
    for name in ("device_kernel", "triton__0d1d2d", "fusion_7", "", "?"):
        identity = identify(name)
        assert identity.kernel_class == "unknown"
        assert identity.tensor_core is None
        assert identity.reasons["class"]


def test_the_contract_of_the_json() -> None:
    record = identify(NAMES[0]).to_dict()
    wanted = {"name", "library", "op", "class", "tensor_core", "arch", "dtype", "tile", "stages", "layout", "reasons"}
    assert wanted <= set(record)
    assert set(record["dtype"]) == {"a", "b", "out", "acc"}


@pytest.mark.parametrize(
    "unit",
    [
        "_",
        "<",
        "(",
        "I",
        "S_",
        "a_",
        "1x",
        "::",
        "0d1",
        "lambda(",
        "[lambda() (instance 1)]",
        "(int)4",
        "> >",
        "x1",
        "nn_",
        "triton_poi_fused_add_",
        "C<1>, ",
        "GemmShape<1, 1, 1>",
        "f32",
        "unnamed>::",
        " ",
        "-",
        "9",
    ],
)
@pytest.mark.parametrize(
    "start",
    [
        "",
        "_Z",
        "_ZN",
        "_Z1fI",
        "triton_red_fused_",
        "nvjet_",
        "cutlass_80_tensorop_",
        "void cutlass::Kernel<",
        "fmhaSm100aKernel_Q",
        "sm80_xmma_gemm_",
        "bmm_Bfloat16_",
        "Cijk_Ailk_Bljk_",
        "Memcpy ",
        "volta_sgemm_",
        "void at::native::elementwise_kernel<",
    ],
)
def test_of_a_long_name_only_the_start_is_read(start: str, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nested, repeated or unfinished in every grammar."""
    monkeypatch.setattr(names, "MAX_NAME", 1000)
    read = start + unit * (1000 // len(unit) + 1)
    far = identify.__wrapped__(read + unit * (FAR // len(unit)))
    assert replace(far, name="") == replace(identify.__wrapped__(read), name="")
    assert far.truncated


def test_substitutions_cannot_grow_a_name_without_bound() -> None:
    doubling = "_ZN1a1bI" + "".join(f"NS_1c{'IS_S_E' if at % 2 else 'IS0_S0_E'}E" for at in range(2000)) + "EEvv"
    assert len(names.normalise(doubling).text) <= names.MAX_NAME
    identify.__wrapped__(doubling)


def test_a_name_is_decoded_once() -> None:
    assert [name for name in NAMES if identify(name) is not identify(name)] == []
