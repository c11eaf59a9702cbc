"""Which unit of a running program is taken for its step: small programs with a clock of their own."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from warpline.capture import steps
from warpline.capture.steps import (
    ACCUMULATING_ROUNDS,
    EXPLICIT,
    FIRST_UPDATE_S,
    FORWARD,
    OPTIMIZER,
    OUTER_LOOP_S,
    REPLAY,
    StepFinder,
)

UNET, TABLE, ACTOR, CRITIC, ADAM, SGD = range(1, 7)


class Program:
    """What a program calls, by a clock in milliseconds; it ends as soon as its step is known."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = 1.0
        self.finder = StepFinder()
        self.ends_ms: list[float] = []
        clock = SimpleNamespace(
            perf_counter_ns=lambda: round(self.now_ms * 1e6),
            monotonic=lambda: self.now_ms / 1e3,
        )
        monkeypatch.setattr(steps, "time", clock)

    def forward(self, who: int = UNET, ms: float = 1.0, accumulates: bool = False) -> None:
        self.call(FORWARD, who, accumulates)
        self.now_ms += ms

    def update(self, who: int = ADAM, ms: float = 0.1) -> None:
        self.now_ms += ms
        self.call(OPTIMIZER, who)

    def call(self, source: int, who: int = 0, accumulates: bool = False) -> None:
        if self.finder.hear(source, who, accumulates):
            self.ends_ms.append(self.now_ms)
            if self.finder.is_settled():
                self.finder.narrow = True

    @property
    def step(self) -> str:
        """Every so many milliseconds by what, of the steps at the end."""
        unit = self.finder.unit
        assert unit is not None
        return f"{unit.name} {self.ends_ms[-1] - self.ends_ms[-2]:.1f}"


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    return Program(monkeypatch)


def test_training_follows_the_optimizer(program: Program) -> None:
    for _epoch in range(2):
        for _batch in range(10):
            program.forward()
            program.update()
    assert program.step == "optimizer.step 1.1"


def test_inference_follows_its_only_module(program: Program) -> None:
    def main() -> None:
        for _ in range(8):
            program.forward(ms=3)

    thread = threading.Thread(target=main)  # pytest itself calls a test from within loops
    thread.start()
    thread.join()
    assert program.step == "forward 3.0"
    assert program.finder.narrow


def sample(program: Program, steps_: int = 30) -> None:
    for _ in range(steps_):
        program.forward(UNET, ms=18)
        program.forward(UNET, ms=18)


def test_a_sampling_step_of_two_calls_is_the_step_and_not_the_text_table(program: Program) -> None:
    for _prompt in range(4):
        program.forward(TABLE, ms=0.1)
        program.forward(TABLE, ms=0.1)
        sample(program)
    assert program.step == "loop 36.0"
    assert "one iteration of the loop in sample (test_steps.py:" in (program.finder.unit or pytest.fail()).describe()


def test_rollouts_and_updates_make_one_iteration(program: Program) -> None:
    for _iteration in range(10):
        for _ in range(64):
            program.forward(ACTOR, ms=0.5)
            program.forward(CRITIC, ms=0.5)
        for _epoch in range(4):
            for _minibatch in range(4):
                program.forward(ACTOR, ms=1)
                program.forward(CRITIC, ms=1)
                program.update(ms=1)
    assert program.step == "loop 112.0"
    said = (program.finder.unit or pytest.fail()).describe()
    assert said.endswith("16 optimizer steps and 160 forward calls")


def generate(program: Program, prompt_ms: float, tokens: int) -> None:
    program.forward(TABLE, ms=prompt_ms)
    for _ in range(tokens):
        program.forward(UNET, ms=2)


def test_a_token_is_the_step_where_tokens_take_the_time(program: Program) -> None:
    for _ in range(4):
        generate(program, prompt_ms=5, tokens=100)
    assert program.step == "forward 2.0"


def test_a_whole_generation_is_the_step_where_the_encoder_takes_a_third(program: Program) -> None:
    for _ in range(12):
        generate(program, prompt_ms=30, tokens=30)
    assert program.step == "forward 90.0"
    assert (program.finder.unit or pytest.fail()).who == TABLE  # called once for each


def test_micro_batches_are_not_steps(program: Program) -> None:
    for _ in range(6):
        for _ in range(16):
            program.forward(accumulates=True)
        program.update()
    assert program.step == "optimizer.step 16.1"


def test_micro_batches_in_one_loop_are_not_steps(program: Program) -> None:
    for batch in range(32):
        program.forward(accumulates=True)
        if batch % 4 == 3:
            program.update(ms=0)
    assert program.step == "optimizer.step 4.0"


def test_micro_batches_whose_loop_holds_the_update_are_not_steps(program: Program) -> None:
    for _ in range(8):
        for batch in range(4):
            program.forward(accumulates=True)
            if batch == 3:
                program.update(ms=0)
    assert program.step == "optimizer.step 4.0"


def test_gradients_without_an_optimizer_are_steps_in_the_end(program: Program) -> None:
    for call in range(ACCUMULATING_ROUNDS + 1):
        program.forward(accumulates=True)
        assert program.finder.chosen == (FORWARD if call == ACCUMULATING_ROUNDS else None)


def test_two_optimizers_make_one_step(program: Program) -> None:
    for _ in range(6):
        for _ in range(5):
            program.update(SGD)
        program.update(ADAM)
    assert program.step == "optimizer.step 0.6"
    assert (program.finder.unit or pytest.fail()).who == ADAM


def test_layers_called_in_a_loop_are_not_steps(program: Program) -> None:
    for _ in range(6):
        for layer in range(24):
            program.forward(100 + layer)
    assert program.step == "forward 24.0"


def test_an_optimizer_takes_over_from_forwards_that_came_first(program: Program) -> None:
    for _ in range(10):
        program.forward(ms=5)
    assert program.finder.chosen == FORWARD
    for _ in range(4):
        program.forward(ms=5)
        program.update()
    assert program.step == "optimizer.step 5.1"


def test_a_loop_around_the_step_is_waited_for_but_not_for_ever(program: Program) -> None:
    for _ in range(1):
        while program.now_ms < 2 * OUTER_LOOP_S * 1e3:
            program.forward(ms=10)
            assert program.finder.narrow == (program.now_ms > OUTER_LOOP_S * 1e3 + 11)


def handle(program: Program) -> None:
    program.forward(ms=7)
    program.call(REPLAY, 9)
    program.now_ms += 2


def test_a_server_s_request_is_the_step(program: Program) -> None:
    for _ in range(6):
        handle(program)
    assert program.step == "forward 9.0"


def test_calls_without_a_loop_of_python_s_are_steps(program: Program) -> None:
    list(map(lambda _: program.forward(ms=4), range(6)))  # noqa: C417
    assert program.step == "forward 4.0"


def test_a_step_that_the_program_marks_is_believed_at_once(program: Program) -> None:
    for _ in range(5):
        program.forward()
    assert program.finder.hear(EXPLICIT) == 1
    assert program.finder.chosen == EXPLICIT
    program.forward()
    assert program.finder.hear(EXPLICIT) == 2


def test_once_locked_nothing_else_counts() -> None:
    finder = StepFinder()
    assert finder.hear(OPTIMIZER, who=1) == 1
    finder.lock()
    assert finder.hear(EXPLICIT) == 0
    assert finder.hear(OPTIMIZER, who=2) == 0
    assert finder.hear(OPTIMIZER, who=1) == 2


@pytest.mark.parametrize("source", [OPTIMIZER, FORWARD])
def test_a_step_that_ends_while_others_go_on_is_lost(program: Program, source: int) -> None:
    for _ in range(4):
        program.call(source, 1)
        program.now_ms += 1
    program.finder.lock()
    for _ in range(25):
        assert program.finder.hear(OPTIMIZER, 2) == 0
    assert program.finder.lost


def test_a_program_with_an_optimizer_is_waited_for_while_it_fills_its_replay_buffer(program: Program) -> None:
    program.finder.expects_update = program.finder.only_acts = True
    for step in range(400):
        program.forward(ACTOR)
        if step >= 300:
            program.update()
    assert program.step == "optimizer.step 1.1"


def test_an_optimizer_that_never_updates_is_waited_for_only_so_long(program: Program) -> None:
    program.finder.expects_update = program.finder.only_acts = True
    for _ in range(round(FIRST_UPDATE_S * 1e3) + 10):
        program.forward(ACTOR)
    assert program.finder.narrow
    assert program.step == "forward 1.0"
