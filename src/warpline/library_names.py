"""Python frames and ranges by name: those of libraries, of torch's profiler and of Python itself, not of the user.

torch shortens the path of a frame to begin with the package: `torch/nn/modules/linear.py(114): forward`. The other
names are those that torch gives to the ranges around parts of a program.
"""

from __future__ import annotations

TORCH = "torch|functorch|triton"
LIBRARIES = (
    f"{TORCH}|torchgen|torchvision|torchaudio|torchao|transformers|accelerate|lightning|pytorch_lightning|deepspeed|numpy|"
    "flash_attn|vllm|apex|scipy|PIL|pandas|sklearn|skimage|cv2|datasets|tokenizers|timm|einops|diffusers|peft|safetensors|"
    "huggingface_hub|tqdm|jax|jaxlib|flax|optax|tensorflow|keras|cupy|numba|sympy|networkx|xformers|bitsandbytes|sglang|"
    "flashinfer|tensorrt_llm|transformer_engine|torch_xla|torch_npu|trl|ray|aiter"
)
"""Public packages that a user calls and does not edit."""
STANDARD_LIBRARY = (
    "_collections_abc|_pydecimal|_strptime|_weakrefset|abc|argparse|ast|asyncio|base64|bisect|codecs|collections|concurrent|contextlib|copy|copyreg|csv|ctypes|"
    "dataclasses|datetime|decimal|difflib|email|encodings|enum|fnmatch|fractions|functools|genericpath|glob|gzip|hashlib|heapq|"
    "http|importlib|inspect|ipaddress|json|linecache|locale|logging|lzma|multiprocessing|ntpath|numbers|os|pathlib|pickle|"
    "posixpath|pprint|queue|random|re|reprlib|runpy|selectors|shutil|socket|sqlite3|sre_compile|sre_parse|ssl|stat|statistics|"
    "string|struct|subprocess|tarfile|tempfile|textwrap|threading|tokenize|traceback|types|typing|unicodedata|unittest|urllib|"
    "uuid|warnings|weakref|xml|zipfile|zoneinfo"
)
"""Modules of Python that call a user's functions, are called by them or lie between them. Not all of them: a user's own
file may well be called test.py, trace.py, profile.py or calendar.py."""

TORCH_FRAME = rf"^<|^({TORCH}|{STANDARD_LIBRARY})[/.]"
"""Frames of torch, of Python itself and of what is built in. A call of another library may be a whole training step
(`transformers/trainer.py`), one of these never is."""
GENERATED_FILE = (
    r"(^|/)torchinductor_|/(torch_compile_cache|inductor_cache|torch_compile_debug)/|/\.triton/|(^|/)c[a-z2-7]{51}\.py"
)
"""Files that a compiler writes: nobody edits their lines. Inductor names a module by a hash of its text."""
LIBRARY_FRAME = (
    rf"^<|^nn\.Module|^({LIBRARIES}|{STANDARD_LIBRARY})[/.]|site-packages/|dist-packages/|lib/python\d|{GENERATED_FILE}"
)
"""Frames of all libraries, and of generated files: the others are the user's lines."""
MODULE_FRAME = "nn.Module: "
"""How torch.profiler begins the name of a frame that is a call of an nn.Module."""
PROFILER_FRAME = r"torch/(autograd/)?profiler"
"""Frames of torch.profiler."""
OWN_FRAME = r"(^|/)warpline/capture/\w+\.py\("
"""Frames of `warpline run` inside the program."""
WRAPPER_FRAME = r"(^|/)warpline/capture/(module_calls\.py\(\d+\): call|patches\.py\(\d+\): replacement)$"
"""Frames of ours that only pass a call of the program on."""

PROFILER_STEP = r"^ProfilerStep#\d+"
"""Ranges in which torch.profiler puts a step, in its own files and in those of nsys."""
ENGINE_STEP = (
    r"^execute_(new_|context_|\d+_context_|model$)|^(step|prefill|decode)\[|^\[Executor\] _forward_step( \d|:)"
    r"|^executeStep: \d|^\[pl\]\[profile\]run_training_batch$"
)
"""Ranges in which vLLM, SGLang, ATOM, TensorRT-LLM and Lightning put one iteration of their loop."""
OPTIMIZER_RANGE = r"^Optimizer\.step"
"""Ranges in which torch.optim puts a step, whatever follows."""
OPTIMIZER_STEP = rf"{OPTIMIZER_RANGE}#"
"""The same with the optimizer's class behind it: `Optimizer.step#AdamW.step`."""
TORCH_RANGE = rf"{PROFILER_STEP}|{OPTIMIZER_STEP}|^Optimizer\.zero_grad#|^enumerate\(DataLoader\)#"
"""Ranges that torch itself puts around parts of a program; a Kineto file has them among the ops."""
