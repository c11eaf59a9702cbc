"""``warpline device``: peaks of known chips, and measured ceilings of the local GPU."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from warpline.bench.ceilings import measure
from warpline.cli.options import PATH, force_option, json_option
from warpline.cli.output import print_report
from warpline.cli.write import json_text, print_json, put_text, refuse_existing, say, write_text
from warpline.errors import UsageError
from warpline.hardware import Roof, chips, roof_of
from warpline.hardware.ceilings import user_directory
from warpline.reports.roofline import device_report

MEASURE = "measure"


@click.command()
@click.argument(
    "name", required=False, metavar="[NAME|measure]", help="A chip (H200, MI300X), or measure; default: list all chips."
)
@json_option
@click.option(
    "-o", "--output", type=PATH, metavar="FILE", help="Write the measurements to this file; default: your ceilings."
)
@force_option
def device(name: str | None, as_json: bool, output: Path | None, force: bool) -> None:
    """Show the peaks of a chip with their sources, or measure the local GPU.

    Peaks are dense and per data type. Measured ceilings take precedence over the data sheet if a trace was
    recorded on such a chip. Measuring needs torch and a GPU, and takes under a minute.

    Examples:

      warpline device

      warpline device H200

      warpline device measure -o h200.json
    """
    if name == MEASURE:
        _measure(output, force, as_json)
        return
    if output is not None:
        raise UsageError("nothing-to-write", "-o requires measure", "warpline device measure -o FILE")
    if name is None:
        _list(as_json)
        return
    roof = roof_of(name)
    if as_json:
        print_json({"schema": "warpline.device/1", **_as_dict(roof)})
    else:
        print_report(device_report(roof))


def _list(as_json: bool) -> None:
    roofs = [roof_of(chip) for chip in chips()]
    if as_json:
        print_json({"schema": "warpline.devices/1", "devices": [_as_dict(roof) for roof in roofs]})
        return
    say(f"{'chip':22}{'compute':>8}{'SMs':>6}{'bf16 or fp16':>14}{'fp32':>8}{'memory':>9}  ceilings")
    for roof in roofs:
        chip = roof.chip
        half = chip.tensor.get("bf16") or chip.tensor.get("fp16") or chip.reported.get("bf16")
        cells = (f"{half.value / 1e12:,.4g}" if half else "–", f"{chip.vector['fp32'].value / 1e12:,.4g}")
        memory = f"{chip.bandwidth['dram'].value / 1e9:,.0f}"
        source = "measured" if roof.ceilings is not None else half.origin if half is not None else "data sheet"
        version = f"{chip.compute[0]}.{chip.compute[1]}"
        say(f"{chip.name:22}{version:>8}{chip.sm_count:>6}{cells[0]:>14}{cells[1]:>8}{memory:>9}  {source}")
    say("dense TFLOP/s and GB/s; next: warpline device NAME")


def _as_dict(roof: Roof) -> dict[str, Any]:
    chip = roof.chip

    def figures(table: dict[str, Any]) -> dict[str, Any]:
        return {key: {"value": figure.value, "source": figure.source} for key, figure in table.items()}

    return {
        "name": chip.name,
        "vendor": chip.vendor,
        "compute": f"{chip.compute[0]}.{chip.compute[1]}",
        "sm_count": chip.sm_count,
        "l2_bytes": chip.l2_bytes,
        "tensor": figures(chip.tensor),
        "vector": figures(chip.vector),
        "reported": figures(chip.reported),
        "bandwidth": figures(chip.bandwidth),
        "measured": (
            {"origin": roof.ceilings.origin, "date": roof.ceilings.date, "values": roof.ceilings.values}
            if roof.ceilings is not None
            else None
        ),
    }


def _measure(output: Path | None, force: bool, as_json: bool) -> None:
    refuse_existing(output, force)
    document = measure(lambda line: say(line, err=True))
    if output is None:
        plain = re.sub(r"[^a-z0-9]+", "-", str(document["device"]["name"]).lower()).strip("-")
        output = user_directory() / f"{plain}.json"
        output.parent.mkdir(parents=True, exist_ok=True)
    text = json_text(document)
    write_text(output, text)
    if as_json:
        put_text(text)
    say(f"wrote {output}", err=True)
