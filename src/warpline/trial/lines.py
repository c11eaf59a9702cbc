"""What to write into this program for a change: with the number that was measured, and as its modules need it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from warpline.capture.trial.use import ModuleUse, ProgramUse
from warpline.fixes.tryable import TryableChange

CHOSEN_NUMBER = {
    "prefetch": re.compile(r"with (\d{1,9}) workers"),
    "threads": re.compile(r"threads of an op: (\d{1,9})"),
    "larger_micro_batch": re.compile(r"(\d{1,9}) micro-batches made one"),
}
"""Where a change's proof says the number that it chose for this machine: `N` in its lines."""
BEFORE_WRAPPING = ("channels_last",)
"""Changes of a model that DistributedDataParallel must find made: it keeps gradients in the layout of the weights."""
COMPILE_CALL = re.compile(r"\b(model|layer)\.compile\(([^()]*)\)")


def lines_for(change: TryableChange, use: ProgramUse, proof: Sequence[str]) -> str:
    """The lines of a change, for a variable `model` that holds the largest module it acts on."""
    number = measured_number(change.name, proof)
    lines = re.sub(r"\bN\b", number, change.lines) if number else change.lines
    modules = changed_modules(change.name, use)
    if not modules:
        return lines
    largest = max(modules, key=lambda one: one.parameters)
    if change.name in BEFORE_WRAPPING and largest.inside:
        return f"{lines}; before {largest.name}(model)"
    return module_lines(lines, largest)


def measured_number(name: str, proof: Sequence[str]) -> str | None:
    """The number that a change was measured with, where it chose one itself."""
    pattern = CHOSEN_NUMBER.get(name)
    found = pattern.search("; ".join(proof)) if pattern else None
    return found[1] if found else None


def changed_modules(name: str, use: ProgramUse) -> list[ModuleUse]:
    """The modules that a change acts on."""
    match name:
        case "channels_last":
            return [one for one in use.modules if one.convolutions]
        case "torch_compile_layers":
            return [one for one in use.modules if one.repeated and not one.is_compiled]
        case "torch_compile" | "torch_compile_graphs" | "cuda_graph":
            return [one for one in use.modules if one.parameters and not one.is_compiled]
    return []


def module_lines(lines: str, module: ModuleUse, variable: str = "model") -> str:
    """The lines for a module: names of checkpoints stay, which `model = torch.compile(model)` would change."""
    can_compile = {"model": module.can_compile, "layer": module.can_compile_layers}

    def compiled(call: re.Match[str]) -> str:
        who, arguments = call.groups()
        if can_compile[who]:
            return call[0]
        given = ", ".join(filter(None, (f"type({who}).forward", arguments)))
        return f"{who}.forward = torch.compile({given}).__get__({who})"  # bound, so that a deep copy has its own

    text = COMPILE_CALL.sub(compiled, lines)
    text = text.replace("model.layers", ".".join(filter(None, ("model", module.layers))))
    return re.sub(r"(?<![\w.])model\b", ".".join(filter(None, (variable, module.inside))), text)
