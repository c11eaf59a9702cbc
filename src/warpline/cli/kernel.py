"""``warpline kernel``: what a kernel is, read from its name."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from warpline.cli.output import ReportOutput, output_options
from warpline.errors import UsageError
from warpline.hardware.chips import chip_named
from warpline.kernels import identify
from warpline.reports.kernel import kernel_report


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…", help="Kernel names; - reads them from stdin.")
@click.option("--device", metavar="ARCH|CHIP", help="Check the fit to this architecture (sm90) or chip (GB10).")
@output_options
def kernel(names: tuple[str, ...], device: str | None, output: ReportOutput) -> None:
    """Decode a kernel name: library, operation, class, data types, tile, tensor cores, each with its reason.

    Fields that the name does not prove are omitted. A class that it does not prove is unknown, with
    the reason.

    Examples:

      warpline kernel cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4

      warpline kernel nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN --device sm90

      warpline kernel cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4 --device GB10

      warpline stats trace.json.gz -r cuda_gpu_kern_sum --format csv | cut -d, -f9- | warpline kernel - --json
    """
    wanted = _wanted(names)
    arch = _arch(device)
    found = [identify(name, arch) for name in wanted]
    output.put(lambda: kernel_report(found), lambda: [identity.to_dict() for identity in found])


def _wanted(names: Sequence[str]) -> list[str]:
    wanted: list[str] = []
    for name in names:
        if name == "-":
            # Bytes: what a terminal or a file gives need not be text in the encoding of this process.
            lines = sys.stdin.buffer.read().decode("utf-8", "replace").splitlines()
            wanted.extend(line.strip().strip('"') for line in lines if line.strip())
        else:
            wanted.append(name)
    if not wanted:
        raise UsageError("no-names", "no kernel name was given", "warpline kernel NAME, or names on stdin with -")
    return wanted


def _arch(device: str | None) -> str | None:
    if device is None:
        return None
    digits = device.lower().removeprefix("sm").removeprefix("_").replace(".", "")
    if digits.rstrip("af").isdigit():
        return f"sm{digits.rstrip('af')}"
    try:
        chip = chip_named(device)
    except UsageError as error:
        what = f"{device} is neither an architecture nor one known chip"
        raise UsageError("bad-architecture", what, "write it as sm90, 9.0 or GB10") from error
    if chip.vendor != "nvidia":
        raise UsageError("bad-architecture", f"{chip.name} has no compute capability", "name an NVIDIA chip")
    major, minor = chip.compute
    return f"sm{major}{minor}"
