"""How the time of commands grows with the length of a name.

    python benchmarks/long_names.py

Each name has the worst of several shapes (one identifier, nested templates, brackets that never close, spaces). It is a
kernel's name on stdin of `warpline kernel -`, and names a kernel, an op and a range in a trace of 40 kernels. Times are
those of the processor, of the whole process.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LENGTHS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
SHAPES = ("a", "void at::native::elementwise_kernel<128, 4, gpu_kernel_impl<()", "_GLOBAL__N_", "std::tuple<", "a ")
KERNELS = 40
COMMANDS = (("diagnose", "--no-cache"), ("roofline", "--by", "kernel", "--no-cache"))


def main() -> None:
    """Print a table: seconds by length and command, of the slowest shape."""
    print(f"{'characters':>12}  kernel -  {'  '.join(' '.join(command[:-1]) for command in COMMANDS)}")
    with tempfile.TemporaryDirectory() as folder:
        for length in LENGTHS:
            names = [(shape * (length // len(shape) + 1))[:length] for shape in SHAPES]
            seconds = [max(_seconds(["kernel", "-"], name) for name in names)]
            traces = [_trace(Path(folder) / f"{shape}.json", name) for shape, name in enumerate(names)]
            seconds += [max(_seconds([*command, str(trace)]) for trace in traces) for command in COMMANDS]
            print(f"{length:12,}  {'  '.join(f'{second:8.2f}' for second in seconds)}", flush=True)


def _seconds(words: list[str], given: str | None = None) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "warpline", *words], input=given, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _trace(path: Path, name: str) -> Path:
    events: list[dict[str, Any]] = [_event("user_annotation", name, 0, 90 * KERNELS, {})]
    for number in range(KERNELS):
        at, ids = 90 * number, {"correlation": number + 1, "External id": number + 1}
        shapes = {"Input Dims": [[512, 512], [512, 512]], "Input type": ["float", "float"], **ids}
        events.append(_event("cpu_op", "aten::mm" if number else name, at, 30, shapes))
        events.append(_event("cuda_runtime", "cudaLaunchKernel", at + 5, 10, ids))
        device = {"device": 0, "stream": 7, "grid": [8, 8, 1], "block": [128, 1, 1], **ids}
        events.append(_event("kernel", "gemm" if number else name, at + 20, 60, device))
    devices = [{"id": 0, "name": "NVIDIA H200", "numSms": 132}]
    path.write_text(json.dumps({"deviceProperties": devices, "traceEvents": events}))
    return path


def _event(category: str, name: str, start: int, length: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length, "args": args}


if __name__ == "__main__":
    main()
