"""`warpline try` end to end, with real torch on the CPU: what is injected, found and reported, whatever the speed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from warpline.cli.main import run
from warpline.trial.candidates import candidates
from warpline.trial.session import TrialRequest, TrialSession

pytest.importorskip("torch")

CNN = """
    import torch
    from torch import nn

    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return 10_000
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


def tried(tmp_path: Path, source: str, fixes: list[str], budget_s: float, argument: str = "") -> Any:
    program = tmp_path / "program.py"
    program.write_text(dedent(source))
    command = sys.executable, str(program), argument
    request = TrialRequest(command, tuple(candidates(fixes)), budget_s, max_groups=1, working_folder=tmp_path)
    return TrialSession(request, print, lambda look: True).run().to_dict()


def rows(answer: Any) -> dict[str, Any]:
    return {row["fix"]: row for row in answer["tries"]}


def test_fixes_are_made_proved_and_compared(tmp_path: Path) -> None:
    fixes = ["channels_last", "fused_optimizer", "set_to_none", "prefetch=2", "nothing", "tf32"]
    answer = tried(tmp_path, CNN, fixes, 300.0)
    assert answer["schema"] == "warpline.try/1"
    assert answer["step"] == "SGD.step()"
    assert answer["baseline"]["step_ns"]["expected"] > 0
    found = rows(answer)
    assert found["channels_last"]["changed"] == ["convolutions in channels_last"]
    assert found["fused_optimizer"]["changed"] == ["optimizers made fused"]
    assert found["prefetch=2"]["changed"] == ["loaders with 2 workers (before: 0)"]
    assert found["set_to_none"]["changed"][0].startswith("zero_grad calls changed")
    assert found["tf32"]["why_not"] == "did not apply: the program does not use a GPU"
    for name in fixes[:5]:
        assert found[name]["same_result"] is True, found[name]
        assert found[name]["gain"]["low"] < found[name]["gain"]["high"]
        assert found[name]["verdict"] in {"faster", "slower", "same", "inconclusive"}
    assert found["nothing"]["verdict"] != "faster"
    page = Path(__file__).parents[2].joinpath("docs", "commands", "try.md").read_text()
    for field in [*answer, *answer["tries"][0], *answer["baseline"]]:
        assert f"`{field}`" in page or field == "schema", field


@pytest.mark.parametrize("how", ["crash", "hang"])
def test_a_compiler_that_fails_gets_a_row(how: str, tmp_path: Path) -> None:
    budget_s = 60.0 if how == "hang" else 400.0  # it ends long before, but not on a busy machine
    found = rows(tried(tmp_path, COMPILE_FAILS, ["torch_compile_layers", "torch_compile"], budget_s, how))
    assert found["torch_compile_layers"]["why_not"].startswith("did not apply: no model has a list")
    reason = found["torch_compile"]["why_not"]
    assert reason.startswith("crashed: " if how == "crash" else ("hung: ", "not tried")), reason


def test_a_program_without_steps_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text("import torch\n")
    assert run(["try", "--json", "--", sys.executable, str(program)]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["code"] == "no-steps"
    assert "Traceback" not in err
