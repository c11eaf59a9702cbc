"""warpline follows one line of PyTorch down to the warps that run it.

>>> import warpline
>>> trace = warpline.open("trace.json.gz")
>>> trace.gpu
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpline.bench import Bench
    from warpline.capture.marks import region, step
    from warpline.capture.profile import profile
    from warpline.hardware import roofline
    from warpline.kernels import identify
    from warpline.trace.open import open_trace as open  # noqa: A004
    from warpline.trace.trace import Trace

__version__ = "0.1.0"
__all__ = ["Trace", "__version__", "bench", "identify", "open", "profile", "region", "roofline", "step"]

bench: Bench

_HOMES = {
    "bench": ("warpline.bench", ""),
    "open": ("warpline.trace.open", "open_trace"),
    "Trace": ("warpline.trace.trace", "Trace"),
    "profile": ("warpline.capture.profile", "profile"),
    "region": ("warpline.capture.marks", "region"),
    "step": ("warpline.capture.marks", "step"),
    "identify": ("warpline.kernels", "identify"),
    "roofline": ("warpline.hardware", "roofline"),
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Loads the analysis side when it is first used, so that importing warpline costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'warpline' has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - only when something is used

    module, attribute = _HOMES[name]
    loaded = importlib.import_module(module)
    found = globals()[name] = getattr(loaded, attribute) if attribute else loaded
    return found
