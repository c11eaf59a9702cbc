"""The agent that `warpline try` injects: it makes the changes of one variant, finds the steps, and reports."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import importlib
import json
import os
import random
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from warpline.capture.patches import after, before, replace
from warpline.capture.precision import matmuls_in_tf32
from warpline.capture.this_process import is_data_worker, resident_bytes
from warpline.capture.trial.changes import (
    CHANGES,
    FUSED_FORMS,
    LargerMicroBatch,
    ProgramChange,
    StaticCache,
    can_compile,
    is_compiled,
    own_module,
    repeated_layers,
)
from warpline.capture.trial.gate import READY, WindowGate, await_compile_workers, compile_counts, is_awaited, leave
from warpline.capture.trial.op_counts import count_ops
from warpline.capture.trial.outermost import Call, OutermostCalls
from warpline.capture.trial.own_store import give_own_stores
from warpline.capture.trial.plan import FORWARD, GENERATE, OPTIMIZER, TrialPlan
from warpline.capture.trial.results import FIRST_INPUT, FirstResults
from warpline.capture.trial.twin import known_weights, move_by_rounding, round_again
from warpline.capture.trial.use import LoaderUse, ModuleUse, OptimizerUse, ProgramUse
from warpline.capture.trial.writes import FileWrites

LOOKED, ENDED, LEADER = "looked.json", "ended.json", "leader"
ASKED, PERMITTED = "asks_to_write", "may_write"
ENOUGH_OPTIMIZER_STEPS = 60
"""The first run has seen enough after so many."""
LATE_OPTIMIZER = 3
"""For so many times as long it waits for an optimizer where one was made or backward() is called. Without a step of one
by then, the program updates its weights in a way of its own: its forwards are the steps."""
MIN_EVENTS = 4
MAX_RESULTS = 8
"""Results of each name that are kept, from the first steps."""
INSTALLED = ("site-packages", "dist-packages", "<frozen", str(Path(__file__).parents[2]))
"""Parts of the paths of files that are not the program's own."""
MAX_FRAMES = 8


Changed = TypeVar("Changed", bound=ProgramChange)


class TrialAgent:
    """One process of a variant."""

    def __init__(self, torch: Any, plan: TrialPlan) -> None:
        self.torch, self.plan, self.pid, self.folder = torch, plan, os.getpid(), Path(plan.folder)
        self.finished = False
        self.leads: bool | None = None
        self.gate: WindowGate | None = None
        self.use = ProgramUse(threads=torch.get_num_threads())
        self.results = FirstResults(torch, min(plan.skip, MAX_RESULTS))
        self.events: dict[str, list[float]] = {}
        self.names: dict[str, str] = {}
        self.places: dict[int, str] = {}
        self.optimizers: dict[int, int] = {}
        self.updates: Counter[int] = Counter()
        self.generating = self.makes_optimizers = False
        self.ready_after_s: float | None = None
        own_folders = plan.working_copy, str(self.folder.parent)
        self.writes = FileWrites(*own_folders, self._ask_to_write) if plan.asks else FileWrites(*own_folders)
        seed_all(torch)
        give_own_stores(torch, self.folder)
        named = [name.partition("=") for name in plan.changes]
        self.changes = [CHANGES[name](torch, value) for name, _, value in named]
        for change in self.changes:
            change.arm()
        if plan.eager_random:
            config: Any = importlib.import_module("torch._inductor.config")
            config.fallback_random = True
        self._listen()
        self.calls = OutermostCalls(torch, self._adopt, self._call)
        atexit.register(self._at_exit)
        os.register_at_fork(after_in_child=self._forked)
        self.watched = os.getpid()
        faulthandler.dump_traceback_later(plan.hang_after_s)

    def _forked(self) -> None:
        """What is forked before any step may be a rank; later it is a worker."""
        if self.leads is None:
            self.pid = os.getpid()

    def _listen(self) -> None:
        torch = self.torch
        optimizer = importlib.import_module("torch.optim.optimizer")
        optimizer.register_optimizer_step_post_hook(self._optimizer_stepped)
        before(torch.autograd, "backward", self._backward)
        before(torch, "save", self._saving)
        if self.plan.step is None:
            self._watch_use()

    def _saving(self, what: Any, path: Any, *_: Any, **__: Any) -> None:
        if isinstance(path, (str, os.PathLike)):
            self.writes.about_to_write(os.fspath(path))

    def _ask_to_write(self, path: str) -> None:
        """Wait until the command that started this process permits it."""
        part = self.folder / f"{ASKED}.part"
        part.write_bytes(os.fsencode(path))
        part.replace(self.folder / ASKED)
        while not (self.folder / PERMITTED).exists():
            if not is_awaited(self.folder, self.plan.starter):
                leave()
            time.sleep(0.05)

    def _backward(self, tensors: Any, *_: Any, **__: Any) -> None:
        # A window's loss is that of its last step, and what is done at each call is part of the time.
        if (self.gate is not None and self.gate.is_amid_window()) or os.getpid() != self.pid:
            return
        if self.plan.step is None:
            frames = program_frames(self.plan.working_copy)
            self.use.backward_frames = self.use.backward_frames or frames
            self.use.backward_elsewhere |= frames != self.use.backward_frames
        self.use.backward_calls += 1
        self.results.keep_loss(tensors)

    def _place(self, made: Any = None) -> str:
        return next(iter(program_frames(self.plan.working_copy, made)), "")

    # What the program uses, in the first run only.

    def _watch_use(self) -> None:
        torch, use = self.torch, self.use
        data = importlib.import_module("torch.utils.data")
        base = importlib.import_module("torch.optim.optimizer").Optimizer

        def loader_made(loader: Any, *_: Any, **__: Any) -> None:
            is_iterable = isinstance(loader.dataset, data.IterableDataset)
            persistent = bool(loader.persistent_workers)
            pinned = bool(loader.pin_memory)
            size = loader.batch_size
            use.loaders.append(LoaderUse(loader.num_workers, pinned, persistent, is_iterable, size, self._place()))

        def optimizer_made(optimizer: Any, *_: Any, **__: Any) -> None:
            self.makes_optimizers = True
            self.places[id(optimizer)] = self._place()

        def module_made(module: Any, *_: Any, **__: Any) -> None:
            self.places[id(module)] = self._place(torch.nn.Module)

        def zero_grad(owner: Any, set_to_none: bool = True) -> None:
            if not set_to_none:
                use.gradients_kept += 1
                use.places.setdefault("zero_grad", self._place())

        def empty_cache() -> None:
            use.empty_cache_calls += 1
            use.places.setdefault("empty_cache", self._place())

        def read(tensor: Any) -> None:
            use.values_read += bool(tensor.is_cuda and tensor.is_floating_point())

        def synchronize(*_: Any, **__: Any) -> None:
            use.synchronize_calls += 1

        after(data.DataLoader, "__init__", loader_made)
        after(base, "__init__", optimizer_made)
        after(torch.nn.Module, "__init__", module_made)
        for owner in (base, torch.nn.Module):
            before(owner, "zero_grad", zero_grad)
        before(torch.cuda, "empty_cache", empty_cache)
        before(torch.cuda, "synchronize", synchronize)
        for name in ("item", "__float__"):
            before(torch.Tensor, name, read)

    # Events that may end a step.

    def _optimizer_stepped(self, optimizer: Any, *_: Any) -> None:
        if self._is_elsewhere():
            return
        if id(optimizer) not in self.optimizers:
            self.optimizers[id(optimizer)] = len(self.optimizers)
            group, name = optimizer.param_groups[0], type(optimizer).__name__
            can_fuse = name in FUSED_FORMS and type(optimizer).__module__.startswith("torch.optim")
            place = self.places.get(id(optimizer), "") if self.plan.step is None else ""
            self.use.optimizers.append(OptimizerUse(name, bool(group.get("fused")), can_fuse, place))
        if self.plan.is_twin and self.updates[id(optimizer)] < MAX_RESULTS:
            self.updates[id(optimizer)] += 1
            round_again(self.torch, optimizer, self.updates[id(optimizer)])
        self._event(OPTIMIZER, self.optimizers[id(optimizer)], type(optimizer).__name__)

    def generate(self, original: Any) -> Any:
        """Wrap transformers' generate()."""

        def call(model: Any, *arguments: Any, **named: Any) -> Any:
            if self._is_elsewhere() or self.generating:
                return original(model, *arguments, **named)
            self.generating = True
            try:
                self.results.keep(FIRST_INPUT, (arguments, named))
                for change in self._of(StaticCache):
                    change.generate(named)
                output = original(model, *arguments, **named)
            finally:
                self.generating = False
            self.use.generate_calls += 1
            self.use.places.setdefault("generate", self._place())
            self.results.keep(f"{GENERATE} 0", output)
            self._event(GENERATE, 0, type(model).__name__)
            return output

        return call

    def trainer_arguments(self, given: Any, *_: Any, **__: Any) -> None:
        """A Trainer's arguments are about to be checked."""
        self.use.passes = max(self.use.passes, int(given.gradient_accumulation_steps))
        for change in self._of(LargerMicroBatch):
            change.arguments(given)

    def accelerator_made(self, made: Any, *_: Any, **__: Any) -> None:
        """The program, or its Trainer, has made an Accelerator."""
        self.use.passes = max(self.use.passes, int(made.gradient_accumulation_steps))
        for change in self._of(LargerMicroBatch):
            change.accelerator(made)

    def loader_prepared(self, accelerator: Any, loader: Any, *_: Any, **__: Any) -> None:
        """An Accelerator is about to prepare a loader."""
        for change in self._of(LargerMicroBatch):
            change.loader(loader)

    def _of(self, kind: type[Changed]) -> list[Changed]:
        return [change for change in self.changes if isinstance(change, kind)]

    def _adopt(self, module: Any, who: int) -> None:
        if self._is_elsewhere():
            return
        convolutions = sum(isinstance(inner, self.torch.nn.Conv2d) for inner in module.modules())
        size = sum(parameter.numel() for parameter in known_weights(self.torch, module))
        inside, own = own_module(self.torch, module)
        layers, repeated = repeated_layers(self.torch, own)
        attention = getattr(getattr(own, "config", None), "_attn_implementation", None) or ""
        self.use.modules.append(
            ModuleUse(
                type(module).__name__,
                size,
                convolutions,
                len(repeated),
                is_compiled(own),
                str(attention),
                layers,
                self.places.get(id(module), ""),
                program_frames(self.plan.working_copy),
                inside,
                can_compile(self.torch, own),
                all(can_compile(self.torch, layer) for layer in repeated),
            )
        )
        if self.plan.is_twin:
            move_by_rounding(self.torch, module)
        for change in self.changes:
            change.adopt(module)

    def _call(self, module: Any, who: int, call: Call, arguments: Any, named: Any) -> Any:
        if self._is_elsewhere():
            return call(module, arguments, named)
        first = len(self.events.get(f"{FORWARD} {who}", ())) == 0 and self.plan.step is None
        self.results.keep(FIRST_INPUT, (arguments, named))
        for change in self.changes:
            call = bound(change, call)
        # Counting changes how ops are called, which a few do not stand (ctc_loss); without weights there is no matmul.
        counts = first and self.plan.counts and has_weights(module) and not is_compiled(module)
        with count_ops(self.torch, self.use) if counts else contextlib.nullcontext():
            output = call(module, arguments, named)
        self.results.keep(f"{FORWARD} {who}", output)
        self._event(FORWARD, who, type(module).__name__)
        return output

    def _is_elsewhere(self) -> bool:
        """Whether this is a forked process, a worker, or one that has nothing to do any more."""
        return self.finished or os.getpid() != self.pid or is_data_worker()

    def _event(self, kind: str, who: int, name: str) -> None:
        if self.leads is None:
            self._take_role()
        if self.plan.step is None:
            self._look(kind, who, name)
        elif self.plan.step.kind == kind and self.plan.step.who == who and self.gate is not None:
            if self.gate.steps >= self.plan.skip - 2:
                self._stop_searching()
            self.gate.step()

    def _stop_searching(self) -> None:
        """Calls of modules are heard in the windows only if they are the steps, or if a change acts at them."""
        counted = self.plan.step is not None and self.plan.step.kind == FORWARD
        self.calls.stop_searching(counted or any(change.acts_at_calls for change in self.changes))

    def _take_role(self) -> None:
        """The first process of rank 0 leads; other ranks run the same windows; all else is left alone."""
        rank, self.use.world_size = rank_and_size(self.torch)
        self.leads = rank == 0 and claim(self.folder / LEADER)
        if rank == 0 and not self.leads:
            self.finished = True
            return
        plan = self.plan
        steps = plan.skip, plan.settle, plan.steps_per_window
        self.gate = WindowGate(self.torch, plan.folder, plan.starter, steps, self._state, self.leads)
        self.gate.on_ready = self._ready

    def _look(self, kind: str, who: int, name: str) -> None:
        if not self.leads:
            return
        now = time.perf_counter()
        times = self.events.setdefault(f"{kind} {who}", [])
        self.names[f"{kind} {who}"] = name
        times.append(now)
        first = min(all_times[0] for all_times in self.events.values())
        trains = self.makes_optimizers or bool(self.use.backward_calls)
        long = now - first > self.plan.look_s * (LATE_OPTIMIZER if trains and kind == FORWARD else 1)
        if kind == OPTIMIZER:
            enough = len(times) >= MIN_EVENTS and (long or len(times) >= ENOUGH_OPTIMIZER_STEPS)
        elif kind == GENERATE:
            enough = long and len(times) > 1 and not self.use.backward_calls
        else:
            enough = long and len(times) >= MIN_EVENTS and not self.optimizers and not self.generating
        if enough:
            self._write(LOOKED, self._seen(ended=False))
            self._rest()

    def _rest(self) -> NoReturn:
        """Wait for the end: the command that started this process ends it."""
        self.finished = True
        sys.stdout.flush()
        while is_awaited(self.folder, self.plan.starter):
            time.sleep(0.05)
        leave()

    def _seen(self, ended: bool) -> dict[str, Any]:
        use = self.use
        use.on_gpu = bool(self.torch.cuda.is_initialized())
        use.tf32 = matmuls_in_tf32(self.torch)
        use.cudnn_benchmark = bool(self.torch.backends.cudnn.benchmark)
        use.writes = self.writes.files
        events = [
            {"kind": key.split()[0], "who": int(key.split()[1]), "name": self.names[key], "times_s": times}
            for key, times in self.events.items()
        ]
        return {"ended": ended, "use": asdict(use), "events": events, **self._report()}

    def _ready(self) -> None:
        """The steps before the first window are over."""
        if self.watched == self.pid:  # the thread that watches is not forked
            faulthandler.cancel_dump_traceback_later()
        self.ready_after_s = time.time() - self.plan.started
        self._stop_searching()
        await_compile_workers()
        for change in self.changes:
            change.ready()
        if self.leads:
            self._write(READY, self._report())

    def _report(self) -> dict[str, Any]:
        return {
            "results": self.results.to_dict(),
            "ready_after_s": self.ready_after_s,
            "steps": self.gate.steps if self.gate is not None else 0,
            **self._state(),
        }

    def _state(self) -> dict[str, Any]:
        """What may change from window to window."""
        cuda = self.torch.cuda
        on_gpu = cuda.is_initialized()
        proof: dict[str, int] = {}
        for change in self.changes:
            proof.update(change.proof())
        return {
            "gpu_bytes": cuda.max_memory_allocated() if on_gpu else 0,
            "gpu_reserved_bytes": cuda.max_memory_reserved() if on_gpu else 0,
            "gpu_free_bytes": cuda.mem_get_info()[0] if on_gpu else 0,
            "host_bytes": resident_bytes(),
            "proof": proof,
            "compile": compile_counts(),
            "loss": self.results.loss_now(),
        }

    def _at_exit(self) -> None:
        """The program has ended by itself."""
        if self.finished or os.getpid() != self.pid or not self.leads:
            return
        self.finished = True
        looks = self.plan.step is None
        self._write(LOOKED if looks else ENDED, self._seen(ended=True) if looks else self._report())

    def _write(self, name: str, report: dict[str, Any]) -> None:
        part = self.folder / f"{name}.part"
        part.write_text(json.dumps(report, ensure_ascii=False), encoding="utf-8", errors="replace")
        part.replace(self.folder / name)


def bound(change: Any, call: Call) -> Call:
    """The call as the change makes it."""
    return lambda module, arguments, named: change.around(call, module, arguments, named)


def has_weights(module: Any) -> bool:
    """Whether a module has parameters."""
    return next(module.parameters(), None) is not None


def seed_all(torch: Any) -> None:
    """The same random numbers in all processes of a session, unless the program seeds itself."""
    random.seed(0)
    torch.manual_seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return
    numpy.random.seed(0)

    def make(original: Any) -> Any:
        def default_rng(seed: Any = None) -> Any:
            return original(0 if seed is None else seed)

        return default_rng

    replace(numpy.random, "default_rng", make)


def rank_and_size(torch: Any) -> tuple[int, int]:
    """This process's rank and the number of ranks; 0 of 1 outside a job."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def claim(path: Path) -> bool:
    """Whether this process is the first to make the file."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except OSError:
        return False
    return True


def program_frames(working_copy: str, made: Any = None) -> list[str]:
    """File and line of each frame of the program's own code, innermost first. `made`: a class; constructors of its
    objects are left out, because what made the outermost one is sought."""
    found: list[str] = []
    frame: Any = sys._getframe(1)
    while frame is not None and len(found) < MAX_FRAMES:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        constructs = made is not None and name == "__init__" and isinstance(frame.f_locals.get("self"), made)
        if not constructs and not any(part in file for part in (*INSTALLED, sys.base_prefix)):
            found.append(f"{file.removeprefix(working_copy + os.sep)}:{frame.f_lineno}")
        frame = frame.f_back
    return found


_agent: TrialAgent | None = None


def arm(torch: Any) -> None:
    """Called once torch has been imported."""
    global _agent  # noqa: PLW0603 - one a process
    plan = TrialPlan.from_environment()
    if plan is not None and _agent is None:
        _agent = TrialAgent(torch, plan)


def arm_generate(utils: Any) -> None:
    """Called once transformers' module of generate() has been imported."""
    if _agent is not None:
        replace(utils.GenerationMixin, "generate", _agent.generate)


def arm_trainer(arguments: Any) -> None:
    """Called once transformers' module of TrainingArguments has been imported."""
    if _agent is not None:
        before(arguments.TrainingArguments, "__post_init__", _agent.trainer_arguments)


def arm_accelerator(accelerator: Any) -> None:
    """Called once accelerate's module of Accelerator has been imported."""
    if _agent is not None:
        after(accelerator.Accelerator, "__init__", _agent.accelerator_made)
        before(accelerator.Accelerator, "prepare_data_loader", _agent.loader_prepared)
