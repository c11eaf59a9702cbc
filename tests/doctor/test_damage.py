"""Whatever is put before the doctor, it answers: a check or a one-line error, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from doctor_machines import FakeMachine
from hypothesis import example, given
from hypothesis import strategies as st
from nsys_files import small

from warpline.doctor.commands import examine_command
from warpline.doctor.files import examine_file, examine_ncu_report, examine_ncu_text
from warpline.doctor.messages import read_messages
from warpline.errors import WarplineError
from warpline.sources.registry import kinds, suffixes_of

WORDS = st.sampled_from(
    [
        "nsys",
        "profile",
        "ncu",
        "docker",
        "run",
        "exec",
        "python",
        "a.py",
        "-t",
        "cuda",
        "-k",
        "regex:x",
        "--",
        "-c",
        "nvtx",
        "-p",
        "--rm",
        "img",
        "sudo",
        "-E",
        "A=1",
        "&&",
        "|",
        ";",
        "-o",
        "/tmp/x",
        "torchrun",
        "'",
        '"',
        "\\",
        "--kill",
        "%q{X}",
    ]
)


@given(st.lists(WORDS, max_size=12))
@example(["nsys", "-c", "nsys", "nsys"])
def test_any_words_are_a_command_or_a_usage_error(words: list[str]) -> None:
    machine = FakeMachine(folders={".": (), "/tmp": ()})
    for given_as in (" ".join(words), words):
        try:
            examination = examine_command(given_as, machine)
        except WarplineError:
            continue
        if examination.corrected:
            # What was put right is a command, too; there may be nothing left to say about it.
            assert examine_command(examination.corrected, machine).kind == "command"


@given(st.binary(max_size=200))
def test_any_bytes_may_follow_the_magic_of_an_ncu_report(rest: bytes) -> None:
    assert examine_ncu_report(b"NVR\x00" + rest)


@given(st.text(max_size=300))
def test_any_text_may_be_a_log(text: str) -> None:
    read_messages(text)
    examine_ncu_text('"ID","Process ID"\n' + text)


@pytest.mark.parametrize("suffix", [*suffixes_of(*kinds()), ".nsys-rep.gz", ".bin", ""])
@pytest.mark.parametrize(
    "content",
    [
        b"\x00" * 64,
        b"\xff" * 64,
        b"SQLite format 3\x00" + b"\x01" * 200,
        b"\x1f\x8b\x08garbage",
        b"{",
        b"NVR\x00",
        b"BZh9x",
        b"NVIDIA Tegra Profiler Report 2099@1@1@1",
        b"\xfd7zXZ\x00",
        b"==PROF== \xff\xfe\n",
    ],
)
def test_any_file_gets_an_answer(content: bytes, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    path = tmp_path / f"file{suffix}"
    path.write_bytes(content)
    assert examine_file(path).verdict in ("ok", "warning", "problem", "unknown")


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_an_export_cut_short_is_called_so(share: float, tmp_path: Path) -> None:
    path = small().error_output("word " * 5000).write(tmp_path / "r.sqlite")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    examination = examine_file(path)
    assert examination.verdict in ("problem", "warning"), examination.checks
