"""The linter: labelled snippets, comments that ignore, and files that are no programs."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lint_snippets import Snippet, snippets
from paths import ROOT

from warpline.cli.main import run
from warpline.errors import UnreadableFile
from warpline.lint import lint_file, lint_text
from warpline.lint.names import ImportedNames
from warpline.lint.rules import RULES

ALL = snippets()


def test_half_of_the_snippets_are_clean() -> None:
    assert len(ALL) >= 200
    assert 2 * sum(snippet.clean for snippet in ALL) == len(ALL)
    assert all(snippet.clean != bool(snippet.expected) for snippet in ALL)


@pytest.mark.parametrize("snippet", ALL, ids=lambda snippet: snippet.name)
def test_a_snippet_has_exactly_the_findings_of_its_labels(snippet: Snippet) -> None:
    assert {(found.line, found.code) for found in lint_text(snippet.text)} == snippet.expected


def test_every_rule_has_a_snippet_and_a_row_in_the_docs() -> None:
    page = (ROOT / "docs" / "commands" / "lint.md").read_text()
    labelled = {code for snippet in ALL for _, code in snippet.expected}
    assert {rule.code for rule in RULES} == labelled
    for rule in RULES:
        assert f"| `{rule.code}` | {rule.meaning} | {rule.fix} |" in page


LOOP = "import torch\nmodel.cuda()\nfor x in xs:\n    y = model(x)\n    print(y.item()){comment}\n"


@pytest.mark.parametrize(
    ("comment", "count"),
    [
        ("", 1),
        ("  # warpline: ignore", 0),
        ("  # warpline: ignore[sync-in-loop]", 0),
        ("  # warpline: ignore[slow-loader, sync-in-loop]", 0),
        ("  # warpline: ignore[slow-loader]", 1),
        ("  # noqa", 1),
    ],
)
def test_a_comment_ignores_its_codes(comment: str, count: int) -> None:
    assert len(lint_text(LOOP.format(comment=comment))) == count


def test_the_line_is_that_of_the_call_in_a_chain() -> None:
    text = "import torch\nmodel.cuda()\nfor x in xs:\n    v = (\n        model(x)\n        .mean()\n        .item()\n    )\n"
    assert [(found.line, found.code) for found in lint_text(text)] == [(7, "sync-in-loop")]


HEAD = "import time, torch\nimport torch.distributed as dist\nmodel.cuda()\n"
STEP = "    loss = model(x).mean()\n    loss.backward()\n"


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        (
            "for p in model.parameters():\n    if hasattr(p, 'tag') and p._flag and not p.requires_grad:\n        p.mul_(2)\n",
            "",
        ),
        ("for p in model.parameters():\n    if is_shared(p) or torch.is_complex(p):\n        p.mul_(2)\n", ""),
        ("for p in model.parameters():\n    p.grad.data = p.grad.to(config.dtype)\n", ""),
        (f"for x in xs:\n{STEP}    if not dist.all_reduce(loss, async_op=True).wait(9):\n        stop()\n", ""),
        ("for (x, last) in zip(parts.cuda(), flags):\n    y = model(x)\n    if last:\n        y = y + 1\n", ""),
        (
            "net = load_model('s').to('cuda')\nfor word in net.read(x)['words']:\n    if word['end'] > 1:\n        net(x)\n",
            "",
        ),
        (
            f"t = time.time()\nfor x in xs:\n{STEP}    log(loss.item())\n    dt.add(time.time() - t)\n    t = time.time()\n",
            "sync-in-loop",
        ),
        (
            f"t = time.time()\nfor x in xs:\n{STEP}    dt.add(time.time() - t)\n    t = time.time()\n",
            "unsynchronised-timing",
        ),
        (
            "t = time.time()\nfor x in xs:\n    y = model(x)\n    y.cpu()\n    log(n / (time.time() - t))\n",
            "sync-in-loop",
        ),
        (
            f"for x in xs:\n{STEP}    if torch.nn.utils.clip_grad_norm_(model.parameters(), 1) > 9:\n        skip()\n",
            "sync-in-loop",
        ),
        ("for x in xs:\n    y = model(x)\n    z = y[y > 0]\n", "sync-in-loop"),
        ("for x in xs:\n    y = model(x)\n    y[y > 0] = 0\n", ""),
        ("for x in xs:\n    for i in model(x).topk(5).indices.tolist():\n        out.append(i)\n", "sync-in-loop"),
    ],
)
def test_what_a_question_a_log_and_a_mask_are(body: str, codes: str) -> None:
    """Each was wrong in code that other people wrote."""
    assert " ".join(sorted({found.code for found in lint_text(HEAD + body)})) == codes


@pytest.mark.parametrize("text", ["def f(:", "\x00", "(" * 300, "%timeit f()"])
def test_what_is_no_python_is_an_error(text: str) -> None:
    with pytest.raises(UnreadableFile, match="not valid Python"):
        lint_text(text)


@pytest.mark.parametrize("text", ["", "# only a comment\n", "pass\n", "x = 1\n" * 1000])
def test_programs_without_torch_are_clean(text: str) -> None:
    assert lint_text(text) == []


HEAD = "import time, torch\nmodel = torch.nn.Linear(1, 1).cuda()\nx = torch.ones(1).cuda()\n"
TIMED = "    start = time.time()\n    y = model(x)\n    seconds = time.time() - start\n"
TRITON = "import torch, triton, triton.language as tl\n@triton.jit\ndef k(N: tl.constexpr):\n    pass\nN = 100\n"


@pytest.mark.parametrize(
    ("head", "statement"),
    [
        (HEAD + "for i in range(3):\n", "    model(x).item()\n"),
        (HEAD + "for i in range(3):\n", TIMED),
        (HEAD + "def f():\n", TIMED),
        (HEAD + "def helper(f):\n", TIMED.replace("model(x)", "f(x)")),
        (TRITON, "k[(1,)](N)\n"),
    ],
    ids=["waits", "timed iterations", "timed calls", "timed argument", "launches"],
)
def test_each_statement_costs_the_same_however_many_there_are(
    head: str, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = [0]
    children = ast.iter_child_nodes

    def counted(node: ast.AST) -> Iterator[ast.AST]:
        seen[0] += 1
        return children(node)

    monkeypatch.setattr(ast, "iter_child_nodes", counted)

    def nodes_seen(count: int) -> int:
        seen[0] = 0
        lint_text(head + statement * count)
        return seen[0]

    once, twice = nodes_seen(20), nodes_seen(40)
    assert twice < 2.5 * once


def test_our_own_programs_can_be_read() -> None:
    for file in sorted((ROOT / "src" / "warpline" / "bench").glob("*.py")):
        lint_file(file)


def test_exit_codes_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad, broken = tmp_path / "good.py", tmp_path / "bad.py", tmp_path / "broken.py"
    good.write_text("x = 1\n")
    bad.write_text(LOOP.format(comment=""))
    broken.write_text("def f(:")
    assert run(["lint", str(good)]) == 0
    assert "No GPU code seen" in capsys.readouterr().out
    assert run(["lint", str(good), str(bad)]) == 3
    assert "sync-in-loop" in capsys.readouterr().out
    assert run(["lint", str(bad), str(broken), str(tmp_path / "none.py"), "--json"]) == 1
    shown = capsys.readouterr()
    answer = json.loads(shown.out)
    assert answer["schema"] == "warpline.lint/1"
    assert [found["line"] for found in answer["findings"]] == [5]
    assert [error["code"] for error in answer["errors"]] == ["not-python", "cannot-read"]
    assert shown.err.count("\n") == 2
    assert run(["lint"]) == 2


def test_nothing_is_executed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"open({str(tmp_path / 'made')!r}, 'w')\nraise SystemExit(7)\n")
    assert lint_file(program) == []
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("torch.save(y, 'y.pt')", "needs the value"),
        ("torch.where(y > 0)", "size of its result"),
        ("y.nonzero()", "size of its result"),
        ("print(y.item())", "needs the value"),
    ],
)
def test_a_wait_in_a_loop_has_its_reason(line: str, why: str) -> None:
    text = f"import torch\nmodel = Net().cuda()\nfor x in xs:\n    y = model(x.cuda())\n    {line}\n"
    (found,) = [one for one in lint_text(text) if one.code == "sync-in-loop"]
    assert why in found.message


def test_a_folder_is_walked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a/train.py", "a/b/eval.py", ".venv/lib/x.py", "a/site-packages/y.py", "a/notes.txt"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(LOOP.format(comment=""))
    assert run(["lint", str(tmp_path), str(tmp_path / "a" / "train.py"), "--json"]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert answer["files"] == 2
    assert [Path(found["file"]).name for found in answer["findings"]] == ["train.py", "eval.py"]


@pytest.mark.parametrize("code", ["-" * 200_000 + "1", "lambda: " * 20_000 + "1", "a." * 100_000 + "b"])
def test_code_that_is_nested_too_deeply_costs_its_own_file_only(
    code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deep.py").write_text(f"import torch\nx = {code}\n")
    (tmp_path / "plain.py").write_text("import torch\n")
    assert run(["lint", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert "No findings in 1 file" in shown.out
    assert shown.err.startswith("warpline: too-deep: ") and "nested too deeply for Python's parser" in shown.err


def test_a_file_without_gpu_code_is_not_called_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "a.py"
    program.write_text("import json\nprint(json.dumps({}))\n")
    assert run(["lint", str(program)]) == 0
    assert "No GPU code seen in 1 file" in capsys.readouterr().out
    program.write_text("import os, torch\n")
    assert run(["lint", str(program)]) == 0
    assert "No findings in 1 file" in capsys.readouterr().out


def test_a_folder_without_programs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lint", str(tmp_path)]) == 1
    assert "no-python" in capsys.readouterr().err


def test_many_functions_and_calls_are_each_looked_at_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a time: names that are looked up for each call of each function would be a hundred thousand here."""
    looked_up: list[ast.AST] = []
    last = ImportedNames.last

    def counted(names: ImportedNames, node: ast.AST) -> str:
        looked_up.append(node)
        return last(names, node)

    monkeypatch.setattr(ImportedNames, "last", counted)
    lint_text("import torch\n" + "def f():\n    for i in range(3):\n        x.cuda().item()\n" * 200)
    assert len(looked_up) < 50_000
