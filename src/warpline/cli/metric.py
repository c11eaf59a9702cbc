"""``warpline metric``: what a metric of Nsight Compute counts, where it exists, and what replaces it elsewhere."""

from __future__ import annotations

import click

from warpline.cli.options import json_option
from warpline.cli.output import print_json, put_report


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…", help="Metrics, with or without suffixes.")
@click.option("--chip", metavar="CHIP", help="Answer for this chip: sm_90, 9.0 or GH100.")
@json_option
def metric(names: tuple[str, ...], chip: str | None, as_json: bool) -> None:
    """Explain a metric of Nsight Compute: what it counts, what a good value is, and which chips have it.

    Where a chip lacks the metric, or where the name is nvprof's or never existed, it names what to ask for instead.
    The names are from the libnvperf_host that is installed (nvidia-cuda-cupti, ncu-report), else from a table.

    Examples:

      warpline metric sm__throughput.avg.pct_of_peak_sustained_elapsed

      warpline metric sm__pipe_tensor_op_hmma_cycles_active --chip sm_100

      warpline metric achieved_occupancy gld_efficiency --json
    """
    from warpline.hardware.counters.explain import SCHEMA, explain  # noqa: PLC0415 - the table loads when it is used
    from warpline.hardware.counters.table import catalogue, target_of  # noqa: PLC0415

    target = target_of(chip) if chip is not None else None
    listed = catalogue(target)
    found = [explain(name, target, listed) for given in names for name in given.split(",") if name.strip()]
    if as_json:
        print_json({"schema": SCHEMA, "metrics": [one.to_dict() for one in found]})
        return
    from warpline.reports.metric import metric_report  # noqa: PLC0415

    put_report(metric_report(found))
