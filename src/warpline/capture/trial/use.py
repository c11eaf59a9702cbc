"""What the first run saw of the program: which changes can apply at all follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class LoaderUse:
    """A DataLoader that the program made."""

    workers: int
    is_pinned: bool
    is_persistent: bool
    is_iterable: bool
    """Whether its dataset is an IterableDataset: more workers would each yield all of it."""
    batch_size: int | None
    place: str = ""
    """File and line of the program where it was made, the file as seen from the working folder."""


@dataclass
class OptimizerUse:
    """An optimizer that took a step."""

    name: str
    is_fused: bool
    can_fuse: bool
    """Whether its class has a fused form."""
    place: str = ""


@dataclass
class ModuleUse:
    """A module that the program calls itself."""

    name: str
    parameters: int
    convolutions: int
    repeated: int
    """How many layers of one class its longest list of layers has."""
    is_compiled: bool
    attention: str = ""
    """The attention that its config names, as Hugging Face's models do."""
    layers: str = ""
    """Where in the module that list is: `encoder.layers`."""
    place: str = ""
    """Where it was made."""
    calls: list[str] = field(default_factory=list)
    """Where it is called: the program's own frames, innermost first."""
    inside: str = ""
    """Where in it the program's own module is: `module` in DistributedDataParallel. What is said of compiling and of
    layers is said of that."""
    can_compile: bool = True
    """Whether its `compile()` compiles it."""
    can_compile_layers: bool = True


@dataclass
class ProgramUse:
    """What the program uses."""

    on_gpu: bool = False
    loaders: list[LoaderUse] = field(default_factory=list)
    optimizers: list[OptimizerUse] = field(default_factory=list)
    modules: list[ModuleUse] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    """Files that it opened for writing."""
    matmuls: dict[str, int] = field(default_factory=dict)
    """Matmuls and convolutions of the first forwards, by data type; empty if none was seen."""
    random_ops: int = 0
    """Ops of the first forwards that draw random numbers."""
    empty_cache_calls: int = 0
    gradients_kept: int = 0
    """Calls of zero_grad(set_to_none=False)."""
    generate_calls: int = 0
    values_read: int = 0
    """Floats that the program read from the GPU with .item() or float()."""
    synchronize_calls: int = 0
    passes: int = 1
    """Micro-batches for each update, as the program says to transformers' Trainer or to accelerate."""
    backward_calls: int = 0
    """Calls of backward()."""
    backward_frames: list[str] = field(default_factory=list)
    """Where backward() is called first: the program's own frames, innermost first."""
    backward_elsewhere: bool = False
    """Whether backward() is called from other lines too."""
    places: dict[str, str] = field(default_factory=dict)
    """Where empty_cache, zero_grad and generate are called first."""
    tf32: bool = False
    """Whether FP32 matmuls may run in TF32."""
    cudnn_benchmark: bool = False
    threads: int = 1
    world_size: int = 1
