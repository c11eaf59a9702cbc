"""Listeners in torch for steps, CUDA graphs, and the program's own profiler."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from warpline.capture import marks
from warpline.capture.loops import place_outside
from warpline.capture.module_calls import ModuleCalls
from warpline.capture.patches import Undo, after, before
from warpline.capture.plan import TORCH
from warpline.capture.recorders import ours
from warpline.capture.session import Session
from warpline.capture.steps import EXPLICIT, FORWARD, NVTX, OPTIMIZER, PROFILER, REPLAY, StepUnit


class Listeners:
    """Listens for a session until it needs no more steps."""

    def __init__(self, torch: Any, session: Session) -> None:
        self._torch, self._session = torch, session
        self._ranges: list[str] = []
        self._forwards = ModuleCalls(torch, self._forward)
        session.on_narrow = self._narrow
        self._undo: list[Undo] = [
            self._listen_to_optimizers(),
            after(torch.optim.Optimizer, "__init__", self._optimizer_made),
            self._listen_to_loaders(),
            marks.listen(self._step),
            after(torch.cuda.CUDAGraph, "replay", self._replay),
            before(torch.cuda.CUDAGraph, "capture_begin", self._capture),
            before(torch.cuda.nvtx, "range_push", self._push),
            before(torch.cuda.nvtx, "range_pop", self._pop),
            after(torch.profiler.profile, "step", self._profiler_step),
            before(torch.profiler.profile, "__init__", self._profiler_made),
            before(torch.autograd.profiler.profile, "__init__", self._profiler_made),
            before(torch.profiler.profile, "export_chrome_trace", self._profiler_exports),
        ]

    def remove(self) -> None:
        """Restore torch."""
        self._forwards.remove()
        for undo in self._undo:
            undo()
        self._undo.clear()

    def keep_only_profiler(self) -> None:
        """Stop all listeners except the one for the output of the program's own profiler."""
        undo = self._undo.pop() if self._undo else None
        self.remove()
        if undo is not None:
            self._undo.append(undo)

    def _listen_to_optimizers(self) -> Undo:
        # torch.optim hides its module of that name.
        module = importlib.import_module("torch.optim.optimizer")
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is None:
            return lambda: None  # torch before 2.0: forward calls mark steps
        return register(self._optimizer).remove

    def _listen_to_loaders(self) -> Undo:
        module = importlib.import_module("torch.utils.data.dataloader")
        return after(module._MultiProcessingDataLoaderIter, "__init__", self._loader_made)

    def _loader_made(self, iterator: Any, *_: Any, **__: Any) -> None:
        self._session.note_loader(iterator)

    def _narrow(self, unit: StepUnit | None) -> None:
        """Listen only to what ends a step, once that is known, so that nothing else slows the program."""
        if unit is None:
            self._forwards.search()
        else:
            self._forwards.listen_only_to(unit.who if unit.source == FORWARD else 0)

    def _optimizer_made(self, optimizer: Any, *_: Any, **__: Any) -> None:
        place = place_outside(os.path.dirname(self._torch.__file__))  # noqa: PTH120 - compared with frames' files
        if place is not None:
            self._session.note_optimizer(type(optimizer).__name__, place)

    def _optimizer(self, optimizer: Any, *_: Any) -> None:
        self._session.boundary(OPTIMIZER, id(optimizer))

    def _step(self) -> None:
        self._session.boundary(EXPLICIT)

    def _forward(self, who: int, holds_gradients: bool, only_acts: bool) -> None:
        self._session.finder.only_acts = only_acts
        self._session.boundary(FORWARD, who, holds_gradients)

    def _replay(self, graph: Any, *_: Any, **__: Any) -> None:
        self._session.boundary(REPLAY, id(graph))

    def _capture(self, *_: Any, **__: Any) -> None:
        self._session.graph_captured()

    def _push(self, text: str, *_: Any, **__: Any) -> None:
        if ours():
            return
        self._ranges.append(text)
        wanted = self._session.plan.step_range
        if text == wanted or (not wanted and len(self._ranges) == 1):
            self._session.boundary(NVTX, hash(text))

    def _pop(self, *_: Any, **__: Any) -> None:
        if not ours() and self._ranges:
            self._ranges.pop()

    def _profiler_step(self, *_: Any, **__: Any) -> None:
        if not ours():
            self._session.boundary(PROFILER)

    def _profiler_made(self, *_: Any, **__: Any) -> None:
        if ours() or self._session.plan.tool != TORCH:
            return
        caller = str(sys._getframe(2).f_globals.get("__name__", ""))
        if caller.startswith("torch._inductor") and not self._session.recording_since:
            return  # Inductor times kernels while it compiles, and ends before we start
        self._session.stand_down("the program uses torch.profiler itself, so warpline did not record it")

    def _profiler_exports(self, profiler: Any, path: Any, *_: Any, **__: Any) -> None:
        if not ours():
            self._session.own_trace(str(path))
