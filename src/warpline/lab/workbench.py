"""What every experiment works with: the device, `bench` as its only stopwatch, and the recorder."""

from __future__ import annotations

import contextlib
import io
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from warpline.bench.api import bench
from warpline.bench.result import Result
from warpline.bench.subject import Settings
from warpline.capture.profile import profile
from warpline.errors import CannotAnswer

LOOP_SECONDS = 0.01
"""A loop is so long that the wait at its end is a small part of it."""
MAX_LOOP_STEPS = 200
WARM_STEPS, RECORDED_STEPS = 2, 5
"""Steps that warm the profiler up, and those in a recording."""
BARE_SECONDS, MIN_BARE_STEPS, MAX_BARE_STEPS = 0.3, 20, 1500
"""A host that was idle takes this long to reach its speed, and so does a GPU to reach the clock that it can keep: only
then are steps timed, in a loop and before a recording."""
WARM_UP_SECONDS = 1.0

Step = Callable[[], object]
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class LoopTime:
    """One step in a loop, as a program runs it: the longer of what the CPU and the GPU need for it."""

    step_ns: float
    low_ns: float
    high_ns: float
    """The interval of the median with 95 % confidence."""
    gpu_ns: float | None
    """What the GPU alone needs; None on a CPU."""
    submit_ns: float | None
    """What the CPU needs to launch it; None on a CPU."""


@dataclass(slots=True)
class Workbench:
    """The device and how long to measure on it."""

    torch: Any
    device: str
    """`cuda` or `cpu`."""
    seconds: float
    """Of samples for each measurement."""
    report: Callable[[str], None]
    folder: Path
    """Where recordings go."""
    notes: list[str] = field(default_factory=list)
    """What could not be measured."""

    @property
    def has_gpu(self) -> bool:
        """Whether the experiments run on a GPU."""
        return self.device == "cuda"

    def sized(self, on_gpu: int, on_cpu: int) -> int:
        """A size: the real one on a GPU, a small one on a CPU."""
        return on_gpu if self.has_gpu else on_cpu

    def dtype(self, name: str) -> Any:
        """A data type of torch; on a CPU always float32, which is the only one that is fast everywhere."""
        return getattr(self.torch, name if self.has_gpu else "float32")

    def random(self, *shape: int, dtype: str = "float32", scale: float = 1.0) -> Any:
        """Random numbers: zeros draw less power and run faster."""
        return (self.torch.randn(*shape, device=self.device) * scale).to(self.dtype(dtype))

    def synchronise(self) -> None:
        """Wait until the device has nothing left to do."""
        if self.has_gpu:
            self.torch.cuda.synchronize()

    def time(self, function: Callable[..., object], *args: Any, **options: Any) -> Result:
        """Time one call by `bench`; `options` are its options, such as the work of a call."""
        settings = Settings(
            flush=options.pop("flush", True),
            graph=options.pop("graph", False),
            seconds=self.seconds,
            warm_up_seconds=WARM_UP_SECONDS,
        )
        result = bench(function, *args, settings=settings, **options)
        self.report(f"    {result.headline}")
        return result

    def loop(self, step: Step, name: str, *, with_gpu: bool = True) -> LoopTime:
        """Time a step in a loop by the host's clock, and on the GPU alone by events."""
        step_s = self._warmed(step)
        count = max(1, min(MAX_LOOP_STEPS, round(LOOP_SECONDS / step_s)))

        def many() -> None:
            for _ in range(count):
                step()
            self.synchronise()

        settings = Settings(flush=False, seconds=self.seconds, warm_up_seconds=WARM_UP_SECONDS)
        looped = bench(many, name=name, device="cpu", settings=settings)
        interval = looped.interval
        low, high = (interval.low_ns, interval.high_ns) if interval else (looped.median_ns, looped.median_ns)
        alone = self.time(step, name=name, flush=False) if self.has_gpu and with_gpu else None
        self.report(f"    {name}: {looped.median_ns / count / 1e3:,.1f} µs a step")
        return LoopTime(
            looped.median_ns / count,
            low / count,
            high / count,
            alone.median_ns if alone is not None and alone.clock == "events" else None,
            alone.host.submit_ns if alone is not None and alone.host is not None else None,
        )

    def _warmed(self, step: Step) -> float:
        """Run the step until the host and the device have reached their speed; returns the seconds of a step."""
        began, steps = time.perf_counter(), 0
        while steps < 2 or (time.perf_counter() - began < BARE_SECONDS and steps < MAX_BARE_STEPS):
            if steps == 1:
                began = time.perf_counter()  # the first step may compile and allocate
            step()
            steps += 1
            if steps % 10 == 1:
                self.synchronise()
        self.synchronise()
        return max((time.perf_counter() - began) / (steps - 1), 1e-9)

    def record(self, ladder: str, rung: str, step: Step) -> Path | None:
        """Record a few steps with torch.profiler, after bare ones that are timed; None if that fails, or on a CPU."""
        if not self.has_gpu:
            return None
        folder, step_s = self.folder / ladder / rung, self._warmed(step)
        bare = max(MIN_BARE_STEPS, min(MAX_BARE_STEPS, round(BARE_SECONDS / step_s)))
        folder.parent.mkdir(parents=True, exist_ok=True)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            recording = profile(rung, steps=RECORDED_STEPS, skip=bare, warmup=WARM_STEPS, output=folder)
            with recording:
                for _ in range(bare + WARM_STEPS + RECORDED_STEPS + 1):
                    step()
                    recording.step()
                self.synchronise()
        if recording.trace is None:
            self.notes.append(f"{ladder}, {rung}: not recorded: {' '.join(said.getvalue().split())}")
        return recording.trace

    def attempt(self, what: str, measure: Callable[[], Answer]) -> Answer | None:
        """Measure something that may not work on every machine; if it does not, note why."""
        try:
            return measure()
        except CannotAnswer as error:
            self.notes.append(f"{what}: {error.message}")
        except Exception as error:  # whatever torch, a compiler or a driver raises: the other rows are still good
            self.notes.append(f"{what}: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
        self.report(f"    {self.notes[-1]}")
        return None

    @contextlib.contextmanager
    def steady_threads(self) -> Iterator[None]:
        """On a CPU, run ops on one thread within the block. With several, an op ends when its last thread does, which
        on a busy machine may be milliseconds later."""
        before = self.torch.get_num_threads()
        self.torch.set_num_threads(before if self.has_gpu else 1)
        try:
            yield
        finally:
            self.torch.set_num_threads(before)

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Silence compilers, which list every kernel that they try."""
        logging.disable(logging.ERROR)
        try:
            with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
                yield
        finally:
            logging.disable(logging.NOTSET)

    @contextlib.contextmanager
    def precision(self, name: str) -> Iterator[None]:
        """Run fp32 matmuls in TF32 within the block if that is the precision asked for."""
        before = self.torch.get_float32_matmul_precision()
        self.torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
        try:
            yield
        finally:
            self.torch.set_float32_matmul_precision(before)
