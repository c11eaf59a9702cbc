"""Every verb, listed once: its line of the help, a sample call, and its module.

`warpline --help` reads this table and imports no verb. The tests of the documentation, the fuzzer and
`benchmarks/scaling.py` make their calls from the samples.
"""

from __future__ import annotations

import shlex

from msgspec import Struct


class Verb(Struct, frozen=True):
    """One verb."""

    help: str
    """The first line of the command's docstring."""
    sample: str
    """A call; TRACE, REPORT, SOURCE and PROGRAM stand for an input, and OUTPUT for a file without its suffix."""
    module: str = ""
    """The module in `warpline.cli`, if its name is not the verb's."""
    function: str = ""
    """The command in that module, if its name is not the verb's."""

    def words(self, **meant: str) -> list[str]:
        """The sample's words, with what the words in capitals stand for: `TRACE="demo.json"`."""
        words = shlex.split(self.sample)
        for name, value in meant.items():
            words = [word.replace(name, value) for word in words]
        return words


VERBS = {
    "diagnose": Verb("Say why the GPU is slow, where its time goes, and what each fix would gain.", "diagnose TRACE"),
    "report": Verb(
        "Write one HTML file with the verdict, the findings and a timeline; it opens offline in any browser.",
        "report TRACE -f -o OUTPUT.html",
    ),
    "view": Verb(
        "Show the report of a trace of any size in the browser; short events are fetched when you zoom in.",
        "view TRACE",
    ),
    "run": Verb("Run a program unchanged, profile some of its steps, and diagnose them.", "run PROGRAM"),
    "try": Verb(
        "Apply fixes to an unchanged program, measure each against it, and check that the results stay the same.",
        "try --budget 30s PROGRAM",
        module="trial",
        function="try_fixes",
    ),
    "compare": Verb("Compare two recordings: is B faster, by how much, and what changed.", "compare TRACE TRACE"),
    "ladder": Verb(
        "Show several versions of a program as a ladder: time, launches, kernels that appear and vanish, predictions.",
        "ladder TRACE TRACE",
    ),
    "baseline": Verb(
        "Save what a program takes, to compare later runs with it.", "baseline save sample TRACE -f --folder OUTPUT"
    ),
    "gate": Verb(
        "Check recordings against a baseline, budgets, or both.", "gate TRACE --budget step_ms<=100 --name sample"
    ),
    "history": Verb(
        "Show how a number of the gate developed, run by run, and where its level changed.", "history sample"
    ),
    "stats": Verb(
        "Print the reports of nsys stats, with the same names, columns and numbers, from any trace.", "stats TRACE"
    ),
    "sql": Verb(
        "Query the trace's tables with SQL (polars' dialect); without a query, list tables and columns.", "sql TRACE"
    ),
    "kernel": Verb(
        "Decode a kernel name: library, operation, class, data types, tile, tensor cores, each with its reason.",
        "kernel cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4",
    ),
    "explain": Verb(
        "Explain a name: a call, kernel, op, cause, fix, finding, health or lint code, metric, concept or lesson.",
        "explain cuLibraryLoadData cuLibraryLoadDat",
    ),
    "dive": Verb(
        "Say why a kernel is slow inside: the limiting unit, the reason, what to change, and the gain.", "dive REPORT"
    ),
    "metric": Verb(
        "Explain a metric of Nsight Compute: what it counts, what a good value is, and which chips have it.",
        "metric sm__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "ops": Verb(
        "List ops with their calls, CPU and GPU time, work, share of the roofline and line of code.",
        "ops TRACE --group shape",
    ),
    "parts": Verb(
        "Split the step into parts: GPU time, idle time inside, launches, share of the roofline, "
        "and a verdict for each.",
        "parts TRACE",
    ),
    "roofline": Verb(
        "Show how far each op or kernel is from the roofline: FLOPs, bytes, rates, ceiling, bound and headroom.",
        "roofline TRACE",
    ),
    "device": Verb("Show the peaks of a chip with their sources, or measure the local GPU.", "device H200"),
    "bench": Verb(
        "Time a function on the GPU: warmed up, synchronised, L2 flushed, with a confidence interval and caveats.",
        "bench --list",
    ),
    "lab": Verb(
        "Run experiments on this GPU that show why programs are slow and what helps; without a name, list them.",
        "lab",
    ),
    "doctor": Verb(
        "Explain why profiling fails, and how to fix it: on this machine, in a profile, or in a command line.",
        "doctor TRACE",
    ),
    "scrub": Verb(
        "Write a copy of a profile that can be shared: only what an analysis needs and what is known to be harmless.",
        "scrub TRACE -f -o OUTPUT.json",
    ),
    "path": Verb(
        "Follow ops from Python to the kernel: time in Python, framework, API call, queue and kernel, per op.",
        "path TRACE",
    ),
    "budget": Verb(
        "Show whether dispatch on the CPU or the GPU bounds a step, the crossover, and the gain of a CUDA graph.",
        "budget TRACE",
    ),
    "memory": Verb(
        "Show where the memory goes: the peak and what is alive then, reserved memory, growth per step, the curve.",
        "memory TRACE",
    ),
    "whatif": Verb(
        "Predict the step time with a fix, by replaying the trace with it and without profiler overhead.",
        "whatif TRACE",
    ),
    "export": Verb(
        "Write the trace with its diagnosis for Perfetto or speedscope, or draw it as SVG or PNG, by the file's name.",
        "export TRACE -f -o OUTPUT.pftrace",
    ),
    "lint": Verb(
        "Find what slows the GPU or makes a timing wrong in a program's source, without running it.", "lint SOURCE"
    ),
    "watch": Verb(
        "Judge each trace, or set of ranks, that appears in a folder, and say when the step has changed.",
        "watch OUTPUT --once",
    ),
    "mcp": Verb("Serve diagnose, whatif, compare, query, explain and try to a coding agent (MCP).", "mcp"),
    "skill": Verb("Print a page that tells a coding agent when to call what, for its skills or AGENTS.md.", "skill"),
    "demo": Verb(
        "Diagnose the bundled trace: four training steps of a small GPT on an NVIDIA H200.", "demo", module="diagnose"
    ),
}
"""In the order of the list of commands."""

GROUPS = {
    "Look at a profile": (
        *("diagnose", "report", "view", "whatif", "path", "budget", "ops", "parts", "memory", "roofline"),
        *("dive", "stats", "sql"),
    ),
    "Compare runs": ("compare", "ladder", "baseline", "gate", "history", "watch"),
    "Capture and measure": ("run", "try", "bench", "lab", "lint", "doctor"),
    "Learn": ("demo", "explain", "kernel", "metric", "device"),
    "Share": ("export", "scrub", "mcp", "skill"),
}
"""The verbs by what they are for, in the order of the help and of the README."""
