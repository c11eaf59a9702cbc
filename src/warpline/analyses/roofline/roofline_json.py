"""The roofline as the JSON contract `warpline.roofline/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpline.hardware import Figure, Roof

if TYPE_CHECKING:
    from warpline.analyses.roofline.entry import Entry, RooflineTable

SCHEMA = "warpline.roofline/1"
_PIPES = (("bf16", "tensor"), ("fp16", "tensor"), ("tf32", "tensor"), ("fp8", "tensor"), ("fp32", "vector"))


def table_dict(table: RooflineTable) -> dict[str, Any]:
    """A roofline as a document."""
    return {
        "schema": SCHEMA,
        "trace": {"device": table.device, "steps": table.steps},
        "by": table.by,
        "ceilings": ceilings_dict(table.roof) if table.roof else None,
        "gpu_ns": table.total_ns,
        "modelled_ns": table.modelled_ns,
        "modelled_pct": round(table.modelled_pct, 3),
        "estimated_ns": table.estimated_ns,
        "floor_ns": round(table.floor_ns),
        "entries": [entry_dict(entry, table) for entry in table.entries],
        "unmodelled": [
            {
                "name": item.name,
                "why": item.why,
                "count": item.count,
                "time_ns": item.time_ns,
                "share_pct": round(100 * item.time_ns / table.total_ns, 3) if table.total_ns else 0.0,
            }
            for item in table.unmodelled
        ],
    }


def entry_dict(entry: Entry, table: RooflineTable) -> dict[str, Any]:
    """One entry as JSON."""
    per_step = step_headroom_ns(entry, table)
    return {
        "name": entry.name,
        "shapes": entry.shapes,
        "dtypes": entry.dtypes,
        "model": entry.model,
        "math": entry.math,
        "count": entry.count,
        "time_ns": round(entry.time_ns),
        "flops": round(entry.flops),
        "read_bytes": round(entry.read_bytes),
        "written_bytes": round(entry.written_bytes),
        "link": entry.link,
        "intensity": entry.intensity,
        "flops_per_second": entry.flops_per_second,
        "bytes_per_second": entry.bytes_per_second,
        "ceiling_flops_per_second": entry.ceiling_flops_per_second,
        "floor_ns": round(entry.floor_ns) if entry.floor_ns is not None else None,
        "roof_pct": entry.roof_pct,
        "bound": entry.bound or None,
        "headroom_ns": round(entry.headroom_ns) if entry.headroom_ns is not None else None,
        "headroom_per_step_ns": round(per_step) if per_step is not None else None,
        "estimate": entry.estimate or None,
        "state": entry.state,
        "note": entry.note or None,
    }


def ceilings_of(roof: Roof) -> dict[str, Figure]:
    """Every ceiling in use, by its name."""
    figures = {f"{dtype} {unit}": roof.compute(dtype, unit) for dtype, unit in _PIPES}
    links = {link: roof.bandwidth(link) for link in ("dram", "l2", "h2d", "d2h", "nvlink")}
    return {name: figure for name, figure in (figures | links).items() if figure is not None}


def ceilings_dict(roof: Roof) -> dict[str, Any]:
    """Every ceiling in use, with its source."""
    return {
        name: {"value": figure.value, "source": figure.source, "measured": figure.measured}
        for name, figure in ceilings_of(roof).items()
    }


def step_headroom_ns(entry: Entry, table: RooflineTable) -> float | None:
    """Headroom of one step; None without steps or ceilings."""
    if entry.floor_ns is None or not table.steps:
        return None
    return entry.step_headroom_ns / table.steps
