"""Run experiments one after the other; one that fails leaves the others' results alone."""

from __future__ import annotations

import datetime
import importlib
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from warpline.errors import CannotAnswer, UsageError, WarplineError, meant
from warpline.lab import (
    batch_size,
    dispatch,
    memory_and_copies,
    optimisation_ladder,
    synchronisation,
    timing,
    triton_kernels,
    workload_ladder,
)
from warpline.lab.model import LabExperiment, LabResult, LabResults
from warpline.lab.workbench import Workbench

EXPERIMENTS: dict[str, LabExperiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        timing,
        dispatch,
        synchronisation,
        memory_and_copies,
        batch_size,
        workload_ladder,
        optimisation_ladder,
        triton_kernels,
    )
}
ALL = "all"


def chosen(names: Sequence[str]) -> list[LabExperiment]:
    """The experiments with these names, in the order of the list."""
    for name in names:
        if name != ALL and name not in EXPERIMENTS:
            raise UsageError("unknown-experiment", f"there is no experiment {name!r}", meant(name, (ALL, *EXPERIMENTS)))
    return [one for one in EXPERIMENTS.values() if ALL in names or one.name in names]


def run_experiments(
    names: Sequence[str],
    *,
    device: str = "auto",
    seconds: float = 0.2,
    keep: Path | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> LabResults:
    """Run these experiments; recordings stay in `keep`, or nowhere."""
    wanted, torch = chosen(names), _torch()
    has_gpu = bool(torch.cuda.is_available()) and device != "cpu"
    if device == "cuda" and not has_gpu:
        raise CannotAnswer(
            "no-gpu", "torch finds no CUDA device", "run it on a machine with a GPU, or with --device cpu"
        )
    with tempfile.TemporaryDirectory(prefix="warpline-lab-") as temporary:
        folder = keep if keep is not None else Path(temporary)
        lab = Workbench(torch, "cuda" if has_gpu else "cpu", seconds, report, folder)
        with lab.steady_threads():
            places = [f"{number} of {len(wanted)}" for number in range(1, len(wanted) + 1)]
            results = tuple(_result(one, lab, place) for one, place in zip(wanted, places, strict=True))
    return LabResults(
        device=str(torch.cuda.get_device_name()) if has_gpu else f"the CPU ({platform.machine()})",
        torch=str(torch.__version__),
        cuda=str(torch.version.cuda) if has_gpu else None,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        sizes="full" if has_gpu else "small",
        experiments=results,
    )


def _result(experiment: LabExperiment, lab: Workbench, place: str) -> LabResult:
    def not_run(why: str) -> LabResult:
        return LabResult(experiment.name, experiment.asks, "", "", (), (), why, time.monotonic() - began)

    began = time.monotonic()
    lab.report(f"{experiment.name} ({place}): {experiment.asks}")
    if experiment.needs_gpu and not lab.has_gpu:
        return not_run(f"it needs a GPU: {experiment.on_cpu}")
    lab.notes = []
    try:
        found = experiment.run(lab)
    except WarplineError as error:
        return not_run(error.message)
    except Exception as error:  # whatever torch raises: the other experiments go on
        return not_run(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    if lab.has_gpu:
        lab.torch.cuda.empty_cache()
    seconds = time.monotonic() - began
    lab.report(f"  {found.seen} ({seconds:.0f} s)")
    return LabResult(
        experiment.name, experiment.asks, found.seen, found.why, found.tables, tuple(lab.notes), "", seconds
    )


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise CannotAnswer("no-torch", "the lab needs torch, which is not installed", "pip install torch") from error
