"""What a step repeats: its optimizer steps, its forward calls and its layers."""

from __future__ import annotations

from pathlib import Path

from kineto_files import Event, annotation, frame, launched, write

from warpline.analyses.step_loops import StepLoops, step_loops
from warpline.trace.open import open_trace


def kernels(names: str, begin: float = 0.0, number: int = 1) -> list[Event]:
    """A kernel for each letter, launched every 20 µs."""
    return [
        event
        for place, name in enumerate(names)
        for event in launched(name, begin + 20 * place, begin + 20 * place + 8, 9, number + place)
    ]


def test_an_iteration_is_its_forward_calls_and_updates(tmp_path: Path) -> None:
    """Two steps of 1,000 µs: three calls of a module, each with one inside it, and two optimizer steps."""
    events: list[Event] = []
    for step in range(2):
        begin = 1000.0 * step
        events += [annotation(f"ProfilerStep#{step}", begin, 900), *kernels("abcdefghij", begin, 1 + 100 * step)]
        for turn in range(3):
            number = 10 * step + 2 * turn + 1
            events += [frame("nn.Module: Agent_0", begin + 100 * turn, 90, number, None)]
            events += [frame("nn.Module: Linear_0", begin + 100 * turn + 10, 50, number + 1, number)]
        events += [annotation("Optimizer.step#Adam.step", begin + 500 + 100 * turn, 50) for turn in range(2)]
    found = step_loops(open_trace(write(tmp_path, events), cache=False))
    assert (found.optimizer_steps, found.forward_calls) == (2, 3)
    assert found.words == "2 optimizer steps and 3 forward calls"


def test_layers_of_a_pass_are_repeats_of_its_operations(tmp_path: Path) -> None:
    events = [annotation("ProfilerStep#0", 0, 900), *kernels("e" + 12 * "lmn" + "h")]
    found = step_loops(open_trace(write(tmp_path, events), cache=False))
    assert (found.repeats, found.repeated_operations) == (12, 3)
    assert found.words == "12 repeats of 3 GPU operations"


def test_one_pass_with_one_update_repeats_nothing() -> None:
    assert StepLoops(optimizer_steps=1, forward_calls=1).words == ""
