"""The command line as a user meets it: answers on stdout, one line on stderr, an exit code."""

from __future__ import annotations

import json
import resource
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kineto_files import annotation, launched, op, write
from paths import DATA, DEMO, ROOT

from warpline import __version__
from warpline.cli.main import run
from warpline.cli.trial import try_fixes
from warpline.cli.verbs import VERBS
from warpline.errors import meant
from warpline.lint.rules import RULES
from warpline.sources.registry import SOURCES

KINETO = str(DATA / "kineto" / "layer_eager.json.gz")
NSYS = str(DATA / "nsys" / "graph_node.sqlite.gz")


@pytest.mark.parametrize("file", [KINETO, NSYS])
def test_diagnose_prints_a_report_that_ends_with_what_to_type_next(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diagnose", file]) == 0
    printed = capsys.readouterr()
    assert "GPU 0, " in printed.out
    assert "NVIDIA H200" in printed.out
    assert printed.out.splitlines()[-1].startswith("warpline diagnose ")
    assert printed.err == ""


def test_verbose_shows_kernels_and_copies_and_so_does_top(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "-v"]) == 0
    everything = capsys.readouterr().out
    assert {"Kernels", "Copies", "Launches"} <= set(everything.splitlines())
    assert run(["demo", "--top", "2"]) == 0
    assert "18 more kernels: --top 20" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ([KINETO, "ops"], f"the command stands before the file; warpline ops {KINETO}"),
        ([KINETO, "compare", NSYS], f"warpline compare {KINETO} {NSYS}"),
        (["--json", KINETO], "options stand last: warpline … --json"),
        (["gate", KINETO, "--budget"], "see warpline gate --help"),
        (["sql", "select 1", KINETO], f"the trace stands before the query; warpline sql {KINETO} 'select 1'"),
        (["report", KINETO, "-o", "page.pdf"], "end the name in .html"),
    ],
)
def test_words_in_the_wrong_place_get_the_command_to_type(
    arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".md", ".txt", ".json"])
def test_the_suffix_picks_the_format_and_nothing_is_overwritten(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"report{suffix}"
    assert run(["diagnose", KINETO, "-o", str(file)]) == 0
    assert capsys.readouterr().out == ""
    begin = {".md": "# layer\\_eager.json.gz", ".txt": "layer_eager.json.gz", ".json": "{"}
    assert file.read_text().startswith(begin[suffix])
    assert run(["diagnose", KINETO, "-o", str(file)]) == 2
    assert "add -f" in capsys.readouterr().err
    assert run(["diagnose", KINETO, "-o", str(file), "-f"]) == 0


def test_a_file_of_another_kind_is_refused_before_the_work_begins(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", KINETO, "-o", "report.docx"]) == 2
    assert capsys.readouterr().err.startswith("warpline: unknown-format")


REPORTING = {
    "bench": ["--list"],
    "budget": [KINETO],
    "compare": [KINETO, KINETO],
    "demo": [],
    "doctor": [KINETO],
    "kernel": ["ampere_sgemm_128x64_tn"],
    "lint": [str(ROOT / "docs" / "examples" / "slow_loop.py")],
    "metric": ["sm__throughput.avg.pct_of_peak_sustained_elapsed"],
    "path": [KINETO],
    "roofline": [KINETO],
    "whatif": [KINETO],
}


@pytest.mark.parametrize("suffix", [".md", ".txt", ".json", ".html"])
@pytest.mark.parametrize("verb", REPORTING)
def test_every_report_goes_to_a_file_of_every_format(
    verb: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"answer{suffix}"
    assert run([verb, *REPORTING[verb], "-o", str(file)]) in {0, 3}
    assert capsys.readouterr().out == ""
    written = file.read_text()
    if suffix == ".json":
        json.loads(written)
    assert written.startswith("<!doctype html>") == (suffix == ".html")
    assert run([verb, *REPORTING[verb], "-o", str(file)]) == 2


WORDY = {
    "budget": ["budget", KINETO],
    "device": ["device", "H200"],
    "diagnose": ["diagnose", KINETO, "-v"],
    "doctor": ["doctor", KINETO, "-v"],
    "experiments": ["bench", "--list"],
    "kernel": ["kernel", "triton_poi_fused_add_0"],
    "path": ["path", KINETO],
    "roofline": ["roofline", KINETO],
    "scrub": ["scrub", "--check", KINETO],
    "sql": ["sql", KINETO],
    "stats": ["stats", KINETO, "-r", "cuda_gpu_kern_sum,cuda_gpu_trace"],
    "whatif": ["whatif", KINETO],
}


@pytest.mark.parametrize("command", WORDY)
def test_a_pipe_gets_no_escape_codes_no_trailing_spaces_and_the_width_it_asks_for(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run(WORDY[command])
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert "\x1b" not in "".join(lines)
    assert all(line == line.rstrip() for line in lines)
    typed = ("warpline ", "(no room for")
    assert max(len(line) for line in lines if not line.strip().startswith(typed)) <= 80


def test_a_plain_file_is_diagnosed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([KINETO, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "warpline.diagnosis/1"


def test_demo_diagnoses_the_bundled_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["trace"]["steps"] == 4
    assert [entry["code"] for entry in answer["trace"]["health"]] == ["profiler-distortion"]


def test_steps_narrow_the_window(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--json", "--steps", "1:3"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["trace"]["steps"] == 2
    assert answer["trace"]["window_ns"] < 30_000_000


@pytest.mark.parametrize("verb", ["ops", "parts", "path"])
def test_nothing_outside_the_steps_counts_unless_it_is_asked_for(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two steps of one kernel each, after one that loads a model: its op is counted with `--steps all` alone."""
    events = [annotation("load", 0, 90), op("aten::load", 0, 50, external=1), *launched("load", 10, 20, 30, 1)]
    by = ("--by", "range") if verb == "parts" else ()
    for step in (1, 2):
        events += [annotation(f"ProfilerStep#{step}", 1000 * step, 900)]
        events += [op("aten::mul", 1000 * step + 10, 50, external=1 + step)]
        events += launched("mul", 1000 * step + 20, 1000 * step + 30, 40, 1 + step)
    path = str(write(tmp_path, events))
    for words, is_counted in (((), False), (("--steps", "0:2"), False), (("--steps", "all"), True)):
        assert run([verb, path, "--json", *by, *words]) == 0
        assert ("load" in json.dumps(json.loads(capsys.readouterr().out))) == is_counted


def test_sql_answers_as_csv(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", KINETO, "select kind, count(*) as n from gpu group by kind order by n", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "kind,n\nmemset,45\nkernel,176\n"


def test_sql_without_a_query_lists_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", KINETO, "--json"]) == 0
    tables = {row["table"] for row in json.loads(capsys.readouterr().out)}
    assert {"gpu", "api", "ops", "steps"} <= tables


def test_version_and_help_need_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"warpline {__version__}\n"
    assert run(["--help"]) == 0
    assert "diagnose" in capsys.readouterr().out


def test_python_dash_m_is_the_same_program() -> None:
    done = subprocess.run([sys.executable, "-m", "warpline", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"warpline {__version__}\n"


MISTAKES = {
    "no such file": (["diagnose", "absent.json"], 1, "no-such-file"),
    "a plain word": (["nonsense"], 2, "usage"),
    "no argument": (["diagnose"], 2, "usage"),
    "unknown option": (["diagnose", KINETO, "--frobnicate"], 2, "usage"),
    "bad steps": (["diagnose", KINETO, "--steps", "x"], 2, "bad-steps"),
    "steps beyond the end": (["diagnose", KINETO, "--steps", "99:"], 2, "no-such-step"),
    "unknown range": (["diagnose", KINETO, "--step-range", "x"], 2, "no-such-range"),
    "bad query": (["sql", KINETO, "selekt"], 2, "bad-query"),
    "unknown column": (["sql", KINETO, "select nope from gpu"], 2, "bad-query"),
    "unknown report": (["stats", KINETO, "-r", "nope"], 2, ""),
    "not a trace": (["diagnose", str(ROOT / "LICENSE")], 1, ""),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_and_an_exit_code(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, code, word = MISTAKES[mistake]
    assert run(arguments) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith(f"warpline: {word}")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_under_json_a_mistake_is_also_a_document(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, code, word = MISTAKES[mistake]
    assert run([*arguments, "--json"]) == code
    printed = capsys.readouterr()
    error = json.loads(printed.out)["error"]
    assert set(error) == {"code", "message", "hint"}
    assert error["code"].startswith(word)
    assert printed.err.startswith(f"warpline: {error['code']}: ")


def test_the_json_option_of_a_program_is_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "-o", str(tmp_path), "absent-program", "--json"]) != 0
    assert capsys.readouterr().out == ""


def test_format_json_is_json_for_errors_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["stats", KINETO, "-r", "nvtx_sum,osrt_sum", "--format", "json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["error"]["code"]
    assert printed.err.count("\n") == 2


def test_a_folder_with_one_trace_is_that_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "host.pt.trace.json.gz").write_bytes(Path(KINETO).read_bytes())
    assert run(["diagnose", str(tmp_path), "--json"]) == 0
    (tmp_path / "second.json.gz").write_bytes(Path(KINETO).read_bytes())
    assert run(["diagnose", str(tmp_path)]) == 1
    assert "2 profiles" in capsys.readouterr().err


@pytest.mark.parametrize("command", VERBS)
def test_every_command_has_help_with_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    printed = capsys.readouterr().out
    assert "Examples" in printed
    assert VERBS[command].help in " ".join(printed.split()), "verbs.py has the first line of the docstring"


def test_importing_warpline_loads_nothing_heavy() -> None:
    code = "import sys, warpline; print([name for name in ('polars', 'numpy', 'rich', 'click', 'torch') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [(["--help"], ("polars", "numpy", "rich", "torch")), (["kernel", "ampere_sgemm_128x64_tn"], ("polars", "numpy"))],
    ids=["help", "kernel"],
)
def test_a_verb_loads_only_what_it_uses(arguments: list[str], heavy: tuple[str, ...]) -> None:
    code = (
        f"import sys; from warpline.cli.main import run; code = run({arguments!r}); "
        f"sys.exit(code or [name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -c 'from warpline.cli.main import main; main()' stats {KINETO} -r cuda_gpu_trace --format csv | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("word", "meant"), [("diagnoze", "diagnose"), ("rnu", "run"), ("whatiff", "whatif")])
def test_a_misspelt_verb_gets_a_suggestion(word: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([word]) == 2
    assert f"did you mean warpline {meant}" in capsys.readouterr().err


def test_a_group_without_a_command_is_one_short_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["baseline"]) == 2
    assert capsys.readouterr().err == "warpline: usage: a command is missing; see warpline baseline --help\n"


@pytest.mark.parametrize("verb", VERBS)
def test_an_example_of_the_help_stays_on_one_line(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([verb, "--help"]) == 0
    examples = capsys.readouterr().out.partition("Examples:")[2].partition("Options:")[0]
    written = [line for line in examples.partition("Positional arguments:")[0].splitlines() if line.strip()]
    assert all(line.startswith("    ") and line.strip().split()[0] in {"warpline", "nsys", "cat"} for line in written)


def test_the_help_names_every_source() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "warpline", "diagnose", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert all(name in " ".join(shown.split()) for source in SOURCES for name in source.profilers.values())


@pytest.mark.parametrize("verb", ["metric", "explain"])
def test_metric_and_explain_agree_on_an_unknown_name(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([verb, "sm__throughput"]) == 0
    assert not capsys.readouterr().err
    assert run([verb, "nonsense"]) == 1
    assert capsys.readouterr().err.startswith("warpline: unknown-name: ")


def test_explain_knows_lint_codes_ops_and_its_own_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", *(rule.code for rule in RULES), "aten::view", "aten::empty", "AddmmBackward0"]) == 0
    assert run(["explain", "--help"]) == 0
    for line in capsys.readouterr().out.splitlines():
        if line.strip().startswith("warpline explain "):
            assert run(shlex.split(line)[1:]) == 0, line


def test_a_file_that_cannot_be_written_does_not_lose_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("warpline.exports.pictures.find_spec", lambda name: None)
    words = ["export", KINETO, "-o", str(tmp_path / "a.png"), "-o", str(tmp_path / "a.svg")]
    assert run(words) == 1
    assert (tmp_path / "a.svg").exists()
    printed = capsys.readouterr()
    assert "wrote" in printed.out
    assert "pip install resvg-py" in printed.err


def test_options_of_try_may_follow_the_recording(tmp_path: Path) -> None:
    words = [str(tmp_path), "--budget", "1m", "train.py", "--fix", "mine"]
    asked = try_fixes.make_context("try", words).params
    assert (asked["words"], asked["budget"], asked["fixes"]) == ((str(tmp_path), "train.py", "--fix", "mine"), 60.0, ())


@pytest.mark.parametrize("word", ["fused_optimiser", "cuda_grap"])
def test_a_misspelt_fix_gets_a_suggestion(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["whatif", str(DEMO), "--fix", word]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_a_part_of_a_name_is_enough_for_a_suggestion() -> None:
    names = ["cuda_graph", "fused_optimizer", "tf32"]
    assert meant("fused", names) == "did you mean fused_optimizer?"
    assert meant("nothing", names) == "use one of cuda_graph, fused_optimizer, tf32"


def test_fixes_are_separated_by_commas_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["whatif", str(DEMO), "--fix", "tf32,cuda_grap"]) == 2
    assert "there is no fix 'cuda_grap'; did you mean cuda_graph?" in capsys.readouterr().err


def test_explain_knows_the_numbers_of_the_gate_and_the_doctors_failures(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "step_ms", "idle_pct", "process-without-cuda", "no-gpu-work"]) == 0
    shown = capsys.readouterr().out
    assert "without the profiler" in shown and "nsys saw no CUDA call" in shown and "](" not in shown


def test_suggested_commands_keep_the_chosen_steps_and_the_table_has_the_fixes_of_the_plan(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["demo", "--steps", "1:", "-v"]) == 0
    assert "--fix fused_optimizer --steps 1:" in capsys.readouterr().out
    assert run(["demo", "--steps", "1:"]) == 0
    shown = capsys.readouterr().out
    assert "torch_compile" in shown.partition("new step")[2]


def test_an_option_of_another_verb_names_that_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([str(DEMO), "--fix", "cuda_graph"]) == 2
    assert "it is an option of warpline try or warpline whatif" in capsys.readouterr().err


def test_a_written_report_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diagnose", KINETO, "-o", str(tmp_path / "report.md")]) == 0
    assert "wrote " in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_is_asked_to_end_removes_its_temporary_files(number: signal.Signals, tmp_path: Path) -> None:
    program = f"""
import os, signal, tempfile, time
from warpline.cli import main as command_line

def run(_):
    with tempfile.TemporaryDirectory(dir={str(tmp_path)!r}):
        os.kill(os.getpid(), {int(number)})
        time.sleep(600)

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup's children inherit that it is ignored
command_line.run = run
command_line.main([])
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 128 + number
    assert not list(tmp_path.iterdir())


def test_a_thread_that_cannot_be_started_is_a_lack_of_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("warpline.cli.main.app.main", fail)
    assert run(["demo"]) == 1
    assert "out-of-memory" in capsys.readouterr().err


def test_a_small_address_space_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (800_000_000, resource.RLIM_INFINITY))
    assert run(["explain", "gap"]) == 1
    assert "the address space is limited to 0.80 GB, and 1.5 GB are needed" in capsys.readouterr().err


def test_explain_takes_a_name_of_several_words_without_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "launch", "latency"]) == 0
    assert capsys.readouterr().out.startswith("launch latency: from the launch call")
    assert run(["explain", "launch", "warp"]) == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")] == [
        "launch",
        "warp",
    ]


@pytest.mark.parametrize("word", ["step", "op", "busy", "idle", "gap", "range", "critical path", "measure it"])
def test_explain_knows_the_words_of_the_first_screen(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", *word.split()]) == 0
    assert "](" not in capsys.readouterr().out


@pytest.mark.parametrize(("name", "verb"), [("train.py", "run"), ("log.txt", "doctor")])
def test_a_file_that_another_verb_takes_names_it(
    name: str, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("print(1)\n")
    assert run([name]) == 1
    assert f"warpline {verb} {name}" in capsys.readouterr().err


def test_two_recordings_without_a_verb_are_told_how_to_compare_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / name for name in ("a.json", "b c.json")]
    for path in paths:
        path.write_text("{}")
    words = [str(path) for path in paths]
    assert run(words) == 2
    assert capsys.readouterr().err.rstrip().endswith(shlex.join(["warpline", "compare", *words]))
