"""Python imports this before the profiled program: it waits for torch, and does nothing else.

``warpline run`` prepends this folder to PYTHONPATH. A sitecustomize that it hides still runs. No error here may stop
the program.
"""

# ruff: noqa: PTH100, PTH118, PTH120, PTH123
# pathlib is slow to import, and every Python process of the program would pay for it.
from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False  # typing is slow too
if TYPE_CHECKING:
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(os.path.dirname(HERE))
PLAN = "WARPLINE_CAPTURE"


class TorchWatcher:
    """Arm the recorder once torch has been imported, and serve ``import warpline`` from this installation."""

    def __init__(self) -> None:
        self.looking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == "warpline":
            return PathFinder.find_spec(name, [os.path.dirname(PACKAGE)])
        if name != "torch" or self.looking:
            return None
        self.looking = True
        try:
            spec = self.found_by_others(name)
        finally:
            self.looking = False
        if spec is not None and spec.loader is not None:
            watch(spec.loader)
        return spec

    def found_by_others(self, name: str) -> Any:
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, None)
                if spec is not None:
                    return spec
        return None


def watch(loader: Any) -> None:
    """Arm the recorder when the loader is done."""
    load = loader.exec_module

    def exec_module(module: Any) -> None:
        load(module)
        try:
            from warpline.capture.agent import arm  # noqa: PLC0415

            arm(module)
        except Exception as error:  # the program comes first
            complain(error)

    loader.exec_module = exec_module


def complain(error: Exception) -> None:
    """Leave a message for ``warpline run``, which looks for it."""
    try:
        import json  # noqa: PLC0415

        folder = json.loads(os.environ[PLAN])["folder"]
        with open(os.path.join(folder, "problems.txt"), "a") as file:
            file.write(f"{type(error).__name__}: {' '.join(str(error).split())}\n")
    except Exception:
        return


def run_the_hidden_one() -> None:
    """The sitecustomize that this one hides, if there is one."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != HERE]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec  # noqa: PLC0415

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get(PLAN):
    sys.meta_path.insert(0, TorchWatcher())
run_the_hidden_one()
