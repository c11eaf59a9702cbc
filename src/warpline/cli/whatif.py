"""``warpline whatif``: what the step would take with a fix, by replaying the trace with it."""

from __future__ import annotations

from typing import Annotated

import typer

from warpline.cli.options import (
    JsonOption,
    NoCacheOption,
    StepRangeOption,
    StepsOption,
    TraceArgument,
    open_with_progress,
)
from warpline.cli.output import print_json, put_report


def whatif(
    trace: TraceArgument,
    fix: Annotated[
        list[str] | None,
        typer.Option("--fix", metavar="NAME", help="Apply this fix; repeat for several together. Without: each alone."),
    ] = None,
    as_json: JsonOption = False,
    steps: StepsOption = None,
    step_range: StepRangeOption = None,
    no_cache: NoCacheOption = False,
) -> None:
    """Predict the step time with a fix applied: the trace is replayed with it, without the profiler's cost.

    The fixes: at_roofline, batch, bf16, channels_last, coalesce_copies, cuda_graph, drop_casts, drop_copies, even_out,
    fewer_kernels, fill_gpu, fused_optimizer, newer_kernels, no_empty_cache, overlap_comm, pad, pin_memory, preallocate,
    prefetch, reduce_before_copy, remove_sync, sdpa, streams, tf32, torch_compile, warm_up.

    Examples:

      warpline whatif trace.json.gz

      warpline whatif trace.json.gz --fix cuda_graph

      warpline whatif trace.json.gz --fix tf32 --fix remove_sync --json
    """
    from warpline.fixes.whatif import every_fix  # noqa: PLC0415 - polars loads only when it is used
    from warpline.fixes.whatif import whatif as predict  # noqa: PLC0415
    from warpline.reports.whatif import report, report_all  # noqa: PLC0415

    opened = open_with_progress(trace, steps, step_range, no_cache)
    predictions = [predict(opened, fix)] if fix else every_fix(opened)
    if as_json:
        answer = predictions[0].to_dict() if fix else [prediction.to_dict() for prediction in predictions]
        print_json(answer)
        return
    put_report(report(predictions[0], str(trace)) if fix else report_all(predictions, str(trace)))
