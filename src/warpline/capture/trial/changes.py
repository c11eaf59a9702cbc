"""The changes that can be made to a program from outside, by name.

Each acts at one of four places: when torch has been imported (`arm`), at the first call of a module that the program
calls itself (`adopt`), around each such call (`around`), and at the first window (`ready`). `done` counts what it
changed: a change that counted nothing did not apply.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import sys
from collections import Counter
from typing import Any, ClassVar

from warpline.capture.patches import after, before, replace
from warpline.capture.precision import matmuls_in_tf32
from warpline.capture.this_process import usable_cores
from warpline.capture.trial.op_counts import count_ops
from warpline.capture.trial.outermost import Call
from warpline.capture.trial.results import leaves, map_tree
from warpline.capture.trial.use import ProgramUse

MAX_WORKERS = 8
PREFETCH_FACTOR = 4
MIN_REPEATED_LAYERS = 3
"""From so many layers of one class on, the layers are compiled one by one instead of the whole model."""


class ProgramChange:
    """One change of a program; by itself it changes nothing."""

    def __init__(self, torch: Any, value: str = "") -> None:
        self.torch, self.value = torch, value
        self.done: Counter[str] = Counter()

    def arm(self) -> None:
        """Torch has been imported."""

    def adopt(self, module: Any) -> None:
        """The program is about to call this module for the first time."""

    def around(self, call: Call, module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Make a call of such a module."""
        return call(module, arguments, named)

    @property
    def acts_at_calls(self) -> bool:
        """Whether it changes calls of modules."""
        return type(self).around is not ProgramChange.around

    def ready(self) -> None:
        """The steps before the first window are over."""

    def proof(self) -> dict[str, int]:
        """What was changed, by name, with how often."""
        return {what: count for what, count in self.done.items() if count}


class Nothing(ProgramChange):
    """No change: what the measurement says of it is the error of the measurement."""

    def arm(self) -> None:
        """Say that it applied."""
        self.done["nothing changed, on purpose"] += 1


class Tf32(ProgramChange):
    """FP32 matmuls and convolutions in TF32."""

    def arm(self) -> None:
        """Set both switches."""
        self.torch.set_float32_matmul_precision("high")
        self.torch.backends.cudnn.allow_tf32 = True

    def adopt(self, module: Any) -> None:
        """Set them again: the program's own lines, which ran since torch was imported, may have set them back."""
        self.arm()

    def ready(self) -> None:
        """Likewise for a program that calls no module."""
        self.arm()

    def proof(self) -> dict[str, int]:
        """The program may set it back in its loop."""
        return {"TF32 allowed for FP32 matmuls": 1} if matmuls_in_tf32(self.torch) else {}


class CudnnBenchmark(ProgramChange):
    """cuDNN measures its algorithms and keeps the fastest."""

    def arm(self) -> None:
        """Switch it on."""
        self.torch.backends.cudnn.benchmark = True

    def proof(self) -> dict[str, int]:
        """The program may have set it back."""
        return {"cudnn.benchmark on": 1} if self.torch.backends.cudnn.benchmark else {}


class Bf16(ProgramChange):
    """Autocast to bfloat16: in training from the forward to backward(), so that the loss is inside."""

    def arm(self) -> None:
        """End autocast where backward starts; it is entered anew in each step, or its copies of weights go stale."""
        self._entered = contextlib.ExitStack()
        self._use = ProgramUse()

        def make(original: Any) -> Any:
            def backward(*arguments: Any, **named: Any) -> Any:
                self._entered.close()
                return original(*arguments, **named)

            return backward

        replace(self.torch.autograd, "backward", make)

    def around(self, call: Call, module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """In inference for this call only, and floats come back as float32, which .numpy() needs."""
        torch = self.torch
        parameter = next(module.parameters(), None)
        on_gpu = torch.cuda.is_initialized()
        device = parameter.device.type if parameter is not None else "cuda" if on_gpu else "cpu"
        self._entered.close()
        is_on = self._is_on(device)
        self._entered.enter_context(torch.autocast(device, torch.bfloat16))
        compiled = any(map(is_compiled, module.modules())) if not self._use.matmuls else False
        self.done["calls of compiled modules under autocast"] += compiled and not is_on
        counts = parameter is not None and not self._use.matmuls and not compiled
        with count_ops(torch, self._use) if counts else contextlib.nullcontext():
            output = call(module, arguments, named)
        if torch.is_grad_enabled() and parameter is not None and any(one.requires_grad for one in module.parameters()):
            return output
        self._entered.close()
        if parameter is not None and parameter.dtype == torch.float32:
            output = map_tree(output, self._as_float32)
        return output

    def proof(self) -> dict[str, int]:
        """Matmuls of the first calls that had any."""
        matmuls = self._use.matmuls.get("bfloat16", 0)
        return {"matmuls in bfloat16 in the first forward": matmuls} if matmuls else super().proof()

    def _is_on(self, device: str) -> bool:
        """Whether the program itself has autocast to bfloat16 here."""
        torch = self.torch
        known = hasattr(torch, "get_autocast_dtype") and torch.is_autocast_enabled(device)
        return bool(known and torch.get_autocast_dtype(device) == torch.bfloat16)

    def _as_float32(self, leaf: Any) -> Any:
        return leaf.float() if isinstance(leaf, self.torch.Tensor) and leaf.dtype == self.torch.bfloat16 else leaf


class FusedOptimizer(ProgramChange):
    """Optimizers are made with fused=True."""

    def arm(self) -> None:
        """Replace the constructors of the optimizers that have a fused form."""
        for name in FUSED_FORMS:
            replace(getattr(self.torch.optim, name), "__init__", self._make)

    def _make(self, original: Any) -> Any:
        def init(optimizer: Any, params: Any, *arguments: Any, **named: Any) -> None:
            params = list(params)
            if any(named.get(key) for key in ("fused", "foreach", "capturable", "differentiable")):
                original(optimizer, params, *arguments, **named)
                return
            # A failed attempt leaves its marks in the groups: it gets copies.
            params = [
                {**group, "params": list(group["params"])} if isinstance(group, dict) and "params" in group else group
                for group in params
            ]
            with contextlib.suppress(RuntimeError, TypeError, ValueError):
                copies = [dict(group) if isinstance(group, dict) else group for group in params]
                original(optimizer, copies, *arguments, **{**named, "fused": True})
                self.done["optimizers made fused"] += 1
                return
            original(optimizer, params, *arguments, **named)

        return init


FUSED_FORMS = ("AdamW", "Adam", "SGD", "Adagrad")


class SetToNone(ProgramChange):
    """zero_grad(set_to_none=False) frees the gradients instead of writing zeros."""

    def arm(self) -> None:
        """Replace zero_grad of optimizers and modules."""
        base = importlib.import_module("torch.optim.optimizer").Optimizer
        for owner in (base, self.torch.nn.Module):
            replace(owner, "zero_grad", self._make)

    def _make(self, original: Any) -> Any:
        def zero_grad(owner: Any, set_to_none: bool = True) -> Any:
            self.done["zero_grad calls changed"] += not set_to_none
            return original(owner, set_to_none=True)

        return zero_grad


class NoEmptyCache(ProgramChange):
    """torch.cuda.empty_cache() does nothing."""

    def arm(self) -> None:
        """Replace it."""

        def make(original: Any) -> Any:
            def empty_cache() -> None:
                self.done["empty_cache calls left out"] += 1

            return empty_cache

        replace(self.torch.cuda, "empty_cache", make)


class ChannelsLast(ProgramChange):
    """Models with convolutions, and the images that go into them, in channels_last."""

    def arm(self) -> None:
        """Convert a model before DDP wraps it: its first gradients come in the layout that the weights have then."""
        parallel = importlib.import_module("torch.nn.parallel")
        before(
            parallel.DistributedDataParallel, "__init__", lambda wrapper, module, *_, **__: self._convert_model(module)
        )

    def adopt(self, module: Any) -> None:
        """Convert the weights once."""
        convolutions = sum(isinstance(inner, self.torch.nn.Conv2d) for inner in module.modules())
        if convolutions:
            self._convert_model(module)
            self.done["convolutions in channels_last"] += convolutions

    def around(self, call: Call, module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Convert the inputs."""
        return call(module, map_tree(arguments, self._convert), map_tree(named, self._convert))

    def _convert_model(self, module: Any) -> None:
        module.to(memory_format=self.torch.channels_last)

    def _convert(self, leaf: Any) -> Any:
        is_image = isinstance(leaf, self.torch.Tensor) and leaf.dim() == 4 and leaf.is_floating_point()
        return leaf.contiguous(memory_format=self.torch.channels_last) if is_image else leaf


class Loader(ProgramChange):
    """A change of the arguments of each DataLoader; made twice, it must not add up."""

    def arm(self) -> None:
        """Replace the constructor."""
        data = importlib.import_module("torch.utils.data")
        self._iterable = data.IterableDataset
        signature = inspect.signature(data.DataLoader.__init__)

        def make(original: Any) -> Any:
            def init(loader: Any, *arguments: Any, **named: Any) -> None:
                given = signature.bind(loader, *arguments, **named).arguments
                more = given.pop("kwargs", {})
                self.change(given, isinstance(given["dataset"], self._iterable))
                original(given.pop("self"), **given, **more)

            return init

        replace(data.DataLoader, "__init__", make)

    def change(self, given: dict[str, Any], is_iterable: bool) -> None:
        """Change the arguments."""


class Prefetch(Loader):
    """More worker processes, kept alive between epochs, each with batches ahead."""

    def change(self, given: dict[str, Any], is_iterable: bool) -> None:
        """Not for a dataset that each worker would yield as a whole."""
        workers = given.get("num_workers") or 0
        if given.get("persistent_workers") or (is_iterable and not workers):
            return
        wanted = int(self.value or max(2, min(MAX_WORKERS, usable_cores() // 2)))
        given.update(
            num_workers=workers if is_iterable else max(wanted, workers),
            persistent_workers=True,
            prefetch_factor=max(given.get("prefetch_factor") or 0, PREFETCH_FACTOR),
        )
        self.done[f"loaders with {given['num_workers']} workers (before: {workers})"] += 1


class PinMemory(Loader):
    """Batches in pinned memory, and copies to the GPU that do not block."""

    def arm(self) -> None:
        """Replace the constructor of loaders and the copies of tensors."""
        super().arm()
        for name in ("to", "cuda"):
            replace(self.torch.Tensor, name, self._moving)

    def change(self, given: dict[str, Any], is_iterable: bool) -> None:
        """Pin."""
        self.done["loaders pinned"] += not given.get("pin_memory")
        given["pin_memory"] = True

    def _moving(self, original: Any) -> Any:
        def move(tensor: Any, *arguments: Any, **named: Any) -> Any:
            target = named.get("device", arguments[0] if arguments else None)
            to_gpu = original.__name__ == "cuda" or type(target) is int
            to_gpu = to_gpu or (isinstance(target, (str, self.torch.device)) and str(target).startswith("cuda"))
            chosen = "non_blocking" in named or any(type(one) is bool for one in arguments)
            if to_gpu and not chosen and tensor.device.type == "cpu" and tensor.is_pinned():
                named["non_blocking"] = True
                self.done["copies to the GPU made non_blocking"] += 1
            return original(tensor, *arguments, **named)

        return move


class LargerMicroBatch(ProgramChange):
    """Fewer, larger micro-batches for each update, where transformers' Trainer or accelerate adds up the gradients."""

    def __init__(self, torch: Any, value: str = "") -> None:
        super().__init__(torch, value)
        self._loader_times = 1

    def arguments(self, given: Any) -> None:
        """Change the arguments of a Trainer, which makes its loaders from them."""
        times = self._times(given.gradient_accumulation_steps)
        given.gradient_accumulation_steps //= times
        given.per_device_train_batch_size *= times

    def accelerator(self, made: Any) -> None:
        """Change an Accelerator; a Trainer makes its own from arguments that are changed already."""
        if not self.done:
            self._loader_times = self._times(made.gradient_accumulation_steps)
            made.gradient_accumulation_steps //= self._loader_times

    def loader(self, loader: Any) -> None:
        """Change a loader that an Accelerator prepares; a Trainer's has its larger batches already."""
        sampler: Any = getattr(loader, "batch_sampler", None)
        if isinstance(getattr(sampler, "batch_size", None), int):
            sampler.batch_size *= self._loader_times

    def _times(self, passes: int) -> int:
        """How many of so many passes become one: all of them, or as many as the value says; 1 changes nothing."""
        times = int(self.value or passes)
        if times < 2 or passes % times:
            return 1
        self.done[f"{times} micro-batches made one"] += 1
        return times


class RemoveSync(ProgramChange):
    """Each float that the program reads from the GPU is the one that the same line read before: nothing waits.

    Integers and booleans are left alone: programs branch on them. If the results stay the same, the value was only
    printed, and the time is an honest bound; if they do not, it steers the program.
    """

    def arm(self) -> None:
        """Replace .item(), float() and torch.cuda.synchronize()."""
        self._coming: dict[tuple[str, int], tuple[Any, Any]] = {}
        for name in ("item", "__float__"):
            replace(self.torch.Tensor, name, self._reading)

        def make(original: Any) -> Any:
            def synchronize(*arguments: Any, **named: Any) -> None:
                if "warpline" in sys._getframe(1).f_globals.get("__name__", ""):
                    original(*arguments, **named)
                else:
                    self.done["synchronize calls left out"] += 1

            return synchronize

        replace(self.torch.cuda, "synchronize", make)

    def _reading(self, original: Any) -> Any:
        torch, coming = self.torch, self._coming

        def read(tensor: Any) -> Any:
            if torch.compiler.is_compiling() or not tensor.is_cuda or not tensor.is_floating_point():
                return original(tensor)
            frame = sys._getframe(1)
            if frame.f_globals.get("__name__", "").startswith("warpline."):
                return original(tensor)
            site = frame.f_code.co_filename, frame.f_lineno
            copy = torch.empty((), dtype=tensor.dtype, pin_memory=True)
            copy.copy_(tensor.detach().reshape(()), non_blocking=True)
            before, arrived = coming.get(site, (None, None))
            coming[site] = copy, torch.cuda.current_stream().record_event()
            if before is None:
                return original(tensor)
            arrived.synchronize()
            self.done["values replaced by the one read before"] += 1
            return original(before)

        return read


class Sdpa(ProgramChange):
    """Models whose config chooses eager attention use scaled_dot_product_attention."""

    def adopt(self, module: Any) -> None:
        """Change the config, as Hugging Face's models allow."""
        config = getattr(module, "config", None)
        if getattr(config, "_attn_implementation", None) == "eager" and hasattr(module, "set_attn_implementation"):
            module.set_attn_implementation("sdpa")
            self.done["models with SDPA instead of eager attention"] += 1


class StaticCache(ProgramChange):
    """generate() with a static KV cache, whose decoding step transformers compiles."""

    def __init__(self, torch: Any, value: str = "") -> None:
        super().__init__(torch, value)
        importlib.import_module("torch._dynamo")  # it remembers Module.__call__, which the search replaces later

    def generate(self, named: dict[str, Any]) -> None:
        """Change the arguments of a call of generate()."""
        if named.get("cache_implementation") is None and named.get("past_key_values") is None:
            named["cache_implementation"] = "static"
            self.done["generate calls with a static cache"] += 1


class Compile(ProgramChange):
    """torch.compile of each module that the program calls itself."""

    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, torch: Any, value: str = "") -> None:
        super().__init__(torch, value)
        importlib.import_module("torch._dynamo")  # it remembers Module.__call__, which the search replaces later

    def adopt(self, module: Any) -> None:
        """Compile it, unless the program did so itself."""
        module = own_module(self.torch, module)[1]
        if any(True for _ in module.parameters()) and not is_compiled(module):
            self.compile(module)

    def compile(self, module: Any) -> None:
        """Compile this module in place."""
        inside = module._call_impl
        if self.torch._dynamo.trace_rules.check(module.forward):
            # Module.compile() does nothing, silently, to a module of torch.nn itself, such as a bare Sequential.
            inside = importlib.import_module("torch._dynamo.external_utils").wrap_inline(inside)
        module._compiled_call_impl = self.torch.compile(inside, **self.options)
        self.done["modules compiled"] += 1


class CompileWithGraphs(Compile):
    """torch.compile(mode="reduce-overhead"): compiled, and replayed as CUDA graphs."""

    options: ClassVar[dict[str, Any]] = {"mode": "reduce-overhead"}

    def arm(self) -> None:
        """Hear of optimizers and their updates."""
        super().arm()
        self._trains = self._awaits_update = False
        optimizer = importlib.import_module("torch.optim.optimizer")
        after(optimizer.Optimizer, "__init__", self._optimizer_made)
        optimizer.register_optimizer_step_post_hook(self._updated)

    def _optimizer_made(self, *_: Any, **__: Any) -> None:
        self._trains = True

    def _updated(self, optimizer: Any, *_: Any) -> None:
        """Free the gradients, as zero_grad() right after step() does: the next graph writes where they lie."""
        self._awaits_update = False
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def around(self, call: Call, module: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Say where an iteration starts, and copy what the module returns: the next replay writes where that lies.

        In training, what needs gradients belongs to one iteration with all calls up to the update: other models,
        micro-batches.
        """
        if not self._awaits_update:
            self.torch.compiler.cudagraph_mark_step_begin()
        output = map_tree(call(module, arguments, named), self._copied)
        self._awaits_update |= self._trains and any(getattr(leaf, "requires_grad", False) for leaf in leaves(output))
        return output

    def _copied(self, leaf: Any) -> Any:
        return leaf.clone() if isinstance(leaf, self.torch.Tensor) and leaf.is_cuda else leaf


class GraphsOnly(CompileWithGraphs):
    """The program's own kernels, replayed as CUDA graphs: one for each shape, because this backend fails at sizes that
    it is told may change."""

    options: ClassVar[dict[str, Any]] = {"backend": "cudagraphs", "dynamic": False}


class CompileLayers(Compile):
    """torch.compile of each layer of the model's longest list of layers: one compilation serves all of them."""

    def compile(self, module: Any) -> None:
        """Compile the layers in place."""
        for layer in repeated_layers(self.torch, module)[1]:
            super().compile(layer)


class Allocator(ProgramChange):
    """expandable_segments, which the environment sets."""

    def proof(self) -> dict[str, int]:
        """Segments that can grow."""
        if not self.torch.cuda.is_initialized():
            return {}
        growing = sum(bool(segment.get("is_expandable")) for segment in self.torch.cuda.memory_snapshot())
        return {"expandable segments": growing} if growing else {}


class ThreadCount(ProgramChange):
    """Another number of threads for one op on the CPU: half of them, if none is given."""

    def arm(self) -> None:
        """Set it."""
        before = self.torch.get_num_threads()
        self.torch.set_num_threads(int(self.value or max(1, before // 2)))
        after = self.torch.get_num_threads()
        if after != before:
            self.done[f"threads of an op: {after} (before: {before})"] += 1


class NoGarbageCollection(ProgramChange):
    """Python's garbage collector stands still in the loop."""

    def ready(self) -> None:
        """Collect once, then stop: this change is what is measured."""
        self.done["garbage collector stopped"] += gc.isenabled()
        gc.collect()
        gc.freeze()
        gc.disable()


CHANGES: dict[str, type[ProgramChange]] = {
    "nothing": Nothing,
    "tf32": Tf32,
    "bf16": Bf16,
    "fused_optimizer": FusedOptimizer,
    "set_to_none": SetToNone,
    "no_empty_cache": NoEmptyCache,
    "channels_last": ChannelsLast,
    "cudnn_benchmark": CudnnBenchmark,
    "prefetch": Prefetch,
    "pin_memory": PinMemory,
    "larger_micro_batch": LargerMicroBatch,
    "remove_sync": RemoveSync,
    "sdpa": Sdpa,
    "static_cache": StaticCache,
    "torch_compile": Compile,
    "torch_compile_layers": CompileLayers,
    "torch_compile_graphs": CompileWithGraphs,
    "cuda_graph": GraphsOnly,
    "allocator": Allocator,
    "threads": ThreadCount,
    "no_gc": NoGarbageCollection,
}


def is_compiled(module: Any) -> bool:
    """Whether the program compiled it itself."""
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def can_compile(torch: Any, module: Any) -> bool:
    """Whether `module.compile()` compiles it: torch leaves its own code alone, such as the forward of a Sequential."""
    of_torch = (getattr(module.forward, "__module__", None) or "").startswith("torch.")
    return not of_torch and type(module).compile is torch.nn.Module.compile


def own_module(torch: Any, module: Any) -> tuple[str, Any]:
    """The program's own module in one that only distributes its work, and its name there."""
    distributes = isinstance(module, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel))
    return ("module", module.module) if distributes else ("", module)


def repeated_layers(torch: Any, module: Any) -> tuple[str, list[Any]]:
    """The longest list in a model that holds several layers of one class, with its name; empty if there is none."""
    lists = [
        (name, list(inner))
        for name, inner in module.named_modules()
        if isinstance(inner, (torch.nn.ModuleList, torch.nn.Sequential))
        and len(inner) >= MIN_REPEATED_LAYERS
        and len({type(layer) for layer in inner}) == 1
    ]
    return max(lists, key=lambda one: len(one[1]), default=("", []))
