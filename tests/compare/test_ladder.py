"""Ladders of hand-made recordings, with the answers worked out on paper.

A step has a gemm of 100 µs and, 5 µs after it, a silu of 40 µs; the second rung is without the silu, the third has another
gemm of 50 µs. With the 5 µs before the gemm that is 150, 105 and 55 µs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from paths import DATA
from step_traces import steps, trace

from warpline.capture.run_folder import MANIFEST
from warpline.cli.ladder import rung_names, rungs_of
from warpline.cli.main import run
from warpline.compare.ladder import Ladder, Rung, ladder
from warpline.compare.prediction import Outcome
from warpline.estimate import Estimate
from warpline.reports import terminal
from warpline.reports.ladder import ladder_report, ladder_svg
from warpline.reports.sections import Table
from warpline.trace.open import open_trace

US = 1000
GEMM, OTHER = (
    "cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4",
    "cutlass_80_tensorop_s1688gemm_128x256_16x3_nn_align4",
)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    rungs = {"a": [(GEMM, 100.0), ("silu", 40.0)], "b": [(GEMM, 100.0)], "c": [(OTHER, 50.0)]}
    return [trace(tmp_path, name, steps(6, kernels)) for name, kernels in rungs.items()]


@pytest.fixture
def climbed(files: list[Path]) -> Ladder:
    return ladder([open_trace(file) for file in files], ["a", "b", "c"])


def test_each_rung_has_its_time_and_its_share_of_the_first(climbed: Ladder) -> None:
    assert [rung.step_ns for rung in climbed.rungs] == [150 * US, 105 * US, 55 * US]
    assert [round(rung.share, 3) for rung in climbed.rungs] == [1.0, 0.7, 0.367]
    assert [rung.launches for rung in climbed.rungs] == [2, 1, 1]
    assert [rung.gain and round(rung.gain, 3) for rung in climbed.rungs] == [None, 1.429, 1.909]
    assert climbed.fastest.name == "c"


def test_kernels_that_appear_and_vanish_are_named_and_decoded(climbed: Ladder) -> None:
    first, second, third = climbed.rungs
    assert [kernel.name for kernel in first.new] == [GEMM, "silu"]
    assert (second.new, [kernel.name for kernel in second.gone]) == ((), ["silu"])
    assert ([kernel.name for kernel in third.new], [kernel.name for kernel in third.gone]) == ([OTHER], [GEMM])
    assert (third.new[0].count, third.new[0].time_ns) == (1, 50 * US)
    assert third.new[0].meaning == "gemm, cublas, tile 128x256x16, tf32, tensor cores"


def test_times_are_those_of_the_stopwatch_only_if_every_rung_was_timed(files: list[Path]) -> None:
    for file, bare in zip(files, (140, 90, 50), strict=True):
        laps = [US * bare] * 6
        times = {"median_ns": US * bare, "min_ns": US * bare, "max_ns": US * bare, "steps": 6, "laps_ns": laps}
        entry: dict[str, Any] = {"file": file.name, "bare_step_ns": times, "recorded_step_ns": None}
        (file.parent / MANIFEST).write_text(json.dumps({"files": [file.name], "traces": [entry]}))
    timed = ladder([open_trace(file) for file in files], ["a", "b", "c"])
    assert timed.timed
    assert [rung.step_ns for rung in timed.rungs] == [140 * US, 90 * US, 50 * US]
    (files[1].parent / MANIFEST).unlink()
    partly = ladder([open_trace(file) for file in files], ["a", "b", "c"])
    assert not partly.timed
    assert [rung.step_ns for rung in partly.rungs] == [150 * US, 105 * US, 55 * US]
    assert "b was not timed" in partly.remarks[0]


def test_a_prediction_is_a_step_and_may_fail(climbed: Ladder) -> None:
    """The rung before took 100 µs: promised 2 to 4 times as fast, it should take 25 to 50 µs."""

    def rung(step_ns: int, *, timed: bool = True, is_open: bool = False) -> Rung:
        gain = 100_000 / step_ns
        came = Outcome(("tf32",), Estimate(2.0, 2.2, 4.0), gain, timed, recorded=1.5, is_open=is_open)
        return replace(climbed.rungs[1], step_ns=step_ns, gain=gain, outcome=came)

    def said(one: Rung) -> tuple[object, str]:
        assert one.outcome is not None
        return one.to_dict()["as_predicted"], one.outcome.sentence_of("It").rsplit(": ", 1)[1]

    assert rung(40_000).predicted_ns == Estimate(25_000, 100_000 / 2.2, 50_000)
    assert said(rung(40_000)) == (True, "as predicted.")
    assert said(rung(60_000)) == (False, "outside the predicted range.")
    assert said(rung(40_000, is_open=True))[1] == "runs may differ as much."
    assert said(rung(40_000, timed=False))[0] is None, "recorded 1.5×, without the profiler's cost 2.5×"
    assert rung(40_000, timed=False).predicted_ns is None
    assert climbed.rungs[1].to_dict()["as_predicted"] is None


def test_rungs_that_do_different_work_are_not_called_slower(climbed: Ladder) -> None:
    first, second, third = climbed.rungs
    grown = replace(climbed, rungs=(replace(first, flops=1e9), replace(second, flops=5e9), replace(third, flops=None)))
    shown = " ".join(terminal.render(ladder_report(grown), 160).plain.split())
    assert "The rungs do different work: b has 5× the FLOPs of a and takes 0.7× as long." in shown
    assert "0.7× the time, 5× the FLOPs" in shown
    assert not climbed.grows


def test_a_rung_that_cannot_be_compared_is_not_the_fastest(climbed: Ladder) -> None:
    first, second, third = climbed.rungs
    apart = replace(climbed, rungs=(first, second, replace(third, verdict="not_comparable")))
    shown = " ".join(terminal.render(ladder_report(apart), 160).plain.split())
    assert "b is the fastest: 105 µs a step, 1.43× as fast as a. c cannot be compared with a." in shown
    assert apart.fastest.name == "b"
    table = next(one for one in ladder_report(apart).sections[0].content if isinstance(one, Table))
    of_first = [column.name for column in table.columns].index("share")
    assert [row[of_first] for row in table.rows] == [1.0, second.share, None]
    none = replace(climbed, rungs=(first, replace(second, verdict="not_comparable"), third))
    shown = " ".join(terminal.render(ladder_report(none), 160).plain.split())
    assert (
        "No rung is known to be faster than the first, a: 150 µs a step. b and the rungs below cannot be comp" in shown
    )


def test_a_rung_with_the_same_kernels_says_so(files: list[Path]) -> None:
    again = ladder([open_trace(files[1]), open_trace(files[1])], ["a", "b"])
    assert "The same kernels as in the rung before." in terminal.render(ladder_report(again), 120).plain


def test_without_timed_steps_the_fastest_is_so_as_recorded(climbed: Ladder) -> None:
    shown = " ".join(terminal.render(ladder_report(climbed), 120).plain.split())
    assert "As recorded, with the profiler's cost in each step, c is the fastest: 55.0 µs a step" in shown
    assert "As recorded" not in terminal.render(ladder_report(replace(climbed, timed=True)), 120).plain


def test_the_command_answers_as_table_json_picture_and_page(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["ladder", *map(str, files)]
    assert run(words) == 0
    assert "2.73× as fast as" in " ".join(capsys.readouterr().out.split())
    assert run([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], [rung["step_ns"] for rung in document["rungs"]]) == (
        "warpline.ladder/1",
        [150 * US, 105 * US, 55 * US],
    )
    assert run([*words, "--svg", str(tmp_path / "l.svg"), "-o", str(tmp_path / "l.html")]) == 0
    assert (tmp_path / "l.svg").read_text().count("<rect") == 1 + len(files) + 2  # paper, bars, legend
    assert "data:image/svg+xml" in (tmp_path / "l.html").read_text()


def test_one_recording_is_no_ladder(files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ladder", str(files[0])]) == 2
    assert "two-rungs" in capsys.readouterr().err


def test_a_folder_stands_for_its_recordings_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("10-graph.json", "9-eager.json", "notes.txt"):
        (tmp_path / name).write_text("{}")
    assert [rung.name for rung in rungs_of(tmp_path)] == ["9-eager.json", "10-graph.json"]
    assert rungs_of(tmp_path / "9-eager.json") == [tmp_path / "9-eager.json"]


def test_the_folder_of_runs_stands_for_the_runs_with_a_recording(tmp_path: Path) -> None:
    for run_name, files in (("1-train", ["trace.json"]), ("2-train", []), ("3-train", ["trace.json"])):
        folder = tmp_path / run_name
        folder.mkdir()
        (folder / "manifest.json").write_text(json.dumps({"files": files}))
        for file in files:
            (folder / file).write_text("{}")
    assert [rung.name for rung in rungs_of(tmp_path)] == ["1-train", "3-train"]


def test_rungs_are_named_by_their_files() -> None:
    assert rung_names((Path("x/eager.json.gz"), Path("y/graph.sqlite"))) == ["eager", "graph"]
    assert rung_names((Path("0-eager.json.gz"), Path("1-cuda-graph"))) == ["eager", "cuda-graph"]
    assert rung_names((Path("x/trace.json"), Path("y/trace.json"))) == ["x/trace", "y/trace"]
    assert rung_names((Path("a.plain.json.gz"), Path("a.fixed.json.gz"))) == ["a.plain", "a.fixed"]


def test_the_picture_has_every_rung(climbed: Ladder) -> None:
    picture = ladder_svg(climbed)
    assert all(f">{name}</text>" in picture for name in "abc")


LADDERS = sorted(path for path in (DATA / "ladders").iterdir() if path.is_dir())


def recorded(name: str) -> Ladder:
    files = tuple(sorted((DATA / "ladders" / name).glob("*.json.gz")))
    return ladder([open_trace(file) for file in files], rung_names(files))


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_each_part_of_a_block_brings_its_kernel(precision: str) -> None:
    rungs = {rung.name: rung for rung in recorded(f"workload-{precision}").rungs}
    new = {name: [kernel.meaning.split(", ")[:2] for kernel in rung.new] for name, rung in rungs.items()}
    assert [meaning[0] for meaning in new["matmul"]] == ["gemm"]
    assert ["elementwise", "clamp"] in new["relu"]
    assert ["elementwise", "add"] in new["residual"]
    assert "softmax" in {meaning[0] for meaning in new["softmax"]}
    assert [rung.launches for rung in rungs.values()] == [1, 5, 10, 15, 3, 4, 6, 13]


def test_a_graph_makes_one_launch_of_a_whole_layer() -> None:
    rungs = {rung.name: rung for rung in recorded("optimisation-decode").rungs}
    assert rungs["eager"].launches > 10
    assert rungs["cuda-graph"].launches == 1
    assert rungs["cuda-graph"].to_dict()["fixes"] == ["cuda_graph"]
    assert {"silu_mul_kernel"} <= {kernel.name for kernel in rungs["graph-fused-silu-mul"].new}


@pytest.mark.parametrize("folder", LADDERS, ids=lambda path: path.name)
def test_recordings_of_ladders_are_small(folder: Path) -> None:
    assert all(file.stat().st_size < 300_000 for file in folder.iterdir())
