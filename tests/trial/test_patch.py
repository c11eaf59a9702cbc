"""The best combination as a git diff."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from warpline.capture.trial.use import LoaderUse, ModuleUse, OptimizerUse, ProgramUse
from warpline.estimate import Estimate
from warpline.trial.answer import TrialAnswer, TriedFix
from warpline.trial.candidates import tryable
from warpline.trial.lines import lines_for
from warpline.trial.patch import make_patch

PROGRAM = """\
import numpy as np, torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

def train():
    model = Net().cuda(); optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    loader = torch.utils.data.DataLoader(
        data, batch_size=64,
        num_workers=2,
    )
    for x, y in loader:
        out = model(x.cuda())
        loss = nn.functional.cross_entropy(out, y.cuda())

        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()

train()
"""
USE = ProgramUse(
    on_gpu=True,
    loaders=[LoaderUse(2, False, False, False, 64, "train.py:12")],
    optimizers=[OptimizerUse("AdamW", False, True, "train.py:10")],
    modules=[ModuleUse("Net", 100, 1, 4, False, "", "layers", "train.py:10", ["train.py:16", "train.py:24"])],
    backward_frames=["train.py:20", "train.py:24"],
    places={"zero_grad": "train.py:19", "empty_cache": "train.py:22"},
)


def answer(*fixes: str, use: ProgramUse = USE, lines: str = "x = 1", proof: str = "") -> TrialAnswer:
    tries = tuple(TriedFix(fix, "", lines, proof=(proof,)) for fix in fixes)
    return TrialAnswer(("python", "train.py"), "AdamW.step()", Estimate(1, 1, 1), 2, 6, 10, tries, fixes, use, 60.0)


def patched(tmp_path: Path, source: str, found: TrialAnswer) -> str:
    """The program after `git apply`."""
    (tmp_path / "train.py").write_text(source)
    made = make_patch(found, tmp_path)
    assert made.by_hand == ()
    (tmp_path / "best.patch").write_text(made.text)
    subprocess.run(["git", "apply", "best.patch"], cwd=tmp_path, check=True)
    return (tmp_path / "train.py").read_text()


@pytest.mark.parametrize(
    ("fix", "before", "after"),
    [
        ("fused_optimizer", "model.parameters(), 1e-4)", "model.parameters(), 1e-4, fused=True)"),
        ("set_to_none", "set_to_none=False", "set_to_none=True"),
        ("pin_memory", "num_workers=2,\n    )", "num_workers=2, pin_memory=True)"),
        ("no_empty_cache", "torch.cuda.empty_cache()", "pass"),
        ("torch_compile", "1e-4)\n", "1e-4)\n    model.compile()\n"),
        ("torch_compile_layers", "1e-4)\n", "1e-4)\n    for layer in model.layers: layer.compile()\n"),
        (
            "channels_last",
            "1e-4)\n",
            "1e-4)\n    model.to(memory_format=torch.channels_last)  # and images: x = x.to(memory_format=torch.channels_last)\n",
        ),
        ("tf32", "np, torch\n", "np, torch\nx = 1\n"),
    ],
)
def test_a_fix_is_made_where_the_first_run_saw_its_place(tmp_path: Path, fix: str, before: str, after: str) -> None:
    assert PROGRAM.count(before) == 1
    assert patched(tmp_path, PROGRAM, answer(fix)) == PROGRAM.replace(before, after)


def test_loaders_get_the_workers_that_were_measured(tmp_path: Path) -> None:
    text = patched(tmp_path, PROGRAM, answer("prefetch", proof="loaders with 6 workers (before: 2)"))
    assert "num_workers=6, persistent_workers=True, prefetch_factor=4" in text


def test_autocast_holds_the_forward_and_the_loss(tmp_path: Path) -> None:
    text = patched(tmp_path, PROGRAM, answer("bf16"))
    block = """
        with torch.autocast('cuda', torch.bfloat16):
            out = model(x.cuda())
            loss = nn.functional.cross_entropy(out, y.cuda())

            optimizer.zero_grad(set_to_none=False)
        loss.backward()
"""
    assert block in text


def test_autocast_is_left_to_the_reader_where_two_losses_have_forwards(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    made = make_patch(answer("bf16", use=dataclasses.replace(USE, backward_elsewhere=True)), tmp_path)
    assert [row.name for row in made.by_hand] == ["bf16"]


def test_several_fixes_make_one_diff(tmp_path: Path) -> None:
    text = patched(tmp_path, PROGRAM, answer("tf32", "fused_optimizer", "torch_compile", "bf16", "no_empty_cache"))
    for part in ("x = 1\n", "fused=True", "model.compile()", "with torch.autocast", "        pass\n"):
        assert part in text


def test_what_has_no_place_is_left_to_the_reader(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    made = make_patch(answer("no_gc", "fused_optimizer", lines="gc.disable()"), tmp_path)
    assert [row.name for row in made.by_hand] == ["no_gc"]
    assert made.text.startswith("# no_gc, by hand: gc.disable()\ndiff --git a/train.py b/train.py\n")


@pytest.mark.parametrize(
    ("fix", "module", "line"),
    [
        ("torch_compile", {}, "net.compile()"),
        ("torch_compile", {"inside": "module"}, "net.module.compile()"),
        ("torch_compile", {"can_compile": False}, "net.forward = torch.compile(type(net).forward).__get__(net)"),
        (
            "torch_compile_graphs",
            {"can_compile": False},
            "net.forward = torch.compile(type(net).forward, mode='reduce-overhead').__get__(net)  # clone what is kept; "
            "zero_grad() after step()",
        ),
        ("torch_compile_layers", {"layers": "model.layer"}, "for layer in net.model.layer: layer.compile()"),
        ("torch_compile_layers", {"inside": "module"}, "for layer in net.module: layer.compile()"),
        (
            "torch_compile_layers",
            {"layers": "layers", "can_compile_layers": False},
            "for layer in net.layers: layer.forward = torch.compile(type(layer).forward).__get__(layer)",
        ),
    ],
)
def test_each_module_is_compiled_in_place_as_it_can_be(
    tmp_path: Path, fix: str, module: dict[str, Any], line: str
) -> None:
    source = "import torch\nnet = Net()\n"
    use = ProgramUse(modules=[ModuleUse("Net", 6, 0, 3, False, place="train.py:2", **module)])
    assert patched(tmp_path, source, answer(fix, use=use)) == f"{source}{line}\n"
    assert lines_for(tryable()[fix][0], use, ()) == re.sub(r"\bnet\b", "model", line)


def test_only_modules_with_layers_are_compiled_by_layer(tmp_path: Path) -> None:
    modules = [ModuleUse(name, 6, 0, 4 * number, False, place="train.py:1") for number, name in enumerate("DG")]
    assert patched(tmp_path, "g, d = G(), D()\n", answer("torch_compile_layers", use=ProgramUse(modules=modules))) == (
        "g, d = G(), D()\nfor layer in g: layer.compile()\n"
    )


@pytest.mark.parametrize(
    ("source", "variable"),
    [
        ("net: Module = Net().to('cpu')", "net"),
        ("self.net = load('net')", "self.net"),
        ("trainer = Trainer(Net())", None),
        ("nets = [Net() for _ in range(3)]", None),
        ("a, b = Net(), Net()", None),
    ],
)
def test_a_line_is_added_only_for_a_variable_that_holds_the_module(
    tmp_path: Path, source: str, variable: str | None
) -> None:
    (tmp_path / "train.py").write_text(source)
    use = ProgramUse(modules=[ModuleUse("Net", 6, 0, 0, False, place="train.py:1")])
    made = make_patch(answer("torch_compile", use=use), tmp_path)
    assert (f"+{variable}.compile()" in made.diff) == bool(variable) != bool(made.by_hand)


def test_a_file_that_imports_parts_of_torch_imports_it_for_a_line_that_needs_it(tmp_path: Path) -> None:
    source = "from __future__ import annotations\nfrom torch import nn\nnet = Net()\n"
    for can_compile in (True, False):
        module = ModuleUse("Net", 6, 0, 0, False, place="train.py:3", can_compile=can_compile)
        text = patched(tmp_path, source, answer("torch_compile", use=ProgramUse(modules=[module])))
        assert ("\nimport torch\nfrom torch import nn\n" in text) != can_compile


def test_an_iterable_dataset_keeps_its_number_of_workers(tmp_path: Path) -> None:
    source = "a = DataLoader(x)\nb = DataLoader(y)\nc = DataLoader(z, num_workers=2)\n"
    loaders = [LoaderUse(0, False, False, False, 1, "train.py:1")]
    loaders += [LoaderUse(number, False, False, True, 1, f"train.py:{2 + number // 2}") for number in (0, 2)]
    text = patched(
        tmp_path,
        source,
        answer("prefetch", use=ProgramUse(loaders=loaders), proof="loaders with 6 workers (before: 0)"),
    )
    rest = "persistent_workers=True, prefetch_factor=4)"
    expected = [
        f"a = DataLoader(x, num_workers=6, {rest}",
        "b = DataLoader(y)",
        f"c = DataLoader(z, num_workers=2, {rest}",
    ]
    assert text.splitlines() == expected


def test_data_parallel_training_gets_channels_last_by_hand(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    wrapped = dataclasses.replace(USE.modules[0], name="DistributedDataParallel", inside="module")
    use = dataclasses.replace(USE, modules=[wrapped])
    made = make_patch(answer("channels_last", use=use), tmp_path)
    assert [row.name for row in made.by_hand] == ["channels_last"]
    lines = lines_for(tryable()["channels_last"][0], use, ())
    assert lines.startswith("model.to(")
    assert lines.endswith("; before DistributedDataParallel(model)")


def test_a_model_that_a_function_returns_is_left_to_the_reader(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\ndef make():\n    return Net()\n")
    use = ProgramUse(modules=[ModuleUse("Net", 6, 0, 0, False, place="train.py:3")])
    assert make_patch(answer("torch_compile", use=use), tmp_path).diff == ""
