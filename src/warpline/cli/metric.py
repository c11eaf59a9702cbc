"""``warpline metric``: what a metric of Nsight Compute counts, where it exists, and what replaces it elsewhere."""

from __future__ import annotations

import click

from warpline.cli.output import ReportOutput, output_options
from warpline.cli.write import say_error
from warpline.errors import EXIT_FAILED, WarplineError
from warpline.hardware.counters.explain import SCHEMA, explain
from warpline.hardware.counters.table import catalogue, target_of
from warpline.reports.metric import metric_report


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…", help="Metrics, with or without suffixes.")
@click.option("--chip", metavar="CHIP", help="Answer for this chip: sm_90, 9.0 or GH100.")
@output_options
def metric(names: tuple[str, ...], chip: str | None, output: ReportOutput) -> int:
    """Explain a metric of Nsight Compute: what it counts, what a good value is, and which chips have it.

    Where a chip lacks the metric, or where the name is nvprof's or never existed, it names what to ask for instead.
    The names are from the libnvperf_host that is installed (nvidia-cuda-cupti, ncu-report), else from a table. A name
    that is unknown gives exit code 1.

    Examples:

      warpline metric sm__throughput.avg.pct_of_peak_sustained_elapsed

      warpline metric sm__pipe_tensor_op_hmma_cycles_active --chip sm_100

      warpline metric achieved_occupancy gld_efficiency --json
    """
    target = target_of(chip) if chip is not None else None
    listed = catalogue(target)
    found = [explain(name, target, listed) for given in names for name in given.split(",") if name.strip()]
    output.put(lambda: metric_report(found), lambda: {"schema": SCHEMA, "metrics": [one.to_dict() for one in found]})
    unknown = [one.name for one in found if one.state == "unknown"]
    for name in unknown:
        say_error(WarplineError("unknown-name", f"no chip has a metric {name!r}"))
    return EXIT_FAILED if unknown else 0
