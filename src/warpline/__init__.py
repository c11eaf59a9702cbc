"""warpline follows one line of PyTorch down to the warps that run it.

>>> import warpline
>>> trace = warpline.open("trace.json.gz")
>>> trace.gpu
>>> trace.diagnose()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpline.bench import Bench
    from warpline.capture.marks import region, step
    from warpline.capture.profile import profile
    from warpline.compare import CompareModule
    from warpline.compare.comparison import Comparison
    from warpline.dive import DiveModule
    from warpline.dive.model import Dive, KernelDive
    from warpline.errors import WarplineError
    from warpline.findings.diagnosis import Diagnosis
    from warpline.findings.model import Finding, Verdict
    from warpline.front.functions import diagnose, memory_use, whatif
    from warpline.front.functions import open_trace as open  # noqa: A004
    from warpline.front.trace import Trace, TraceSteps
    from warpline.hardware import roofline
    from warpline.kernels import identify
    from warpline.ranks.job import open_job
    from warpline.replay.whatif import Prediction

__version__ = "0.1.0"
__all__ = [
    "Comparison",
    "Diagnosis",
    "Dive",
    "Finding",
    "KernelDive",
    "Prediction",
    "Trace",
    "TraceSteps",
    "Verdict",
    "WarplineError",
    "__version__",
    "bench",
    "compare",
    "diagnose",
    "dive",
    "identify",
    "memory_use",
    "open",
    "open_job",
    "profile",
    "region",
    "roofline",
    "step",
    "whatif",
]

bench: Bench
compare: CompareModule
dive: DiveModule

_HOMES = {
    "Comparison": ("warpline.compare.comparison", "Comparison"),
    "Diagnosis": ("warpline.findings.diagnosis", "Diagnosis"),
    "Dive": ("warpline.dive.model", "Dive"),
    "Finding": ("warpline.findings.model", "Finding"),
    "KernelDive": ("warpline.dive.model", "KernelDive"),
    "Prediction": ("warpline.replay.whatif", "Prediction"),
    "Trace": ("warpline.front.trace", "Trace"),
    "TraceSteps": ("warpline.front.trace", "TraceSteps"),
    "Verdict": ("warpline.findings.model", "Verdict"),
    "WarplineError": ("warpline.errors", "WarplineError"),
    "bench": ("warpline.bench", ""),
    "compare": ("warpline.compare", ""),
    "diagnose": ("warpline.front.functions", "diagnose"),
    "dive": ("warpline.dive", ""),
    "identify": ("warpline.kernels", "identify"),
    "load_ipython_extension": ("warpline.ui.notebook_magic", "load_ipython_extension"),
    "notebook_card": ("warpline.ui.cards", "card"),
    "memory_use": ("warpline.front.functions", "memory_use"),
    "open": ("warpline.front.functions", "open_trace"),
    "open_job": ("warpline.ranks.job", "open_job"),
    "profile": ("warpline.capture.profile", "profile"),
    "region": ("warpline.capture.marks", "region"),
    "roofline": ("warpline.front.functions", "roofline"),
    "step": ("warpline.capture.marks", "step"),
    "whatif": ("warpline.front.functions", "whatif"),
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
