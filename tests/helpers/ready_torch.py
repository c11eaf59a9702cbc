"""Programs with torch, each in a process that is forked from one that has loaded it.

Loading torch takes two seconds of a core, a fork a few milliseconds. The recorder and the program are two processes as
ever, with their own signals and exit codes; `import torch` in the program passes the import system and with it the
recorder's hook. Only what Python does before a program's first line and after an exception is imitated.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

HERE = Path(__file__).resolve()
PATIENCE_S = 600
"""With a program that hangs."""


@cache
def _server() -> subprocess.Popen[str]:
    paths = (str(HERE.parents[2] / "src"), str(HERE.parent / "no_compiler"))
    server = subprocess.Popen(
        [sys.executable, str(HERE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    atexit.register(server.communicate)  # it ends with its input
    return server


def run_module(
    module: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """`python -m module arguments…` in that folder; the Python programs that the recorder starts are forked, too."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    files = [str(folder / name) for name in ("standard-output", "standard-error")]
    order = {
        "module": module,
        "arguments": arguments,
        "folder": str(folder),
        "environment": dict(environment),
        "files": files,
    }
    server.stdin.write(json.dumps(order) + "\n")
    server.stdin.flush()
    if not select.select([server.stdout], [], [], PATIENCE_S)[0]:
        raise subprocess.TimeoutExpired([module, *arguments], PATIENCE_S)
    code = int(server.stdout.readline())
    out, err = (Path(file).read_text(encoding="utf-8") for file in files)
    return subprocess.CompletedProcess([module, *arguments], code, out, err)


class ForkedProgram:
    """As much of `subprocess.Popen` as the recorder needs."""

    def __init__(
        self, command: list[str], *, env: Mapping[str, str], stdout: int | None, preexec_fn: Callable[[], None]
    ) -> None:
        assert command[0] == sys.executable, command
        assert command[1].endswith(".py"), command
        self.returncode: int | None = None
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            preexec_fn()
            if stdout is not None:
                os.dup2(stdout, 1)
            _be_the_program(command[1:], env)

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class LoadedTorch:
    """A finder, and its own loader, of the torch that is loaded already."""

    def __init__(self) -> None:
        self.torch = sys.modules.pop("torch")

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != "torch":
            return None
        spec = ModuleSpec(name, self, origin=self.torch.__file__, is_package=True)  # type: ignore[arg-type]
        spec.submodule_search_locations = list(self.torch.__path__)
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.torch

    def exec_module(self, module: ModuleType) -> None:
        """It is loaded."""


def _be_the_program(words: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """What Python does with a script, from its first line to its end."""
    end_now = os._exit
    os.environ.clear()
    os.environ.update(environment)
    for name in sys.modules.keys() - LOADED:  # those of the recorder, which is another process
        del sys.modules[name]
    sys.path[:] = [*os.environ["PYTHONPATH"].split(os.pathsep), *PATH]
    sys.meta_path.insert(0, LoadedTorch())
    del sys.modules["sitecustomize"]
    __import__("sitecustomize")
    sys.path.insert(0, str(Path(words[0]).parent.absolute()))
    sys.argv = list(words)
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__file__ = words[0]
    end_now(_ended(lambda: exec(compile(Path(words[0]).read_bytes(), words[0], "exec"), main.__dict__)))


def _ended(program: Callable[[], Any]) -> int:
    """The exit code of a program, after all that is to run at its end."""
    import threading  # noqa: PLC0415

    code: Any = 0
    try:
        program()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else 1


def _be_the_recorder(order: dict[str, Any]) -> NoReturn:
    import runpy  # noqa: PLC0415

    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, file in enumerate(order["files"], 1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    sys.argv = [order["module"], *order["arguments"]]
    import warpline.capture.launch as recorder  # noqa: PLC0415

    recorder.subprocess = SimpleNamespace(Popen=ForkedProgram)  # type: ignore[attr-defined]
    os._exit(_ended(lambda: runpy.run_module(order["module"], run_name="__main__", alter_sys=True)))


def _serve() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _be_the_recorder(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    import torch.optim
    import torch.profiler
    import torch.utils.data  # noqa: F401

    PATH = [entry for entry in sys.path[1:] if entry not in os.environ["PYTHONPATH"].split(os.pathsep)]
    LOADED = frozenset(sys.modules)
    _serve()
