"""`%%warpline` in a notebook: its options, what the cell shows, and a real kernel that runs it on the CPU."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from paths import ROOT

from warpline.errors import WarplineError
from warpline.ui.notebook_magic import FEWER_SKIPPED, CellProfile, Options, _end, load_ipython_extension, profile_cell


def test_options_are_read_and_mistakes_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert Options.parse("") == Options()
    assert Options.parse("--steps 4 --skip 2 --stacks --no-timeline --keep 'a b'") == Options(4, 2, True, False, "a b")
    for line in ("--steps", "--steps x", "--nonsense", "'"):
        with pytest.raises(WarplineError, match="usage"):
            Options.parse(line)
    assert profile_cell(SimpleNamespace(), "--nonsense", "") is None
    assert capsys.readouterr().err.startswith("warpline: usage:")


def test_the_timeline_is_shut_in_its_frame() -> None:
    diagnosis = SimpleNamespace(_repr_html_=lambda: "<div>card</div>")
    hostile = '<html lang="en"><script>"</iframe>&'
    shown = CellProfile(diagnosis, hostile)._repr_html_()  # type: ignore[arg-type]
    assert shown.startswith("<div>card</div>")
    assert '<iframe sandbox="allow-scripts" class="warpline-page"' in shown
    assert (
        'body[data-jp-theme-light="false"] .warpline-page,body.vscode-dark .warpline-page{color-scheme:dark}' in shown
    )
    begin = "&lt;html class=&quot;embedded&quot; lang=&quot;en&quot;&gt;"
    assert f'srcdoc="{begin}&lt;script&gt;&quot;&lt;/iframe&gt;&amp;">The timeline is a page with a script' in shown
    assert shown.count("</iframe>") == 1
    assert "<iframe" not in CellProfile(diagnosis, None, "too large")._repr_html_()  # type: ignore[arg-type]


def test_a_hint_of_the_recorder_names_options_of_the_magic(capsys: pytest.CaptureFixture[str]) -> None:
    said = (
        "warpline: too-few-steps: ended after 8 steps, but the recording starts after 26; try skip=2, warmup=1, steps=4"
    )
    recorder = SimpleNamespace(trace=None, __exit__=lambda *_: print(said, file=sys.stderr))
    _end(recorder, is_kept=False)  # type: ignore[arg-type]
    assert capsys.readouterr().err.strip().endswith(f"after 26; {FEWER_SKIPPED}")


def test_loading_the_extension_registers_the_magic() -> None:
    registered = []
    load_ipython_extension(SimpleNamespace(register_magic_function=lambda *words: registered.append(words[1:])))
    assert registered == [("cell", "warpline")]


@pytest.mark.long
def test_a_notebook_shows_the_diagnosis_of_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat")
    cells = [
        "%load_ext warpline",
        "import torch\nx = torch.ones(32, 32)",
        "%%warpline\nfor _ in range(3):\n    x = (x @ x).tanh()\nmade = 7",
        "print(made, type(_warpline).__name__)",
        "%%warpline --no-timeline\nraise ValueError('mine')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    shown = "".join(str(one.get("data", {}).get("text/html", "")) for one in notebook.cells[2].outputs)
    assert "<iframe sandbox" in shown, notebook.cells[2].outputs
    assert "wrote" not in str([one.get("text") for one in notebook.cells[2].outputs]), "the file is gone"
    assert "7 Diagnosis" in notebook.cells[3].outputs[0]["text"]
    assert any(one.get("ename") == "ValueError" for one in notebook.cells[4].outputs)
