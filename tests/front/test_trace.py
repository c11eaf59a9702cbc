"""The Python front door: what `warpline.open` returns answers every question, and reads well where it is shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import polars as pl
import pytest
from kineto_files import annotation, launched, write
from paths import DATA, DEMO, ROOT

import warpline
from warpline.analyses.roofline.entry import RooflineEntry, RooflineTable
from warpline.estimate import Estimate
from warpline.fixes.claim import Place
from warpline.front.tables import columns_of, to_query, to_scan
from warpline.trace.cut import cut_to_steps
from warpline.trace.open import open_trace
from warpline.trace.schema import TABLES

NSYS = DATA / "nsys" / "graph_node.sqlite.gz"
SCRIPT = "<script>alert('&')</script>"


@pytest.fixture(scope="module")
def trace() -> warpline.Trace:
    return warpline.open(DEMO, cache=False)


@pytest.fixture(scope="module")
def diagnosis(trace: warpline.Trace) -> warpline.Diagnosis:
    return trace.diagnose()


ARRAYS = sorted(set(TABLES) - {"steps", "meta", "health"})
"""Tables whose columns are arrays; the others have answers of their own (`steps`, `facts`, `health_entries`)."""


@pytest.mark.parametrize("name", ARRAYS)
def test_every_table_is_a_typed_attribute_that_dir_lists_and_help_explains(trace: warpline.Trace, name: str) -> None:
    assert name in dir(trace)
    assert get_type_hints(warpline.Trace)[name] is TABLES[name]
    explained = type(getattr(trace, name)).__doc__
    assert all(f"- {column} (" in explained for column in TABLES[name].columns)


def test_the_roofline_is_that_of_the_steps_without_the_parameters_that_were_drawn_before_them() -> None:
    layer = warpline.open(DATA / "kineto" / "layer_eager.json.gz", cache=False)
    steps, whole = ({entry.name for entry in layer.roofline(whole=asked).entries} for asked in (False, True))
    assert "aten::uniform_" in whole - steps
    assert "aten::mm" in steps


def test_a_column_is_the_array_of_what_the_frame_has(trace: warpline.Trace) -> None:
    frame = trace.table("gpu")
    assert (trace.gpu.end_ns - trace.gpu.start_ns).tolist() == (frame["end_ns"] - frame["start_ns"]).to_list()
    assert trace.gpu.name.texts.tolist() == frame["name"].to_list()
    assert trace.gpu.api_id.tolist() == frame["api_id"].fill_null(-1).cast(int).to_list()


@pytest.mark.parametrize("file", [DEMO, NSYS], ids=lambda file: file.name)
def test_tables_have_ids_and_strings(file: Path) -> None:
    opened = warpline.open(str(file))
    for name in TABLES:
        table = opened.table(name)
        assert dict(table.schema) == {column: about.dtype() for column, about in columns_of(name).items()}
        assert table["id"].to_list() == list(range(len(table)))


def test_the_strings_are_those_of_the_analyses_nulls_included() -> None:
    linked = open_trace(DEMO)
    for name in TABLES:
        plain = linked.tables[name].stored.with_columns(pl.col(pl.Categorical).cast(pl.String)).with_row_index("id")
        assert to_query(linked.tables[name]).equals(plain)
        assert to_scan(linked.tables[name]).collect().equals(plain)


def test_an_unknown_table_says_which_there_are(trace: warpline.Trace) -> None:
    with pytest.raises(warpline.WarplineError, match=r"no-such-table.*gpu"):
        trace.table("kernels")
    assert not hasattr(trace, "kernels")


def test_sql_joins_along_ids_and_matches_text(trace: warpline.Trace) -> None:
    joined = trace.sql("select count(*) n from gpu join api on gpu.api_id = api.id where gpu.name like '%gemm%'")
    by_hand = trace.table("gpu").filter(pl.col("name").str.contains("gemm"), pl.col("api_id").is_not_null())
    assert joined["n"].to_list() == [len(by_hand)] != [0]


@pytest.mark.parametrize(
    ("query", "says"),
    [("select nam from gpu", "nam"), ("select * from gpus", "tables: gpu"), ("selec", "tables: gpu")],
)
def test_a_bad_query_is_one_line_that_helps(trace: warpline.Trace, query: str, says: str) -> None:
    with pytest.raises(warpline.WarplineError, match="bad-query") as caught:
        trace.sql(query)
    assert says in caught.value.line()
    assert "\n" not in str(caught.value)


def test_steps_are_a_sequence_of_traces(trace: warpline.Trace) -> None:
    assert len(trace.steps) == 4
    assert [step.steps.table["index"].to_list() for step in trace.steps] == [[0], [1], [2], [3]]
    assert trace.steps[1:3].steps[-1].steps.table["index"].to_list() == [2]
    assert trace.steps[-1].window == trace.steps[3].window


@pytest.mark.parametrize("chosen", [slice(9, 12), slice(None, None, 2), 7])
def test_steps_that_are_not_there_or_not_side_by_side_are_refused(trace: warpline.Trace, chosen: int | slice) -> None:
    with pytest.raises(warpline.WarplineError, match="step"):
        trace.steps[chosen]


def test_a_trace_without_steps_says_so(tmp_path: Path) -> None:
    opened = warpline.open(write(tmp_path, launched("k", 10, 100, 5, 1)))
    assert len(opened.steps) == 0
    assert "no steps" in repr(opened)
    with pytest.raises(warpline.WarplineError, match="no-steps"):
        opened.steps[0]


def test_a_trace_of_some_steps_keeps_ids_and_holds_their_rows(trace: warpline.Trace) -> None:
    some = trace.steps[1:3]
    cut = cut_to_steps(some)
    for name in ("gpu", "api", "ops", "ranges", "memory"):
        assert len(some.table(name)) == len(cut.table(name)) <= len(trace.table(name))
        assert some.table(name).equals(trace.table(name).filter(pl.col("id").is_in(some.table(name)["id"].implode())))
    assert some.sql("select count(*) n from gpu")["n"].item() == len(some.table("gpu")) < len(trace.gpu)
    assert len(some.gpu) == len(trace.gpu)
    assert some.sql("select id from steps")["id"].to_list() == [1, 2] == some.table("steps")["id"].to_list()


def test_every_answer_is_about_the_chosen_steps(trace: warpline.Trace) -> None:
    some = trace.steps[1:3]
    assert some.diagnose(why=False).to_dict()["trace"]["steps"] == 2
    assert some.path("aten::addmm")["count"].item() * 2 == trace.path("aten::addmm")["count"].item()
    assert some.stats("cuda_gpu_kern_sum")["Instances"].sum() * 2 == trace.stats("cuda_gpu_kern_sum")["Instances"].sum()
    assert some.roofline().total_ns < trace.roofline().total_ns
    assert some.whatif("tf32").steps == 2


def test_whatif_names_fixes_and_every_fix_tries_each(trace: warpline.Trace) -> None:
    with pytest.raises(warpline.WarplineError, match="every_fix"):
        trace.whatif()
    gains = [prediction.gain.expected for prediction in trace.every_fix()]
    assert gains == sorted(gains, reverse=True)


def test_functions_take_a_path_of_either_kind(diagnosis: warpline.Diagnosis) -> None:
    assert warpline.diagnose(str(DEMO)).to_dict() == diagnosis.to_dict() == warpline.diagnose(DEMO).to_dict()
    assert warpline.whatif(DEMO, "tf32").applies


def test_roofline_of_numbers_tells_who_gives_a_trace_what_to_do(trace: warpline.Trace) -> None:
    with pytest.raises(warpline.WarplineError, match=r"trace\.roofline\(\)"):
        warpline.roofline(trace)  # type: ignore[call-arg,arg-type]
    point = warpline.roofline(flops=2e12, bytes=1e9, seconds=0.01, device="H200")
    assert point.to_dict()["bound"] == point.bound == "compute"


def test_results_are_frozen_and_one_line_long(trace: warpline.Trace, diagnosis: warpline.Diagnosis) -> None:
    results = [diagnosis, diagnosis.verdict, *diagnosis.findings, trace.whatif("tf32"), trace.roofline()]
    for result in results:
        assert "\n" not in repr(result)
        assert len(repr(result)) <= 160
        assert result is not None
        assert isinstance(result.to_dict(), dict)
        with pytest.raises(AttributeError):
            setattr(result, type(result).__struct_fields__[0], None)
    assert all("\n" not in repr(shown) and len(repr(shown)) < 200 for shown in (trace, trace.steps))


def test_notebooks_show_cards_without_anything_from_elsewhere(
    trace: warpline.Trace, diagnosis: warpline.Diagnosis
) -> None:
    shown = [
        trace,
        trace.steps,
        diagnosis,
        diagnosis.verdict,
        *diagnosis.findings,
        trace.whatif("tf32"),
        trace.roofline(),
    ]
    for result in shown:
        html = result._repr_html_()
        assert html.startswith("<div") and html.endswith("</div>")
        assert len(html) < 50_000
        assert not any(word in html for word in ("http", "src=", "<script", "<link", "url("))


def test_texts_of_the_trace_are_escaped_in_notebooks(tmp_path: Path) -> None:
    events = [event for step in range(3) for event in launched(SCRIPT, 1000 * step, 1000 * step + 100, 50, step + 1)]
    marks = [annotation(SCRIPT, 1000 * step, 900) for step in range(3)]
    path = write(tmp_path, events + marks, deviceProperties=[{"id": 0, "name": SCRIPT}])
    opened = warpline.open(path, step_range=SCRIPT)
    finding = warpline.Finding(
        SCRIPT,
        "kernel",
        "tf32",
        SCRIPT,
        SCRIPT,
        1,
        1,
        Estimate(1, 1, 1),
        Estimate(1, 1, 1),
        "low",
        (Place(SCRIPT, SCRIPT, 1, 1),),
        SCRIPT,
        "",
    )
    entry = RooflineEntry(SCRIPT, "", "", "", "", count=1, time_ns=10)
    roofline = RooflineTable("kernel", SCRIPT, None, None, 10, 10, 10, 0, [entry])
    for result in (opened, opened.steps, opened.diagnose(), finding, roofline):
        html = result._repr_html_()
        assert "<script" not in html
    for result in (opened, opened.steps, finding, roofline):
        assert "&lt;script&gt;alert('&amp;')" in result._repr_html_()


def test_to_pandas_works_or_says_what_to_install(trace: warpline.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(trace.to_pandas("meta").columns) == ["id", "key", "value"]
    monkeypatch.setattr("warpline.front.trace.find_spec", lambda package: None)
    with pytest.raises(warpline.WarplineError, match="pip install pandas pyarrow"):
        trace.to_pandas("gpu")


def test_importing_warpline_loads_nothing_and_errors_stay_light() -> None:
    code = (
        "import sys, warpline; warpline.WarplineError; dir(warpline);"
        "print([name for name in sys.modules if name.split('.')[0] in {'polars', 'numpy', 'rich', 'click', 'msgspec'}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", sorted(set(warpline.__all__) - {"__version__"}))
def test_every_public_name_is_explained_with_an_example(name: str) -> None:
    assert ">>> " in (getattr(warpline, name).__doc__ or "")


USES = """
import warpline

trace = warpline.open("trace.json.gz")
trace.table("gpu").height
(trace.gpu.end_ns - trace.gpu.start_ns).sum()
trace.gpu.name.words[0].upper()
trace.steps[1:3].diagnose().findings[0].gain.expected
warpline.whatif("trace.json.gz", "tf32").new_step_ns.low
trace.roofline(by="kernel").table.height
"""


OWN_TYPES = """
[mypy]
strict = true
follow_imports = silent
[mypy-warpline.*,polars.*,numpy.*,msgspec.*,rich.*]
follow_imports = skip
[mypy-warpline,warpline.front.*,warpline.hardware.*,warpline.trace.trace,warpline.trace.schema,warpline.trace.table,warpline.findings.diagnosis,warpline.findings.model,warpline.estimate,warpline.notebook]
follow_imports = silent
"""
"""Reads the way from the front door to a finding's gain and no more: `make lint` reads all, which takes long."""


def test_mypy_knows_the_tables_and_rejects_a_typo(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    file, settings = tmp_path / "uses.py", tmp_path / "mypy.ini"
    typos = ["trace.gpus", "trace.gpu.begin_ns", "warpline.roofline(trace)", "trace.diagnose().findings[0].gain.expect"]
    file.write_text(USES + "\n".join(typos))
    settings.write_text(OWN_TYPES)
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings), "--no-incremental", str(file)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "src", check=False).stdout
    assert '"Trace" has no attribute "gpus"' in found
    wrong = {line.split(":")[1] for line in found.splitlines() if ": error:" in line}
    assert wrong == {str(USES.count("\n") + number) for number in range(1, len(typos) + 1)}
