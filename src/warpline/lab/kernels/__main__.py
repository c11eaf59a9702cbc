"""Launch each Triton kernel once, good and bad, for Nsight Compute to look at.

ncu --set full -k regex:kernel -o triton python -m warpline.lab.kernels
"""

from __future__ import annotations

import importlib
import sys

from warpline.lab.kernels.check import KERNELS
from warpline.lab.triton_kernels import COLUMNS, DTYPE, ROWS


def main() -> int:
    """The command line of `python -m warpline.lab.kernels`: names of kernels, or nothing for all."""
    torch = importlib.import_module("torch")
    for kernel in KERNELS:
        if not sys.argv[1:] or kernel.name in sys.argv[1:]:
            args = kernel.inputs(torch, ROWS, COLUMNS, getattr(torch, DTYPE), "cuda")
            kernel.run(*args)
            kernel.bad(*args)
            torch.cuda.synchronize()
            print(f"{kernel.name}: good, then bad", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
