"""A user's function, given as `file.py:function`, with the inputs that its file defines."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from warpline.bench.calls import Arguments, Inputs
from warpline.bench.failures import program_failed
from warpline.errors import UsageError, WarplineError

INPUTS = "inputs"
"""The function in a file that returns arguments: a tuple, or a list of tuples that alternate."""


@dataclass(frozen=True, slots=True)
class LoadedFunction:
    """A function and its sets of arguments."""

    name: str
    function: Callable[..., object]
    inputs: Inputs


def names_a_program(text: str) -> bool:
    """Whether this is `file.py:function` rather than an experiment."""
    return text.partition(":")[0].endswith(".py")


def load(text: str, loaded: Callable[[], None] = lambda: None) -> LoadedFunction:
    """The function, after running its file; `loaded` is called before its inputs are created."""
    path, _, name = text.partition(":")
    if not name:
        raise UsageError("no-function", f"{text} names a file and no function", f"warpline bench {path}:FUNCTION")
    module = load_module(path)
    loaded()
    function = getattr(module, name, None)
    if not callable(function):
        known = [key for key, value in vars(module).items() if inspect.isfunction(value) and not key.startswith("_")]
        raise UsageError("no-function", f"{path} has no function {name!r}", f"it has {', '.join(known) or 'none'}")
    return LoadedFunction(text, function, arguments_for(module, function, name))


def load_module(path: str) -> ModuleType:
    """Run a file as a module, with its folder first on the path, as `python file.py` does."""
    file = Path(path)
    if not file.is_file():
        raise WarplineError("no-such-file", f"{path} does not exist", "check the path")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent.resolve()))
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise program_failed(f"loading {path}", error, str(file)) from error
    return module


def arguments_for(module: ModuleType, function: Callable[..., object], name: str) -> list[Arguments]:
    """The result of `NAME_inputs` or `inputs` in the file; empty for a function without arguments."""
    maker: Any = getattr(module, f"{name}_{INPUTS}", None) or getattr(module, INPUTS, None)
    needed = _needed(function)
    if not needed:
        return [()]
    if not callable(maker):
        hint = f"add def {INPUTS}() to the file, returning them as a tuple"
        raise UsageError("no-inputs", f"{name} needs {', '.join(needed)}", hint)
    try:
        result = maker()
        sets = list(result) if isinstance(result, (list, Iterator)) else [result]
    except (Exception, SystemExit) as error:
        raise program_failed(f"{maker.__name__} of {name}", error, str(module.__file__)) from error
    if result is None:
        raise UsageError("no-inputs", f"{maker.__name__}() returned nothing", "return a tuple of arguments")
    return [arguments if isinstance(arguments, tuple) else (arguments,) for arguments in sets]


def _needed(function: Callable[..., object]) -> list[str]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
    by_name = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    if by_name:
        raise UsageError("by-name", f"it needs keyword arguments: {', '.join(by_name)}", "wrap it in a function")
    return [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
