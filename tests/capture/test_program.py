"""Command lines read, secrets kept, flags explained: the parts of a run that need no torch."""

from __future__ import annotations

import ast
import datetime
import errno
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from paths import ROOT

from warpline.capture import manifest
from warpline.capture import tool_commands as tools
from warpline.capture.container import docker_flags
from warpline.capture.environment import mattering_variables, scrubbed_command
from warpline.capture.manifest import gather, in_use, new_folder
from warpline.capture.plan import Plan
from warpline.capture.process_record import ProcessRecord, read_parts
from warpline.capture.program import program_of, run_name
from warpline.capture.run import RunRequest, chosen_tool
from warpline.capture.tool_commands import FirstKernels, find_tool, ncu_flags, nsys_flags, words_of
from warpline.errors import WarplineError

CAPTURE = ROOT / "src" / "warpline" / "capture"


def test_a_script_runs_with_python_and_gives_the_run_its_name(tmp_path: Path) -> None:
    script = tmp_path / "my train.py"
    script.write_text("")
    program = program_of([str(script), "--lr", "1"])
    assert program.command[1:] == (str(script), "--lr", "1")
    assert program.is_python
    assert run_name(program, datetime.datetime(2026, 1, 2, 3, 4, 5)) == "20260102-030405-my-train"


def test_a_module_a_python_command_and_another_program() -> None:
    assert program_of(["package.train", "-x"], module=True).command[1:] == ("-m", "package.train", "-x")
    python = program_of([sys.executable, "-m", "package.train"])
    assert (python.python, python.is_python, python.name) == (sys.executable, True, "package.train")
    shell = program_of(["sh", "-c", "true"])
    assert (shell.python, shell.is_python, shell.name) == (None, False, "sh")


def test_a_python_script_is_known_by_its_first_line(tmp_path: Path) -> None:
    script = tmp_path / "torchrun-like"
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    assert program_of([str(script), "train.py"]).python == sys.executable


@pytest.mark.parametrize(
    "words",
    [
        ["absent.py"],
        ["python3", "absent.py", "-m", "x"],
        [sys.executable, "-u", "-X", "dev", "absent.py"],
        ["torchrun", "--nproc-per-node", "2", "absent.py"],
        ["my train.py --lr 1.py"],
    ],
    ids=lambda words: words[0],
)
def test_a_script_that_is_not_there_is_said_before_anything_starts(words: list[str]) -> None:
    with pytest.raises(WarplineError, match=r"\.py does not exist"):
        program_of(words)


def test_a_python_file_that_is_no_program_of_python_may_be_made_later() -> None:
    for words in (["sh", "-c", "true", "absent.py"], [sys.executable, "-m", "x", "absent.py"]):
        assert program_of(words).command == tuple(words)


@pytest.mark.parametrize("first", ["#!/bin/bash", "#!/usr/bin/env bash", "#!/bin/sh -e"])
def test_a_script_of_a_shell_likely_starts_python_so_torch_records_it(first: str, tmp_path: Path) -> None:
    script = tmp_path / "train"
    script.write_text(f"{first}\npython train.py\n")
    script.chmod(0o755)
    program = program_of([str(script)])
    assert (program.wraps, program.is_python) == (True, False)
    assert chosen_tool(RunRequest(program)) == "torch"
    assert chosen_tool(RunRequest(program_of(["env", "A=1", "python", "train.py"]))) == "torch"


def test_another_program_is_left_to_nsys() -> None:
    assert chosen_tool(RunRequest(program_of(["ls"]))) == "nsys"


@pytest.mark.parametrize("words", [[], ["absent.py"], ["no-such-program-anywhere"]])
def test_a_program_that_is_not_there_is_a_usage_error(words: list[str]) -> None:
    with pytest.raises(WarplineError) as caught:
        program_of(words)
    assert (caught.value.code, caught.value.exit_code) == ("no-program", 2)


def test_a_command_in_quotes_is_to_be_typed_without_them() -> None:
    with pytest.raises(WarplineError) as caught:
        program_of(["python train.py"])
    assert caught.value.hint == "type it without quotes: python train.py"


def test_variables_are_named_where_they_matter_and_shown_where_they_are_harmless() -> None:
    said = mattering_variables(
        {
            "CUDA_VISIBLE_DEVICES": "0,1",
            "NCCL_SOCKET_IFNAME": "eth7",
            "TORCH_AUTH_TOKEN": "x",
            "HOME": "/home/me",
            "PYTORCH_CUDA_ALLOC_CONF": "/odd/$value",
            "AWS_SECRET_ACCESS_KEY": "x",
        }
    )
    assert said == {"CUDA_VISIBLE_DEVICES": "0,1", "NCCL_SOCKET_IFNAME": "(set)", "PYTORCH_CUDA_ALLOC_CONF": "(set)"}


def test_secrets_and_the_home_folder_are_left_out_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    said = scrubbed_command(["/home/me/bin/python", "train.py", "--hf-token", "abc", "--api_key=def", "--lr", "1"])
    assert said == ["~/bin/python", "train.py", "--hf-token", "…", "--api_key=…", "--lr", "1"]


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ("https://me:hush@host/x", "https://…@host/x"),
        ("hf_hushhushhushhushhush", "…"),
        ('{"token": "hush"}', '{"token": "…"}'),
        ("login(token='hush', n=1)", "login(token='…', n=1)"),
        ("WANDB_API_KEY=hush", "WANDB_API_KEY=…"),
        ("Authorization: Bearer hushhushhush", "Authorization: …"),
        ("--data=/home/me/set", "--data=~/set"),
        ("--max-tokens=128", "--max-tokens=128"),
        ("tokenizer=bpe", "tokenizer=bpe"),
        ("monkey.py", "monkey.py"),
    ],
)
def test_a_secret_is_left_out_wherever_it_stands_in_a_word(
    word: str, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert scrubbed_command(["train", word]) == ["train", kept]


@pytest.mark.parametrize("option", ["--key", "-k", "--access-key", "--pw", "--wandb.key", "--hf-token"])
def test_the_word_after_an_option_for_a_secret_is_left_out(option: str) -> None:
    said = scrubbed_command(["train", option, "hush", "next"])
    assert said == ["train", option, "hush" if option == "-k" else "…", "next"]


@pytest.mark.parametrize("name", ["../elsewhere", "a/b", "..", "."])
def test_a_name_is_one_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WarplineError, match="bad-name"):
        new_folder(name)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".warpline").write_text("")
    with pytest.raises(
        WarplineError, match=r"no-folder: \.warpline cannot be created as a folder: .*; choose another with --output"
    ):
        new_folder("name")
    with pytest.raises(WarplineError, match="no-folder"):
        new_folder("name", tmp_path / ".warpline" / "inside")


def test_runs_that_start_together_have_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: new_folder("name"), range(32)))
    assert len(set(folders)) == 32


def test_a_very_long_script_has_a_name_that_a_folder_can_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / f"{'日' * 80}.py"
    script.write_text("")
    name = run_name(program_of([str(script)]), datetime.datetime(2026, 1, 2))
    assert new_folder(name).is_dir()


def test_a_trace_that_cannot_be_packed_stays_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(manifest.shutil, "copyfileobj", full)
    record = ProcessRecord(state="recorded", file="trace.json", pid=7)
    record.write(tmp_path)
    (tmp_path / "trace.json").write_text("{}")
    (part,) = gather(tmp_path)
    assert part["file"] == "trace.json"
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


def test_processes_with_steps_come_before_one_that_only_waited(tmp_path: Path) -> None:
    ProcessRecord(state="recorded", file="trace.json", pid=1).write(tmp_path)
    for rank, pid in ((1, 2), (0, 3), (None, 4)):
        ProcessRecord(state="recorded", file=f"{pid}.json", pid=pid, rank=rank, steps_recorded=6).write(tmp_path)
    assert [part["pid"] for part in read_parts(tmp_path)] == [3, 2, 4, 1]


def test_a_process_that_records_twice_leaves_both(tmp_path: Path) -> None:
    for file in ("trace.json", "trace-7.json"):
        ProcessRecord(state="recorded", file=file, pid=7).write(tmp_path)
    assert [part["file"] for part in read_parts(tmp_path)] == ["trace.json", "trace-7.json"]


def test_nsys_records_a_range_that_the_steps_open_and_lets_the_program_run_on() -> None:
    words = words_of(nsys_flags("nsys", Plan(folder="f"), by_range=True))
    assert {
        "--sample=none",
        "--cpuctxsw=none",
        "--capture-range=cudaProfilerApi",
        "--capture-range-end=stop",
        "--kill=none",
    } <= set(words)
    assert not any(word.startswith("--duration") for word in words)
    assert "--duration=10" in words_of(nsys_flags("nsys", Plan(folder="f"), by_range=False))
    assert "--capture-range-end=stop-shutdown" in words_of(
        nsys_flags("nsys", Plan(folder="f"), by_range=True, stop=True)
    )


def test_ncu_leaves_the_clocks_alone_and_is_bounded() -> None:
    words = words_of(ncu_flags("ncu", Plan(folder="f"), True, FirstKernels("gemm", 7)))
    assert {"--clock-control=none", "--target-processes=all", "--launch-count=7", "regex:gemm"} <= set(words)


def test_a_missing_tool_is_one_line_with_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    monkeypatch.delenv("WARPLINE_NSYS", raising=False)
    with pytest.raises(WarplineError, match="nsys-missing: nsys is not on PATH; install Nsight Systems"):
        find_tool("nsys")
    monkeypatch.setenv("WARPLINE_NSYS", "/gone/nsys")
    with pytest.raises(WarplineError, match="WARPLINE_NSYS names /gone/nsys"):
        find_tool("nsys")


def test_the_container_gets_the_gpu_shared_memory_the_work_folder_and_warpline(tmp_path: Path) -> None:
    flags = docker_flags("image:1", "nsys", ["--with", "nsys", "--", "train.py"], tmp_path)
    words = words_of(flags)
    assert words[:3] == ["docker", "run", "--rm"]
    assert {"--ipc=host", "memlock=-1", "stack=67108864", "--cap-add=SYS_ADMIN"} <= set(words)
    assert f"{ROOT / 'src' / 'warpline'}:/opt/warpline/warpline:ro" in words
    assert words[words.index("image:1") + 1 :] == [
        "python3",
        "-m",
        "warpline.capture",
        "--with",
        "nsys",
        "--",
        "train.py",
    ]
    assert all(flag.why for flag in flags)
    assert "--cap-add=SYS_ADMIN" not in words_of(docker_flags("image:1", "torch", [], tmp_path))


def test_runs_get_folders_of_their_own_that_git_does_not_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = new_folder("name"), new_folder("name")
    assert (first.name, second.name) == ("name", "name-2")
    assert (tmp_path / ".warpline" / ".gitignore").read_text() == "*\n"
    assert not in_use(first)


INSIDE = [
    *sorted(CAPTURE.rglob("*.py")),
    *(CAPTURE.parent / f"{name}.py" for name in ("errors", "sanitise", "untrusted_json")),
]


@pytest.mark.parametrize("file", INSIDE)
def test_what_runs_inside_the_program_is_python_3_9_and_the_standard_library(file: Path) -> None:
    tree = ast.parse(file.read_text(), feature_version=(3, 9))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names} | {
        node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    }
    outside = {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names}
    ours = ("warpline.capture", "warpline.errors", "warpline.sanitise", "warpline.untrusted_json")
    assert all(name.startswith(ours) or name == "warpline" for name in outside)
    assert "++" not in file.read_text(), "possessive patterns came with Python 3.11"
    assert "slots=True" not in file.read_text(), "dataclasses have slots since Python 3.10"


def test_capture_loads_neither_torch_nor_the_analysis() -> None:
    code = (
        "import sys, warpline; warpline.profile; warpline.region; warpline.step; import warpline.capture.run\n"
        "print([name for name in ('torch', 'polars', 'numpy', 'rich', 'click') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def test_a_file_that_is_no_program_says_what_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "trace.json.gz"
    file.write_bytes(b"")
    with pytest.raises(WarplineError) as caught:
        program_of([str(file)])
    assert (caught.value.message, caught.value.exit_code) == (f"{file} is no program", 2)
    assert caught.value.hint.endswith(f"a profile: warpline {file}")
