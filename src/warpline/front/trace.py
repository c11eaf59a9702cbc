"""The trace that `warpline.open` returns: tables to query, and a method for each command."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from warpline.analyses.device import trace_device
from warpline.analyses.memory import MemoryUse, memory_of_trace
from warpline.analyses.ops import OpsTable, ops_table
from warpline.analyses.parts.table import PartsTable, parts_table
from warpline.analyses.roofline.entry import RooflineTable
from warpline.analyses.roofline.table import roofline_table
from warpline.analyses.stats import report as table_of
from warpline.atomic_write import write_atomically
from warpline.dive.answer import dive_files
from warpline.errors import UsageError, WarplineError
from warpline.exports.formats import Exported, Picture, export
from warpline.findings.diagnosis import Diagnosis, diagnose
from warpline.findings.fix_table import every_fix, whatif
from warpline.front.query import run_query
from warpline.front.tables import to_query
from warpline.notebook import ShownAsCard
from warpline.replay.bare_path import bare_path
from warpline.replay.representative_steps import in_warm_steps
from warpline.replay.whatif import Prediction
from warpline.reports.page.document import page
from warpline.sanitise import sanitise
from warpline.trace import trace as base
from warpline.trace.arrays import Bools
from warpline.trace.cut import cut_to_steps, rows_of_steps
from warpline.trace.steps.choice import StepChoice
from warpline.units import duration, several

PANDAS_HINT = "pip install pandas pyarrow"


class Trace(ShownAsCard, base.Trace, frozen=True):
    """One profile: tables of numpy columns, frames of polars to query, and a method for each command.

    >>> trace = warpline.open("trace.json.gz")
    >>> trace.gpu.end_ns - trace.gpu.start_ns
    >>> trace.table("gpu").filter(pl.col("name").str.contains("gemm"))
    >>> trace.diagnose().verdict
    >>> trace.whatif("cuda_graph", "tf32").gain.expected
    >>> trace.steps[1:3].roofline()

    Every frame has an `id` column, to which columns such as `api_id`, `op_id` and `parent` refer; in arrays it is the
    position. A trace of some steps (`trace.steps[1:3]`) keeps these ids: its frames have the rows that overlap the
    steps or were launched in them, and its arrays are those of the whole recording.
    """

    @property
    def steps(self) -> TraceSteps:
        """The steps: `steps.table` is a DataFrame, `steps[1:3]` a trace of some steps."""
        return TraceSteps(self)

    def table(self, name: str) -> pl.DataFrame:
        """A table as a polars DataFrame, with ids and strings.

        >>> trace.table("gpu").columns[:3]
        ['id', 'kind', 'name']
        """
        if name not in self.tables:
            raise UsageError("no-such-table", f"there is no table {name!r}", f"the tables are {', '.join(self.tables)}")
        return to_query(self.tables[name], self._rows.get(name))

    def to_pandas(self, name: str) -> Any:
        """A table as a pandas DataFrame; needs `pip install pandas pyarrow`.

        >>> trace.to_pandas("ops").groupby("name").size()
        """
        missing = [package for package in ("pandas", "pyarrow") if find_spec(package) is None]
        if missing:
            absent = f"not installed: {', '.join(missing)}"
            raise WarplineError("needs-pandas", f"to_pandas() needs pandas and pyarrow, {absent}", PANDAS_HINT)
        return self.table(name).to_pandas()

    def sql(self, query: str) -> pl.DataFrame:
        """Run a SELECT on the tables, in polars' SQL dialect.

        >>> trace.sql("select api.name, count(*) n from gpu join api on gpu.api_id = api.id group by api.name")
        """
        return run_query(self, query, self._rows)

    def diagnose(self, why: bool | None = None) -> Diagnosis:
        """Where the GPU's time went, why it is slow, and what each fix would gain.

        `why=False` skips the replay (no findings, no verdict); `why=True` always replays; by
        default the trace is replayed if that takes a few seconds at most.

        >>> trace.diagnose().verdict.sentence
        """
        return diagnose(self, why)

    def whatif(self, *fixes: str) -> Prediction:
        """The step time with these fixes applied together; `warpline whatif --help` lists them.

        >>> trace.whatif("cuda_graph", "tf32").new_step_ns.expected
        """

        if not fixes:
            raise UsageError("no-fix", "whatif() needs the name of a fix", "or every_fix(), which tries each alone")
        return whatif(self, list(fixes))

    def every_fix(self) -> list[Prediction]:
        """Each fix alone, if it changes something, the largest gain first.

        >>> [(found.fixes[0].name, found.gain.expected) for found in trace.every_fix()]
        """
        return every_fix(self)

    def roofline(
        self,
        *,
        by: Literal["op", "kernel"] = "op",
        device: str | None = None,
        shapes_from: Trace | None = None,
        whole: bool = False,
    ) -> RooflineTable:
        """How far each op (or kernel) is from the roofline, in the warm steps or the whole recording; `device` names a
        chip to compare with.

        `shapes_from` is a torch.profiler trace of the same program, for kernels without ops (nsys).

        >>> trace.roofline(by="kernel").table
        """

        if by not in {"op", "kernel"}:
            raise UsageError("bad-rows", f"by is op or kernel, not {by!r}", 'by="op" or by="kernel"')
        return roofline_table(self._counted(whole), by=by, device=device, shapes_from=shapes_from)

    def ops_table(
        self,
        *,
        group: Literal["shape", "module", "stack", "line"] | None = None,
        sort: str | None = None,
        device: str | None = None,
        shapes_from: Trace | None = None,
        whole: bool = False,
    ) -> OpsTable:
        """Calls, CPU and GPU time (self and total), work and line of each op, as torch's `key_averages()` counts them:
        in the warm steps, or in the whole recording.

        >>> trace.ops_table(group="shape").frame.select("name", "group", "calls", "gpu_self_ns")
        """

        return ops_table(self._counted(whole), group=group, sort=sort, device=device, shapes_from=shapes_from)

    def parts(
        self,
        *,
        by: Literal["module", "range", "role", "class"] | None = None,
        device: str | None = None,
        shapes_from: Trace | None = None,
        whole: bool = False,
    ) -> PartsTable:
        """The warm steps, or the whole recording, by module, range, role or class of kernels, and the gaps; the sum is
        the time window.

        >>> trace.parts(by="role").frame.select("part", "gpu_ns", "share", "verdict")
        """

        return parts_table(self._counted(whole), by=by, device=device, shapes_from=shapes_from)

    def report(self, file: str | Path, why: bool | None = None, ncu: str | Path | None = None) -> Path:
        """Write the diagnosis and the timeline as one HTML file; `why` as in `diagnose`. `ncu` is a report of Nsight
        Compute, whose answers are shown with the kernels.

        >>> trace.report("report.html")
        """

        dive = dive_files([ncu], self) if ncu else None
        target = Path(file)
        write_atomically(target, page(self.diagnose(why), dive=dive).html)
        return target

    def stats(self, report: str) -> pl.DataFrame:
        """A report of `nsys stats`, with its columns, order and rounding.

        >>> trace.stats("cuda_gpu_kern_sum")
        """

        return table_of(self if self.chosen_steps is None else cut_to_steps(self), report)

    def path(self, op: str | None = None, *, whole: bool = False) -> pl.DataFrame:
        """Time of each op in each layer from Python to the kernel, as recorded and without the profiler's cost, in the
        warm steps or the whole recording; `op` selects one name, at any depth.

        >>> trace.path("aten::linear").select("count", "python_ns", "framework_ns", "api_ns", "queue_ns", "kernel_ns")
        """

        return bare_path(self._counted(whole), op)

    def export(self, file: str | Path, picture: Picture = "timeline") -> Exported:
        """Write the trace with its diagnosis for another viewer, by the end of the name: Perfetto (`.pftrace`,
        `.perfetto.json`), speedscope (`.speedscope.json`), or a picture (`.svg`). A file of that name is overwritten.

        >>> trace.export("trace.pftrace").bars
        """

        return export(self, Path(file), picture)

    def memory_use(self) -> MemoryUse:
        """Peak, growth and owners of the memory of each device, with the curve as arrays.

        >>> trace.memory_use().devices[0].peak.allocated_bytes
        """
        return memory_of_trace(self)

    def __repr__(self) -> str:
        return sanitise(f"<Trace {self.file.name}: {self.source}, {self._device}, {self.steps.summary}, {self._size}>")

    @property
    def summary(self) -> dict[str, str]:
        """What the recording is, in words."""
        window = duration(self.window.length_ns) if self.window.length_ns else "empty"
        known = {"source": self.source, "device": self._device, "steps": self.steps.summary}
        return {**known, "window": window, "size": self._size}

    @property
    def _device(self) -> str:
        return trace_device(self)[0]

    @property
    def _size(self) -> str:
        gpu, api, ops = (
            int(self._rows[name].sum()) if name in self._rows else len(self.tables[name])
            for name in ("gpu", "api", "ops")
        )
        return f"{gpu:,} GPU activities, {api:,} API calls, {ops:,} ops"

    def _counted(self, whole: bool) -> Trace:
        return self if whole else in_warm_steps(self)

    @property
    def _rows(self) -> dict[str, Bools]:
        """The rows of the selected steps, for each table with times; empty for a whole trace."""
        if self.chosen_steps is None:
            return {}
        chosen = np.isin(self.all_steps.index, self.steps_in_view.index)
        return {**rows_of_steps(self), "steps": chosen}


class TraceSteps(ShownAsCard):
    """The selected steps. `steps[1:3]` and `steps[2]` are traces of these steps only; `steps.table` is a DataFrame.

    Positions count from the first selected step, as in any Python sequence: `steps[-1]` is the last.

    >>> len(trace.steps)
    4
    >>> trace.steps[1:3].diagnose()
    >>> [step.step_ns for step in trace.steps]
    >>> trace.steps.table.select("name", "start_ns", "end_ns")
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def table(self) -> pl.DataFrame:
        """One row per step: `id`, `index`, `name`, `start_ns`, `end_ns`, `thread`, `found_by`."""
        shown = to_query(self._trace.all_steps)
        positions = self._positions
        return shown[positions.start : positions.stop]

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, chosen: int | slice) -> Trace:
        wanted = chosen if isinstance(chosen, slice) else slice(chosen, chosen + 1 if chosen != -1 else None)
        if wanted.step not in {None, 1}:
            raise UsageError("bad-steps", "a slice of steps cannot have a stride", "slice without a stride")
        positions = self._positions[wanted]
        if len(self) and not positions:
            raise UsageError(
                "no-such-step", f"the trace has {several(len(self), 'step')}, numbered from 0; none is in that range"
            )
        return self._trace.with_steps(StepChoice(positions.start, positions.stop))

    def __iter__(self) -> Iterator[Trace]:
        return (self[position] for position in range(len(self)))

    def __repr__(self) -> str:
        return sanitise(f"<TraceSteps: {self.summary}>")

    @property
    def summary(self) -> str:
        """Number, duration and source of the steps, as text."""
        step_ns = self._trace.step_ns
        if step_ns is None:
            return "no steps"
        found_by = self._trace.all_steps.found_by[0]
        return f"{len(self)} step{'s' if len(self) != 1 else ''} of {duration(step_ns)}, found by {found_by}"

    @property
    def _positions(self) -> range:
        """The selected steps, as positions in the whole table."""
        everything = range(len(self._trace.all_steps))
        choice = self._trace.chosen_steps
        return everything if choice is None else everything[slice(choice.first, choice.beyond)]
