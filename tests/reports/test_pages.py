"""Concepts, lessons and reasons that `warpline explain` prints."""

from __future__ import annotations

import re

import pytest
from paths import ROOT

from warpline.reports.explain import meanings
from warpline.reports.pages import concept, concepts, lessons, reason, without_links


@pytest.mark.parametrize(
    "name",
    [
        *("occupancy", "Pinned memory", "pinned_memory", "cuda-graph", "kernels", "streams"),
        *("decode", "HBM", "memory bandwidth", "Quantization", "bank conflicts"),
    ],
)
def test_a_concept_is_found_as_it_is_typed(name: str) -> None:
    assert concept(name) is not None


def test_an_unknown_concept_is_none() -> None:
    assert concept("flux capacitor") is None


@pytest.mark.parametrize(
    ("name", "kind"), [("KV cache", "concept"), ("cutlass_80_simt_sgemm_128x128_8x4_nn", "kernel")]
)
def test_words_of_the_language_are_no_kernels(name: str, kind: str) -> None:
    assert [one.kind.partition(",")[0] for one in meanings(name)] == [kind]
    assert not meanings("cache line")  # a pattern of kernel names fits it


def test_there_are_thirty_concepts_and_a_lesson_for_each_guide() -> None:
    assert len(concepts()) >= 30
    assert len(lessons()) == 5


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "docs" / "reasons").glob("[a-z]*.md")))
def test_every_reason_of_dive_is_explained(name: str) -> None:
    assert reason(name)
    assert any(one.kind == "reason inside a kernel" for one in meanings(name))


def test_a_lesson_is_printed_without_links() -> None:
    (found,) = meanings("one_matmul")
    assert found.text.startswith("# One matmul")
    assert not re.search(r"\]\(", found.text)


@pytest.mark.parametrize("name", ["x" * 100_000, "../concepts", "README", "\0"])
def test_a_name_that_is_no_reason_is_none(name: str) -> None:
    assert reason(name) is None


def test_a_page_to_read_is_named_where_links_are_not_shown() -> None:
    text = without_links(concept("range") or "")
    assert text.endswith("See how ranges are made (docs/ranges.md).")


@pytest.mark.parametrize(
    "name", ["queue depth", "bus bandwidth", "gloo", "pageable memory", "held others up", "waits for others"]
)
def test_words_of_the_answers_are_explained(name: str) -> None:
    assert concept(name)
