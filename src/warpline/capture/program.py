"""The program to run: its command line, its Python if it has one, and a name for the run."""

from __future__ import annotations

import datetime
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warpline.errors import UsageError

PYTHON = re.compile(r"(?:python|pypy)[\d.]*w?(?:\.exe)?")
STARTERS = frozenset(("torchrun", "accelerate", "deepspeed"))
"""Programs that start Python with their own environment."""
WRAPPERS = frozenset(
    (
        "sh",
        "bash",
        "dash",
        "zsh",
        "env",
        "nice",
        "time",
        "timeout",
        "stdbuf",
        "numactl",
        "taskset",
        "make",
        "conda",
        "mamba",
        "micromamba",
        "uv",
        "poetry",
        "pipenv",
        "srun",
        "mpirun",
    )
)
"""Programs that start another program with their own environment."""
TIMEOUT_SECONDS = 60
MAX_NAME_CHARS = 60
"""Of a run: letters take up to four bytes, and a folder name up to 255."""


@dataclass(frozen=True)
class ProgramCommand:
    """A command line, and what is known about it."""

    command: tuple[str, ...]
    python: str | None
    """The Python that runs it; None if the command does not show it."""
    is_python: bool
    name: str
    """A short name: that of the script or module."""
    wraps: bool = False
    """Whether it is not Python itself but probably starts it."""


def program_of(words: Sequence[str], module: bool = False) -> ProgramCommand:
    """Parse `python train.py …`, `train.py …`, `-m package.module …` or any other command."""
    if not words:
        raise UsageError("no-program", "there is no program to run", "end the command with it: -- python train.py")
    if module:
        python = _python()
        return ProgramCommand((python, "-m", *words), python, is_python=True, name=plain_name(words[0]))
    missing = _missing_script(words)
    if missing is not None:
        hint = f"type it without quotes: {missing}" if " " in missing else "check the path"
        raise UsageError("no-program", f"{missing} does not exist", hint)
    if words[0].endswith(".py") and not shutil.which(words[0]):
        python = _python()
        return ProgramCommand((python, *words), python, is_python=True, name=plain_name(Path(words[0]).stem))
    found = shutil.which(words[0])
    if found is None and Path(words[0]).exists():
        hint = f"a script: bash {words[0]}; a profile: warpline {words[0]}"
        raise UsageError("no-program", f"{words[0]} is no program", hint)
    if found is None:
        raise UsageError("no-program", f"{words[0]} was not found", "check PATH and the spelling")
    interpreters = [found, *_first_line(Path(found))]
    named = next((_on_path(word) for word in interpreters if PYTHON.fullmatch(Path(word).name)), None)
    is_python = named is not None or Path(found).name in STARTERS
    wraps = not is_python and any(Path(word).name in WRAPPERS for word in interpreters)
    return ProgramCommand(tuple(words), named, is_python, plain_name(_script_name(words, is_python)), wraps)


def has_torch(python: str) -> bool:
    """Whether that Python can import torch; checked without importing it."""
    question = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    try:
        answer = subprocess.run(
            [python, "-c", question],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


def run_name(program: ProgramCommand, now: datetime.datetime) -> str:
    """Date, time and script, so that runs sort by time."""
    return f"{now:%Y%m%d-%H%M%S}-{program.name}"


def _python() -> str:
    """Our Python if it has torch, otherwise the `python` on PATH."""
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    return shutil.which("python") or shutil.which("python3") or sys.executable


def _missing_script(words: Sequence[str]) -> str | None:
    """The Python file that the command names as its program and that is not there."""
    program = Path(words[0]).name
    starts_python = PYTHON.fullmatch(program) or program in STARTERS
    for word in words if starts_python else words[:1]:
        if word in ("-c", "-m", "--module"):
            return None
        if word.endswith(".py") and not shutil.which(word):
            return None if Path(word).is_file() else word
    return None


def _first_line(script: Path) -> list[str]:
    """The words after `#!`; empty if there is no such line."""
    try:
        with script.open("rb") as file:
            first = file.readline(512).decode("utf-8", "replace").strip()
    except OSError:
        return []
    return first[2:].split() if first.startswith("#!") else []


def _on_path(word: str) -> str | None:
    return word if Path(word).is_absolute() else shutil.which(word)


def _script_name(words: Sequence[str], is_python: bool) -> str:
    """The first word that names a script or a module, otherwise the program itself."""
    rest = list(words[1:])
    for position, word in enumerate(rest):
        if is_python and word == "-m" and position + 1 < len(rest):
            return rest[position + 1]
        if word.endswith(".py"):
            return Path(word).stem
    return Path(words[0]).stem


def plain_name(text: str) -> str:
    """A valid folder name."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-.")[:MAX_NAME_CHARS] or "program"
