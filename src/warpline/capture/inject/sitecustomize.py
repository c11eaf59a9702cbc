"""Python imports this before the program: it waits for torch, and does nothing else.

``warpline run`` and ``warpline try`` prepend this folder to PYTHONPATH. A sitecustomize that it hides still runs. No
error here may stop the program.
"""

# ruff: noqa: PTH100, PTH118, PTH120, PTH123
# pathlib is slow to import, and every Python process of the program would pay for it.
from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder

TYPE_CHECKING = False  # typing is slow too
if TYPE_CHECKING:
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(os.path.dirname(HERE))
PLAN, TRIAL = "WARPLINE_CAPTURE", "WARPLINE_TRY"
AGENTS = {
    PLAN: {"torch": ("warpline.capture.agent", "arm")},
    TRIAL: {
        "torch": ("warpline.capture.trial.agent", "arm"),
        "transformers.generation.utils": ("warpline.capture.trial.agent", "arm_generate"),
        "transformers.training_args": ("warpline.capture.trial.agent", "arm_trainer"),
        "accelerate.accelerator": ("warpline.capture.trial.agent", "arm_accelerator"),
    },
}
"""By the variable that holds the plan: what is called once which module has been imported."""
HELPERS = ("compile_worker", "resource_tracker")
"""Words in the command of a process that torch starts for itself."""


class ImportWatcher:
    """Arm an agent once a module has been imported, and serve ``import warpline`` from this installation."""

    def __init__(self, variable: str) -> None:
        self.variable = variable
        self.looking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == "warpline":
            return PathFinder.find_spec(name, [os.path.dirname(PACKAGE)])
        if name not in AGENTS[self.variable] or self.looking:
            return None
        self.looking = True
        try:
            spec = self.found_by_others(name, path)
        finally:
            self.looking = False
        if spec is not None and spec.loader is not None:
            watch(spec.loader, *AGENTS[self.variable][name], self.variable)
        return spec

    def found_by_others(self, name: str, path: Any) -> Any:
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path)
                if spec is not None:
                    return spec
        return None


def watch(loader: Any, agent: str, function: str, variable: str) -> None:
    """Arm the agent when the loader is done."""
    load = loader.exec_module

    def exec_module(module: Any) -> None:
        load(module)
        try:
            getattr(import_module(agent), function)(module)
        except Exception as error:  # the program comes first
            complain(error, variable)

    loader.exec_module = exec_module


def complain(error: Exception, variable: str) -> None:
    """Leave a message for the command that started the program, which looks for it."""
    try:
        import json  # noqa: PLC0415 - for errors only

        folder = json.loads(os.environ[variable])["folder"]
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
    from importlib.util import module_from_spec  # noqa: PLC0415 - rarely needed

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def is_helper() -> bool:
    """Whether torch or Python started this process for itself."""
    return any(word in " ".join(getattr(sys, "orig_argv", sys.argv)[1:4]) for word in HELPERS)


for variable in (PLAN, TRIAL):
    if os.environ.get(variable) and not (variable == TRIAL and is_helper()):
        sys.meta_path.insert(0, ImportWatcher(variable))
run_the_hidden_one()
