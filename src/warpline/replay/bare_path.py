"""The path of an op without what recording costs it: each recorded event in a layer is taken out of its time."""

from __future__ import annotations

import polars as pl

from warpline.analyses.dispatch_path import EVENTS, LAYERS, dispatch_path
from warpline.replay.costs.host import host_costs
from warpline.replay.costs.own_costs import MIN_LEFT
from warpline.trace.trace import Trace

CPU_LAYERS = ("python", "boundary", "native", *LAYERS, "api")
"""The layers before the kernel, in the order of the path."""


def bare_path(trace: Trace, op: str | None = None) -> pl.DataFrame:
    """`dispatch_path`, with `bare_LAYER_ns` for each layer before the kernel, their sum `bare_before_ns`, and its range
    (`bare_before_low_ns`, `bare_before_high_ns`)."""
    table = dispatch_path(trace, op)
    costs = host_costs(trace).recording
    prices = [
        {"op": costs.op.at(level), "call": costs.call.at(level), "frame": costs.frame.at(level)} for level in range(3)
    ]
    cheap, expected, dear = ([_without_recording(table, layer, price) for layer in CPU_LAYERS] for price in prices)
    return table.with_columns(
        **{f"bare_{layer}_ns": left for layer, left in zip(CPU_LAYERS, expected, strict=True)},
        bare_before_ns=pl.sum_horizontal(expected),
        bare_before_low_ns=pl.sum_horizontal(dear),
        bare_before_high_ns=pl.sum_horizontal(cheap),
    ).drop(name for name in table.columns if name.startswith(EVENTS))


def _without_recording(table: pl.DataFrame, layer: str, prices: dict[str, float]) -> pl.Expr:
    counted = [
        pl.col(f"{EVENTS}{layer}_{kind}") * price
        for kind, price in prices.items()
        if f"{EVENTS}{layer}_{kind}" in table.columns
    ]
    recorded = pl.col(f"{layer}_ns")
    return pl.max_horizontal(recorded - pl.sum_horizontal(counted), MIN_LEFT * recorded) if counted else recorded
