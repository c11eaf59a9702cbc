"""Real programs under `python -m warpline.capture`, on the CPU: recorded, undisturbed, and ended as they would end alone."""

from __future__ import annotations

import gzip
import importlib.metadata
import importlib.util
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

from warpline.analyses.user_frames import UserFrames
from warpline.trace.open import open_trace

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.long,
    pytest.mark.usefixtures("interruptible"),
]

EXAMPLES = ROOT / "docs" / "examples"
TIMEOUT_S = 600
"""Of a program that hangs; none of them takes more than seconds of work."""
FEW = ("--skip", "3", "--warmup", "1", "--steps", "2")
MODEL = """
import os, signal, sys, time
import torch
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
"""
UNTIL_RECORDED = """
end = time.time() + 300
while time.time() < end and not os.path.exists('run/trace.json'): torch.randn(64, 64) @ torch.randn(64, 64)
"""


@dataclass
class Outcome:
    code: int
    out: str
    err: str
    folder: Path

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self.folder / "manifest.json").read_text())

    @property
    def entry(self) -> dict[str, Any]:
        (entry,) = self.manifest["traces"]
        return entry

    def names(self, file: str = "trace.json.gz") -> list[str]:
        with gzip.open(self.folder / file, "rt") as text:
            return [str(event.get("name")) for event in json.load(text)["traceEvents"]]

    def step_names(self, file: str = "trace.json.gz") -> list[str]:
        return [name for name in self.names(file) if name.startswith("ProfilerStep#")]


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
        "WANDB_API_KEY": "very-secret",
        "NCCL_HOSTID": "some-host",
        "PYTHONFAULTHANDLER": "1",  # a crash inside torch says where it was
    }


def command(folder: Path, *arguments: str) -> list[str]:
    # A slow start must not open a window of time, nor a slow step end the recording.
    limits = [
        part for option in ("--after", "--seconds") if option not in arguments for part in (option, str(TIMEOUT_S))
    ]
    return [sys.executable, "-m", "warpline.capture", "--output", str(folder), *limits, *arguments]


def record(tmp_path: Path, script: str, *options: str, arguments: tuple[str, ...] = ()) -> Outcome:
    (tmp_path / "program.py").write_text(script)
    folder = tmp_path / "run"
    done = run_here(tmp_path, command(folder, *(options or FEW), "program.py", *arguments))
    return Outcome(done.returncode, done.stdout, done.stderr, folder)


def run_here(
    folder: Path, words: list[str], text: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        input=text,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**environment(), **variables},
        timeout=TIMEOUT_S,
        check=False,
    )


def test_a_training_loop_is_recorded_by_its_optimizer_steps_and_no_secret_is_kept(tmp_path: Path) -> None:
    script = MODEL + "for step in range(15): train()\nprint('trained', *sys.argv[1:])"
    run = record(tmp_path, script, *FEW, arguments=("--lr", "1", "--api-key", "hush", "--token=hush"))
    assert (run.code, run.out) == (0, "trained --lr 1 --api-key hush --token=hush\n")
    assert len(run.step_names()) == 2
    assert run.entry["steps_found_by"] == "optimizer.step"
    assert (run.entry["first_step"], run.entry["steps_recorded"], run.entry["ended_by"]) == (4, 2, "steps")
    assert run.entry["later_step_ns"]["steps"] >= 5
    manifest = run.manifest
    assert manifest["schema"] == "warpline.run/1"
    assert manifest["versions"]["torch"].startswith(importlib.metadata.version("torch"))
    assert manifest["files"] == ["trace.json.gz"]
    text = (run.folder / "manifest.json").read_text()
    assert "very-secret" not in text
    assert "hush" not in text
    assert manifest["environment"]["NCCL_HOSTID"] == "(set)"
    assert manifest["environment"]["OMP_NUM_THREADS"] == "1"


def test_without_skip_bare_steps_go_on_until_they_have_settled(tmp_path: Path) -> None:
    run = record(tmp_path, MODEL + "for step in range(60): train()", "--steps", "2")
    assert 13 <= run.entry["first_step"] <= 29


def test_warpline_step_is_believed_before_the_optimizer(tmp_path: Path) -> None:
    script = MODEL + (
        "import warpline\nfor step in range(9):\n    train()\n    with warpline.region('second half'): train()\n    warpline.step()"
    )
    run = record(tmp_path, script)
    assert run.entry["steps_found_by"] == "warpline.step"
    assert run.names().count("second half") == 2


def test_a_crash_keeps_its_exit_code_and_the_trace_up_to_it(tmp_path: Path) -> None:
    run = record(tmp_path, (EXAMPLES / "crash.py").read_text(), "--skip", "8", "--steps", "6", arguments=("13",))
    assert run.code == 1
    assert "RuntimeError: mat1 and mat2" in run.err
    assert len(run.step_names()) == run.entry["steps_recorded"] == 3
    assert "unfinished step" in run.names()
    assert run.manifest["exit_code"] == 1


@pytest.mark.parametrize(
    ("ending", "code"),
    [("os._exit(9)", 9), ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)", 143)],
    ids=["os._exit", "SIGTERM"],
)
def test_every_way_out_that_can_be_caught_leaves_a_trace(tmp_path: Path, ending: str, code: int) -> None:
    run = record(
        tmp_path,
        MODEL + f"for step in range(99):\n    train()\n    if step == 6: {ending}",
        "--skip",
        "3",
        "--steps",
        "50",
    )
    assert run.code == code
    assert run.entry["state"] == "recorded"
    assert len(run.step_names()) == run.entry["steps_recorded"] == 2


def test_a_hard_end_says_plainly_what_is_lost(tmp_path: Path) -> None:
    run = record(
        tmp_path,
        MODEL + "for step in range(9): train()\nos.kill(os.getpid(), signal.SIGKILL)",
        "--skip",
        "3",
        "--steps",
        "50",
    )
    assert run.code == 137
    assert "warpline: recording-lost: the program was terminated (SIGKILL)" in run.err
    assert run.manifest["signal"] == "SIGKILL"
    assert [path.name for path in run.folder.iterdir()] == ["manifest.json"]


def test_without_steps_a_window_of_time_is_recorded(tmp_path: Path) -> None:
    run = record(tmp_path, "import torch, time, os\n" + UNTIL_RECORDED, "--after", "0.3", "--seconds", "0.1")
    assert run.code == 0
    assert run.entry["steps_found_by"] is None
    assert run.entry["ended_by"] == "seconds"
    assert "aten::matmul" in run.names()


def test_steps_that_come_after_the_window_are_recorded_in_its_place(tmp_path: Path) -> None:
    script = MODEL + UNTIL_RECORDED + "for step in range(12): train()"
    run = record(tmp_path, script, *FEW, "--after", "0.2", "--seconds", "0.1")
    assert run.entry["steps_found_by"] == "optimizer.step"
    assert len(run.step_names()) == 2
    assert run.entry["notes"][0] == "the profiler was active before the bare steps were timed"


def test_a_window_is_kept_if_the_steps_after_it_end_too_soon(tmp_path: Path) -> None:
    script = MODEL + UNTIL_RECORDED + "for step in range(4): train()"
    run = record(tmp_path, script, "--after", "0.2", "--seconds", "0.1")
    assert (run.entry["state"], run.entry["steps_recorded"], run.entry["ended_by"]) == ("recorded", 0, "seconds")
    assert "aten::matmul" in run.names()


def test_stop_waits_for_steps_that_a_slow_start_held_up(tmp_path: Path) -> None:
    """Without it, the program would go on: the first call is heard before the window, and the steps come after it."""
    script = MODEL + "train()\n" + UNTIL_RECORDED + "time.sleep(1)\nwhile True:\n    train()\n    time.sleep(0.01)"
    run = record(tmp_path, script, *FEW, "--after", "0.4", "--seconds", "0.1", "--stop")
    assert run.manifest["stopped"] is True
    assert len(run.step_names()) == 2
    assert "recorded a window; steps are recorded instead if they come soon" in run.err


def test_stop_does_not_wait_for_ever_after_a_window(tmp_path: Path) -> None:
    run = record(
        tmp_path, MODEL + "train()\nwhile True: time.sleep(0.01)", "--after", "0.4", "--seconds", "0.1", "--stop"
    )
    assert run.manifest["stopped"] is True
    assert (run.entry["steps_recorded"], run.entry["ended_by"]) == (0, "seconds")


def test_stop_does_not_wait_for_ever_for_steps_that_ended_too_soon(tmp_path: Path) -> None:
    """As a server does that gets a few requests: the step is known, and does not come any more while it waits in C."""
    steps = "for step in range(6):\n    train()\n    time.sleep(0.05)\n"
    script = f"{MODEL}train()\n{UNTIL_RECORDED}{steps}time.sleep(90)\nprint('over')"
    run = record(tmp_path, script, "--after", "1", "--seconds", "0.1", "--stop")
    assert "a step is one optimizer.step" in run.err
    assert "over" not in run.out, "it was ended, and did not end"
    assert (run.manifest["stopped"], run.entry["steps_recorded"]) == (True, 0)


def test_stop_waits_for_the_first_call_of_a_program_that_has_an_optimizer(tmp_path: Path) -> None:
    """Its first batch takes longer than the window: workers that are still importing, say."""
    script = MODEL + UNTIL_RECORDED + "time.sleep(1)\nwhile True:\n    train()\n    time.sleep(0.01)"
    run = record(tmp_path, script, *FEW, "--after", "1", "--seconds", "0.1", "--stop")
    assert run.manifest["stopped"] is True
    assert len(run.step_names()) == 2


EVERYDAY = """
import time
import torch
from torch import nn
table, unet, actor, critic = nn.Embedding(16, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 1)
optimizer = torch.optim.Adam(unet.parameters())
def sample(x):
    for t in range(40):
        a, b = unet(x), unet(x)
        x = a + b
        time.sleep(0.002)
    return x
def diffusion():
    for prompt in range(8):
        text = table(torch.tensor(prompt)), table(torch.tensor(0))
        sample(text[0])
def rollout():
    for _ in range(16):
        with torch.no_grad(): actor(torch.ones(8)), critic(torch.ones(8))
        time.sleep(0.001)
def ppo():
    for iteration in range(60):
        rollout()
        for minibatch in range(4):
            optimizer.zero_grad()
            (critic(torch.ones(8)) + unet(actor(torch.ones(8)))).sum().backward()
            optimizer.step()
            time.sleep(0.002)
"""


@pytest.mark.parametrize(
    ("program", "said", "calls"),
    [
        ("diffusion", "one iteration of the loop in sample (program.py:8): 2 forward calls", {"aten::linear": 2}),
        (
            "ppo",
            "one iteration of the loop in ppo (program.py:22): 4 optimizer steps and 44 forward calls",
            {"Optimizer.step#Adam.step": 4},
        ),
    ],
)
def test_the_step_is_the_outermost_unit_that_covers_the_time(
    tmp_path: Path, program: str, said: str, calls: dict[str, int]
) -> None:
    run = record(tmp_path, f"{EVERYDAY}\n{program}()", "--steps", "2", "--no-lines", "--no-dataflow")
    assert (run.entry["steps_found_by"], run.entry["step_is"]) == ("loop", said)
    assert len(run.step_names()) == 2
    assert {name: run.names().count(name) for name in calls} == {name: 2 * count for name, count in calls.items()}
    made = {"class": "Adam", "file": "program.py", "line": 6, "function": "<module>"}
    assert run.entry["optimizers"] == [made]


def test_the_whole_of_a_short_program_can_be_asked_for(tmp_path: Path) -> None:
    run = record(tmp_path, "import torch\nfor _ in range(3): torch.randn(8, 8) @ torch.randn(8, 8)", "--whole")
    assert run.names().count("aten::matmul") == 3
    assert run.entry["ended_by"] == "exit"


@pytest.mark.parametrize(
    ("script", "line"),
    [
        (
            MODEL + "for step in range(5): train()",
            "too-few-steps: the program ended after 5 steps (optimizer.step), but the recording starts after 29; try --skip 1 --warmup 1 --steps 2",
        ),
        (
            "import torch; torch.ones(1)",
            "no-steps: no step was found, and the program ended before the time window opened",
        ),
        ("print('no torch here')", "no-torch: no Python process of the program imported torch"),
    ],
    ids=["few", "none", "no torch"],
)
def test_where_nothing_is_recorded_it_says_why_and_what_to_type(tmp_path: Path, script: str, line: str) -> None:
    run = record(tmp_path, script, "--steps", "6")
    assert run.code == 4
    assert f"warpline: {line}" in run.err
    assert run.manifest["traces"] == []


def test_a_program_with_its_own_profiler_is_left_alone(tmp_path: Path) -> None:
    script = MODEL + (
        "from torch.profiler import profile, schedule\n"
        "with profile(schedule=schedule(wait=6, warmup=1, active=2), on_trace_ready=lambda p: p.export_chrome_trace('own.json')) as p:\n"
        "    for step in range(12):\n        train()\n        p.step()\n"
        "print('fine')"
    )
    run = record(tmp_path, script)
    assert (run.code, run.out) == (0, "fine\n")
    assert "Traceback" not in run.err
    assert (tmp_path / "own.json").stat().st_size
    assert run.manifest["traces"] == []
    (left_alone,) = run.manifest["not_recorded"]
    assert left_alone["notes"] == ["the program uses torch.profiler itself, so warpline did not record it"]
    assert left_alone["own_traces"] == [str(tmp_path / "own.json")]


def test_a_profiler_that_starts_while_we_record_does_not_fail(tmp_path: Path) -> None:
    script = MODEL + (
        "for step in range(6): train()\n"
        "with torch.profiler.profile() as p:\n    for step in range(6): train()\n"
        "print(len(p.key_averages()) > 0)"
    )
    run = record(tmp_path, script, "--skip", "3", "--warmup", "1", "--steps", "50")
    assert (run.code, run.out) == (0, "True\n")
    assert run.entry["ended_by"] == "other profiler"


def test_data_loaders_workers_leave_nothing_behind(tmp_path: Path) -> None:
    script = MODEL + (
        "class Data(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 64\n"
        "    def __getitem__(self, at):\n        with torch.no_grad(): return model(torch.randn(8))\n"
        "loader = torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2)\n"
        "for batch in loader: train()"
    )
    run = record(tmp_path, script)
    assert run.code == 0
    assert run.entry["steps_found_by"] == "optimizer.step"
    assert run.manifest["not_recorded"] == []


def test_ctrl_c_leaves_a_usable_trace(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        MODEL + "while True:\n    train()\n    print('step', flush=True)\n    time.sleep(0.02)"
    )
    folder = tmp_path / "run"
    process = subprocess.Popen(
        command(folder, "--skip", "3", "--steps", "100000", "--seconds", str(TIMEOUT_S), "program.py"),
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(),
    )
    assert process.stdout is not None
    for _ in range(12):
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_S)
    run = Outcome(process.returncode, "", "", folder)
    assert run.code == 130
    assert len(run.step_names()) == run.entry["steps_recorded"] >= 2


def test_stop_ends_a_program_that_never_ends_also_behind_a_shell(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(MODEL + "while True:\n    train()\n    time.sleep(0.01)")
    shell = ("sh", "-c", f"'{sys.executable}' program.py; echo behind")
    done = run_here(tmp_path, command(tmp_path / "run", *FEW, "--stop", "--", *shell))
    run = Outcome(done.returncode, done.stdout, done.stderr, tmp_path / "run")
    assert run.code == 0
    assert run.manifest["stopped"] is True
    assert len(run.step_names()) == 2


def test_a_module_and_a_shadowed_sitecustomize_run_as_ever(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.marked = 'by my own sitecustomize'")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "work.py").write_text(MODEL + "for step in range(12): train()\nprint(__name__, sys.marked)")
    path = f"{ROOT / 'src'}{os.pathsep}{tmp_path}"
    done = run_here(tmp_path, command(tmp_path / "run", *FEW, "-m", "package.work"), PYTHONPATH=path)
    assert (done.returncode, done.stdout) == (0, "__main__ by my own sitecustomize\n"), done.stderr
    assert len(Outcome(0, "", "", tmp_path / "run").step_names()) == 2


def test_an_op_has_the_line_that_calls_its_module_and_not_one_of_ours(tmp_path: Path) -> None:
    script = MODEL + "@torch.no_grad()\ndef answer(): return model(torch.ones(1, 8))\nfor step in range(16): answer()"
    run = record(tmp_path, script, *FEW)
    assert run.entry["steps_found_by"] == "forward"
    trace = open_trace(run.folder / "trace.json.gz")
    ops = trace.ops[trace.ops.name.equal("aten::addmm")]
    line = 1 + script.split("\n").index("def answer(): return model(torch.ones(1, 8))")
    assert {*UserFrames(trace).sites(ops.thread, ops.start_ns)} == {f"program.py({line}): answer"}


def test_every_rank_of_torchrun_has_its_own_trace(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        MODEL
        + "import torch.distributed as dist\ndist.init_process_group('gloo')\n"
        + "for step in range(12):\n    train()\n    dist.all_reduce(torch.ones(4))\n"
        + "dist.destroy_process_group()"
    )
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "program.py")
    done = run_here(tmp_path, command(tmp_path / "run", *FEW, "--", *torchrun))
    assert done.returncode == 0, done.stderr
    run = Outcome(0, "", "", tmp_path / "run")
    assert run.manifest["files"] == ["rank0.json.gz", "rank1.json.gz"]
    assert [(entry["rank"], entry["world_size"]) for entry in run.manifest["traces"]] == [(0, 2), (1, 2)]
    for file in run.manifest["files"]:
        assert len(run.step_names(file)) == 2


def test_stdin_and_stdout_pass_through(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys; sys.stdout.write(sys.stdin.read().upper())")
    done = run_here(tmp_path, command(tmp_path / "run", "program.py"), text="hello")
    assert done.stdout == "HELLO"
