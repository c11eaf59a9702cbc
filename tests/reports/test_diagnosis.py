"""The first screen fits a small terminal; everything else is there with -v, and names kernels so that they differ."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from pathlib import Path

import polars as pl
import pytest
from kineto_files import annotation, launched, write
from msgspec.structs import replace
from paths import RECORDINGS

from warpline.findings.diagnosis import Diagnosis, diagnose
from warpline.reports import markdown, terminal
from warpline.reports.diagnosis import report
from warpline.reports.diagnosis_tables import compact_name
from warpline.reports.plan import without_article
from warpline.reports.sections import Table
from warpline.sources.health import HealthEntry
from warpline.trace.open import open_trace

DEMO = Path(str(resources.files("warpline.data") / "demo.json.xz"))
FILES = [DEMO, *RECORDINGS]


@cache
def diagnosed(file: Path) -> Diagnosis:
    return diagnose(open_trace(file))


def screen(file: Path, width: int = 80, verbose: bool = False) -> list[str]:
    return terminal.render(report(diagnosed(file), verbose, again="warpline diagnose trace"), width).plain.splitlines()


def without_commands(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.strip().startswith("warpline ")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_first_screen_fits_24_lines_of_80_columns(file: Path) -> None:
    lines = screen(file)
    assert len(lines) < 24
    assert max(map(len, without_commands(lines))) <= 80


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("width", [40, 80, 140])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_report_fits_its_width_without_trailing_spaces(file: Path, width: int, verbose: bool) -> None:
    lines = screen(file, width, verbose)
    assert max(map(len, without_commands(lines))) <= width
    assert all(line == line.rstrip() for line in lines)


def test_the_first_screen_has_what_one_needs_first() -> None:
    text = "\n".join(screen(DEMO))
    for part in (
        "demo.json.xz · NVIDIA H200 · 4 steps of",
        "! profiler-distortion",
        "GPU 0",
        "idle 72.9 %",
    ):
        assert part in text
    first = diagnosed(DEMO).plan[0]
    assert re.search(rf"^{first.fix} +1\.\d\d× +\d\.\d\d–\d\.\d\d× .* \w+\(\)", text, re.MULTILINE)
    assert re.search(rf"^Plan: {without_article(first.words)} \(\d\.\d\d ms\) → ", text, re.MULTILINE)
    assert "warpline diagnose trace -v" in text
    assert "Kernels" not in text


def test_verbose_has_everything_under_its_title() -> None:
    lines = screen(DEMO, 120, verbose=True)
    titles = ["Profile health", "Verdict", "Fixes, each replayed alone", "Findings", "Steps (from ProfilerStep)"]
    titles += ["Kernels", "Launches", "Copies", "CPU waits, per step", "Next"]
    assert [line for line in lines if line in titles] == titles
    assert any("remove_sync" in line for line in lines)


def test_one_step_time_is_on_the_screen() -> None:
    judgement = diagnosed(DEMO).judgement
    assert judgement is not None
    title = screen(DEMO)[0]
    (step,) = re.findall(r"steps of ([\d.]+ ms)", title)
    assert judgement.verdict.sentence.count(step) == 1
    assert " ".join(judgement.verdict.sentence.split()) in " ".join(" ".join(screen(DEMO)).split())


def test_steps_of_several_lengths_have_a_median(tmp_path: Path) -> None:
    events, zero = [], 0.0
    for step, length in enumerate([200.0] * 4 + [500.0] * 4 + [1000.0] * 4):
        events += launched("gemm", zero, zero + 10, length, correlation=step + 1)
        events.append(annotation(f"ProfilerStep#{step}", zero, length + 20))
        zero += length + 20
    (tmp_path / "lengths").mkdir()
    lines = terminal.render(report(diagnose(open_trace(write(tmp_path / "lengths", events))), False, ""), 120).plain
    assert (
        " · 12 steps of 512 µs in the median (520 µs recorded)" in lines.splitlines()[0]
    )  # 12 times 520 µs are not all of them
    assert "\nGPU 0, 12 recorded steps of 520 µs in the median: busy " in lines


def test_the_account_says_the_same_recorded_step_as_the_note_on_the_profiler() -> None:
    first = " ".join(screen(DEMO))
    assert "14.4 ms here, about 8.39 ms" in first
    assert "GPU 0, 4 recorded steps of 14.4 ms: busy 27.1 %" in first
    assert any(
        line.startswith("GPU 0: 4 recorded steps, 62.1 ms (15.5 ms on average), busy 27.1 %")
        for line in screen(DEMO, 80, True)
    )


def test_the_recorded_step_is_in_the_title_where_its_note_is_hidden() -> None:
    found = diagnosed(DEMO)
    others = [HealthEntry(code, "warning", "…") for code in ("clock-skew", "zero-durations")]
    note = HealthEntry("profiler-distortion", "warning", "…")
    first, last = replace(found, health=[note, *others]), replace(found, health=[*others, note])
    titles = [terminal.render(report(one, False, ""), 120).plain.splitlines()[0] for one in (first, last)]
    assert ["recorded)" in title for title in titles] == [False, True]


def test_the_parts_of_the_caption_add_up() -> None:
    caption = " ".join(line for line in screen(DEMO, 200) if line.startswith("GPU 0"))
    busy, idle = re.findall(r"(?:busy|idle) ([\d.]+) %", caption)
    groups = re.findall(r"\(([^)]*)\)", caption.partition(": ")[2])
    for whole, parts in zip((busy, idle), groups, strict=True):
        shares = [float(share) for share in re.findall(r"([\d.]+) %", parts)]
        # Each number is rounded by up to 0.05.
        assert sum(shares) == pytest.approx(float(whole), abs=0.051 * (len(shares) + 1))


def test_every_table_has_one_key() -> None:
    sections = report(diagnosed(DEMO), verbose=True).sections
    tables = [part for section in sections for part in section.content if isinstance(part, Table)]
    assert tables
    assert [table for table in tables if sum(column.key for column in table.columns) != 1] == []


def test_markdown_has_a_heading_for_each_section() -> None:
    answer = report(diagnosed(DEMO), verbose=True)
    assert len(re.findall("^## ", markdown.render(answer), re.MULTILINE)) == len(answer.sections)


def test_kernels_and_copies_without_a_name_have_a_row() -> None:
    nameless = replace(
        diagnosed(DEMO),
        kernels=diagnosed(DEMO).kernels.with_columns(name=pl.lit(None, pl.String)).head(1),
        copies=diagnosed(DEMO).copies.with_columns(name=pl.lit(None, pl.String)).head(1),
    )
    lines = terminal.render(report(nameless, verbose=True), 120).plain.splitlines()
    assert sum(line.endswith("(no name)") for line in lines) == 2


@pytest.mark.parametrize(
    ("name", "compact"),
    [
        (
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(cutlass_80_simt_sgemm::Params)",
            "cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul> >(int, at::native::FillFunctor<int>, std::array<char*, 1ul>)",
            "vectorized_elementwise_kernel<4, FillFunctor<int>, std::array<char*, 1ul> >",
        ),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("(odd", "(odd"),
        ("()", "()"),
        ("", ""),
    ],
)
def test_names_lose_only_what_all_have_in_common(name: str, compact: str) -> None:
    assert compact_name(name) == compact


def test_an_answer_that_can_tell_no_gain_lists_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "fixes" in [section.name for section in report(diagnosed(DEMO), again="warpline demo").sections]
    monkeypatch.setattr("warpline.reports.diagnosis.why_unclear", lambda state: "the replay misses the step")
    assert "fixes" not in [section.name for section in report(diagnosed(DEMO), again="warpline demo").sections]


def test_the_table_has_every_fix_that_the_verdict_names() -> None:
    """Where the verdict says that another fix saves more, that one has a row too, after the first."""
    diagnosis = diagnosed(DEMO)
    judgement = diagnosis.judgement
    assert judgement is not None
    first, *later = judgement.plan
    other = "larger_batch"
    assert other not in [step.fix for step in (first, *later)]
    said = replace(diagnosis, judgement=replace(judgement, plan=[replace(first, larger=other), *later]))
    fixes = next(section for section in report(said, again="warpline demo").sections if section.name == "fixes")
    table = next(content for content in fixes.content if isinstance(content, Table))
    assert [row[0] for row in table.rows][:2] == [first.fix, other]
