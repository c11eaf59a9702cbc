"""Every spelling of a name becomes one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpline.kernels import normalise
from warpline.kernels.mangled import demangle, scan
from warpline.kernels.normalise import split_arguments

SOFTMAX = "softmax_warp_forward<float, float, float, 6, false, false>"


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        (
            "_ZN43_GLOBAL__N__b6de9c8c_10_SoftMax_cu_9f978f6320softmax_warp_forwardIfffLi6ELb0ELb0EEEvPT0_PKT_iiiPKbib",
            "mangled",
        ),
        (
            "void (anonymous namespace)::softmax_warp_forward<float, float, float, 6, false, false>"
            "(float*, float const*, int, int, int, bool const*, int, bool)",
            "itanium",
        ),
        (
            "void <unnamed>::softmax_warp_forward<float, float, float, (int)6, (bool)0, (bool)0>"
            "(T2 *, const T1 *, int, int, int, const bool *, int, bool)",
            "nvidia",
        ),
        ("void softmax_warp_forward<float, float, float, int=6, bool=0, bool=0>(float*, float const *)", "nvprof"),
    ],
)
def test_four_demanglers_agree(name: str, dialect: str) -> None:
    normal = normalise(name)
    assert normal.text == SOFTMAX
    assert normal.dialect == dialect
    assert normal.base == "softmax_warp_forward"
    assert not normal.truncated


def test_return_types_with_templates_are_dropped() -> None:
    normal = normalise("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, 7>(int)")
    assert (normal.scope, normal.base) == ("internal::gemvx::", "kernel")
    assert split_arguments(normal.arguments) == ["int", "int", "float", "7"]


def test_a_namespace_stripper_that_eats_brackets_is_understood() -> None:
    normal = normalise("void unnamed>::CatArrayBatchedCopy<unnamed>::OpaqueType<2>, unsigned int, 4>(T1 *, int)")
    assert normal.base == "CatArrayBatchedCopy"


@pytest.mark.parametrize(
    "name",
    ["void at::native::vectorized_elementwise_kernel<4, at::na...", "void at::native::reduce_kernel<512, 1, at::nat"],
)
def test_cut_names_are_marked(name: str) -> None:
    assert normalise(name).truncated


def test_suffixes_of_amd_are_dropped() -> None:
    assert normalise("Im3d2Col.kd").text == "Im3d2Col"
    assert normalise("foo [clone .kd]").text == "foo"


def test_memory_operations_keep_their_text() -> None:
    assert normalise("Memcpy HtoD (Pinned -> Device)").text == "Memcpy HtoD (Pinned -> Device)"


def test_substitutions_are_resolved() -> None:
    name = (
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIN3c104HalfES4_S4_"
        "NS0_15binary_internal10MulFunctorIfEEEESt5arrayIPcLm2EEEEviT0_T1_"
    )
    assert demangle(name) == (
        "at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<c10::Half, c10::Half, c10::Half, "
        "at::native::binary_internal::MulFunctor<float>>, std::array<char*, 2>>"
    )


def test_an_old_static_name_is_found_inside_its_prefix() -> None:
    name = "__nv_static_59__46_tmpxft_0001_00000000_6_code_cpp1_ii_a54055bf__ZN6Kokkos4Impl6launchIiEEvT_"
    assert normalise(name).text == "Kokkos::Impl::launch<int>"


def test_what_no_demangler_opens_is_scanned() -> None:
    cut = "_ZN7cutlass6KernelINS_4gemm6kernel4GemmINS1_11threadblock12MmaPipelinedINS1_9GemmShapeILi128ELi64ELi32EE"
    assert demangle(cut) is None
    assert "GemmShape<128, 64, 32>" in scan(cut)
    assert normalise(cut).base == "Kernel"


PIECES = st.sampled_from(
    [
        "void ",
        "_ZN",
        "<",
        ">",
        "(",
        ")",
        "::",
        "(anonymous namespace)::",
        "<unnamed>::",
        "(int)4",
        "(bool)1",
        "int=3",
        " ",
        "[lambda(float) (instance 1)]",
        "...",
        "…",
        ".kd",
        "2ul",
        "at::native::",
        "kernel",
        "_",
        "I",
        "E",
        "Li4E",
        "S0_",
        ",",
    ]
)
NAMES = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=25).map("".join))


@given(NAMES)
@settings(max_examples=150, deadline=None)
def test_normalising_twice_changes_nothing(name: str) -> None:
    once = normalise(name)
    again = normalise(once.text)
    assert again.text == once.text
    assert (again.scope, again.base, again.arguments) == (once.scope, once.base, once.arguments)


@given(st.text(alphabet="_ZNIELSTJXDKPRFc0123456789bfilv", max_size=120))
@settings(max_examples=150, deadline=None)
def test_no_mangled_text_raises(tail: str) -> None:
    demangle(f"_Z{tail}")
    scan(f"_Z{tail}")
