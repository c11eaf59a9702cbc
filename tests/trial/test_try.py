"""`warpline try` end to end, with real torch on the CPU: what is injected, found and reported, whatever the speed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from msgspec.structs import replace

from warpline.cli.main import run
from warpline.trial import look, variants
from warpline.trial.answer import TrialAnswer, TriedFix
from warpline.trial.candidates import candidates, tryable
from warpline.trial.patch import make_patch
from warpline.trial.session import TrialRequest, run_trial

pytest.importorskip("torch")

CNN = """
    import os
    import torch
    from torch import nn

    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return int(os.environ.get("IMAGES", 10_000_000))
        def __getitem__(self, place):
            generator = torch.Generator().manual_seed(place)
            return torch.rand(3, 8, 8, generator=generator), place % 10

    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for x, y in torch.utils.data.DataLoader(Images(), batch_size=4):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
"""
RANKS = """
    import os, torch
    from torch import distributed, nn

    def train(rank):
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29500")
        torch.set_num_threads(1)
        distributed.init_process_group("gloo", rank=rank, world_size=2)
        net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(128, 10))
        net = nn.parallel.DistributedDataParallel(net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        while True:
            out = net(torch.rand(4, 3, 8, 8))
            is_bf16 = torch.tensor(float(out.dtype == torch.bfloat16))
            distributed.all_reduce(is_bf16)
            assert is_bf16 in (0, 2)
            optimizer.zero_grad()
            out.float().square().mean().backward()
            optimizer.step()

    torch.multiprocessing.start_processes(train, nprocs=2, start_method="fork")
"""
COMPILE_FAILS = """
    import sys, time, torch

    @torch.library.custom_op("demo::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:  # it has no fake kernel
        return x * 2

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(32, 32)
        def forward(self, x):
            if torch.compiler.is_compiling() and sys.argv[1] == "hang":
                time.sleep(10_000)
            return self.linear(twice(x))

    net = Net().requires_grad_(False)
    for _ in range(1_000_000):
        net(torch.randn(64, 32))
"""


BUDGET_S = 3600.0
"""More than any of this takes on a busy machine: the number of rounds bounds it."""


def tried(tmp_path: Path, source: str, fixes: list[str], argument: str = "", **limits_s: float) -> TrialAnswer:
    """What is found of a program in four rounds. `limits_s`: other limits of a start."""
    program = tmp_path / "program.py"
    program.write_text(dedent(source))
    command = sys.executable, str(program), argument
    request = TrialRequest(command, tuple(candidates(fixes)), BUDGET_S, max_groups=1, working_folder=tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(look, "MAX_ROUNDS", 4)
        for name, limit_s in limits_s.items():
            patch.setattr(variants, name, limit_s)
        return run_trial(request, print)


def rows(answer: TrialAnswer) -> dict[str, Any]:
    return {row["fix"]: row for row in answer.to_dict()["tries"]}


@pytest.fixture(scope="module")
def of_cnn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TrialAnswer]:
    """A folder with a program, and what was found of it."""
    folder = tmp_path_factory.mktemp("cnn")
    return folder, tried(folder, CNN, FIXES)


FIXES = ["channels_last", "fused_optimizer", "set_to_none", "prefetch=2", "nothing", "tf32"]


def test_fixes_are_made_proved_and_compared(of_cnn: tuple[Path, TrialAnswer]) -> None:
    found, answer = rows(of_cnn[1]), of_cnn[1].to_dict()
    assert answer["schema"] == "warpline.try/1"
    assert answer["step"] == "SGD.step()"
    assert answer["baseline"]["step_ns"]["expected"] > 0
    assert found["channels_last"]["changed"] == ["convolutions in channels_last"]
    assert found["fused_optimizer"]["changed"] == ["optimizers made fused"]
    assert found["prefetch=2"]["changed"] == ["loaders with 2 workers (before: 0)"]
    assert "num_workers=2," in found["prefetch=2"]["lines"]
    assert found["set_to_none"]["changed"][0].startswith("zero_grad calls changed")
    assert found["tf32"]["why_not"] == "did not apply: the program does not use a GPU"
    for name in FIXES[:5]:
        assert found[name]["same_result"] is True, found[name]
        assert found[name]["gain"]["low"] < found[name]["gain"]["high"]
        assert found[name]["verdict"] in {"faster", "slower", "no_gain", "inconclusive"}
    assert found["nothing"]["verdict"] != "faster"
    page = Path(__file__).parents[2].joinpath("docs", "commands", "try.md").read_text()
    for field in [*answer, *answer["tries"][0], *answer["baseline"]]:
        assert f"`{field}`" in page or field == "schema", field


def test_the_patch_applies_to_the_real_file_and_takes_effect(of_cnn: tuple[Path, TrialAnswer]) -> None:
    folder, found = of_cnn
    more = [TriedFix(name, "", tryable()[name][0].lines) for name in ("tf32", "bf16", "torch_compile")]
    kept = [row for row in found.tries if row.name != "tf32"]
    best = (*FIXES[:4], "tf32", "bf16", "torch_compile")
    patch = make_patch(replace(found, tries=(*kept, *more), best=best), folder)
    assert patch.by_hand == ()
    (folder / "best.patch").write_text(patch.text)
    subprocess.run(["git", "apply", "best.patch"], cwd=folder, check=True)
    check = """
        import functools, runpy, torch
        torch.compile = functools.partial(torch.compile, backend="eager")
        made = runpy.run_path("program.py")
        assert made["optimizer"].param_groups[0]["fused"]
        assert made["net"][0].weight.is_contiguous(memory_format=torch.channels_last)
        assert made["net"][0].weight.grad is not None
        assert torch.get_float32_matmul_precision() == "high"
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
        assert sorted(made["net"].state_dict()) == ["0.bias", "0.weight", "3.bias", "3.weight"]
    """
    text = (folder / "program.py").read_text()
    assert "num_workers=2, persistent_workers=True" in text
    assert "set_to_none=True" in text
    assert "with torch.autocast('cpu', torch.bfloat16):" in text
    environment = {**os.environ, "IMAGES": "8"}
    subprocess.run([sys.executable, "-c", dedent(check)], cwd=folder, env=environment, check=True)


def test_all_ranks_of_a_job_that_forks_get_the_fix_and_run_by_turns(tmp_path: Path) -> None:
    answer = tried(tmp_path, RANKS, ["bf16", "channels_last"])
    found = rows(answer)
    assert answer.use.world_size == 2
    assert answer.baseline_processes == 3
    for name in ("bf16", "channels_last"):
        assert found[name]["gain"] is not None, found[name]
    assert found["channels_last"]["same_result"] is True


@pytest.mark.parametrize("how", ["crash", "hang"])
def test_a_compiler_that_fails_gets_a_row(how: str, tmp_path: Path) -> None:
    limits_s = {"COMPILE_START_S": 0.0, "MIN_START_S": 1.0, "START_FACTOR": 2.0} if how == "hang" else {}
    found = rows(tried(tmp_path, COMPILE_FAILS, ["torch_compile_layers", "torch_compile"], how, **limits_s))
    assert found["torch_compile_layers"]["why_not"].startswith("did not apply: no model has a list")
    reason = found["torch_compile"]["why_not"]
    assert reason.startswith("crashed: " if how == "crash" else "hung: "), reason


def test_it_asks_before_the_program_writes_outside_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, other = tmp_path / "folder", tmp_path / "other.txt"
    folder.mkdir()
    (folder / "program.py").write_text(
        f"import torch\nopen('inside.txt', 'w').write('x')\nopen({str(other)!r}, 'w').write('x')\n"
    )
    monkeypatch.chdir(folder)
    assert run(["try", "--", sys.executable, "program.py"]) == 2
    assert (
        f"writes-files: the program runs in a copy of this folder and writes outside it ({other})"
        in capsys.readouterr().err
    )
    assert not other.exists()
    assert not (folder / "inside.txt").exists()


def test_a_program_without_steps_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text("import torch\n")
    assert run(["try", "--json", "--", sys.executable, str(program)]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["code"] == "no-steps"
    assert "Traceback" not in err
