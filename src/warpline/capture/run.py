"""`warpline run` without its command line: run a program under a profiler and write a folder with a manifest."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpline.capture.environment import git_state, gpu_states, mattering_variables, scrubbed_command
from warpline.capture.launch import Ending, EndProcesses, forwarding_environment, launch
from warpline.capture.manifest import (
    gather,
    in_use,
    leave_nothing,
    make_private,
    manifest_of,
    new_folder,
    write_manifest,
)
from warpline.capture.missing_trace import why_fewer, why_nothing
from warpline.capture.ncu_log import NO_KERNELS, NcuLog, ncu_failure
from warpline.capture.plan import NCU, NSYS, TORCH, VARIABLE, Plan
from warpline.capture.process_record import NOTHING, RECORDED, RECORDING, read_parts
from warpline.capture.program import ProgramCommand, has_torch, run_name
from warpline.capture.second_pass import in_second_pass
from warpline.capture.session import WINDOW_ENDS, WINDOW_S
from warpline.capture.this_process import TEARDOWN
from warpline.capture.tool_commands import (
    NCU_LAUNCHES,
    FirstKernels,
    Flag,
    Focus,
    find_tool,
    ncu_flags,
    nsys_flags,
    tool_or_name,
    torch_flags,
    words_of,
)
from warpline.errors import EXIT_INCONCLUSIVE, UsageError, WarplineError
from warpline.sanitise import sanitise

INJECTED = str(Path(__file__).parent / "inject")
CHECK_INTERVAL_S = 0.4
PATIENCE = 4
"""So many times as long as for the first step, `--stop` waits after a window for steps that an optimizer or a call
announced, and so many times as long again once the step is known."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class RunRequest:
    """The settings of a run."""

    program: ProgramCommand
    tool: str | None = None
    name: str | None = None
    output: Path | None = None
    stop: bool = False
    """End the program when the recording is done."""
    kernel: str = ""
    launches: int = NCU_LAUNCHES
    tool_arguments: tuple[str, ...] = ()
    output_to_stderr: bool = False
    focus: Focus | None = None
    """The launches that ncu profiles, where they are known."""


@dataclass(frozen=True)
class Run:
    """The result of a run."""

    folder: Path
    manifest: dict[str, Any]
    ending: Ending
    exit_code: int
    trace: Path | None
    """The trace to diagnose: that of the first rank."""
    nothing: WarplineError | None
    """Why there is no trace."""


def chosen_tool(request: RunRequest) -> str:
    """The requested tool; otherwise torch.profiler, unless the program clearly has no Python or no torch."""
    if request.tool is not None:
        if request.tool not in {TORCH, NSYS, NCU}:
            raise UsageError("unknown-tool", f"--with takes torch, nsys or ncu, not {request.tool!r}")
        return request.tool
    program = request.program
    if not program.is_python:
        return TORCH if program.wraps else NSYS
    if program.python is not None and not has_torch(program.python):
        raise WarplineError(
            "no-torch",
            f"the program's Python ({Path(program.python).name}) has no torch, so torch.profiler cannot record it",
            "give the right Python (warpline run -- /path/to/python train.py), or use --with nsys",
        )
    return TORCH


def command_of(request: RunRequest, plan: Plan, tool_path: Callable[[str], str] = find_tool) -> list[Flag]:
    """The whole command line, each part with its reason."""
    program = Flag(request.program.command, "your program, unchanged")
    by_range = request.program.is_python and not plan.whole
    if plan.tool == NSYS:
        flags = nsys_flags(tool_path(NSYS), plan, by_range, request.tool_arguments, request.stop)
        return [*flags, program]
    if plan.tool == NCU:
        chosen = request.focus or FirstKernels(request.kernel, request.launches)
        flags = ncu_flags(tool_path(NCU), plan, by_range, chosen, request.tool_arguments, request.stop)
        return [*flags, program]
    return [program]


def explanation(request: RunRequest, plan: Plan) -> list[Flag]:
    """The command line and, for torch.profiler, the settings that replace flags. The tool need not be installed."""
    settings = torch_flags(plan, INJECTED) if plan.tool == TORCH else []
    return [*settings, *command_of(request, plan, tool_or_name)]


def prepare(request: RunRequest, plan: Plan) -> Plan:
    """The plan with an output folder."""
    if request.output is not None and in_use(request.output):
        raise UsageError(
            "folder-in-use", f"{request.output} already contains a run", "choose another with --output or --name"
        )
    command_of(request, plan)  # a missing tool is an error before anything is created
    name = request.name or run_name(request.program, datetime.datetime.now())
    return Plan(**{**plan.__dict__, "folder": str(new_folder(name, request.output)), "stop": request.stop})


def run(request: RunRequest, plan: Plan, say: Say) -> Run:
    """Run the program to its end under the profiler, and write the results."""
    folder = Path(plan.folder)
    there_before = set(folder.rglob("*"))
    command = words_of(command_of(request, plan))
    environment = forwarding_environment({**os.environ, VARIABLE: plan.to_text()}, INJECTED)
    environment.setdefault("KINETO_LOG_LEVEL", "99")  # Kineto reports its stages on stderr
    environment.setdefault(TEARDOWN, "1")
    before, revision = gpu_states(), git_state()
    started = datetime.datetime.now(datetime.timezone.utc)  # noqa: UP017 - Python 3.9
    watcher = _Watcher(folder, request, plan, say)
    try:
        ending = launch(command, environment, output_to_stderr=request.output_to_stderr, look=watcher.look)
    except WarplineError:
        leave_nothing(folder)
        raise
    watcher.end_all()
    parts = gather(folder)
    if ending.exit_code and parts and not watcher.stopped and not ending.interrupted:
        how = ending.signal or f"exit code {ending.exit_code}"
        say(f"the program failed ({how}) {_where_it_failed(parts)}")
    fewer = why_fewer(plan, parts)
    if fewer and not watcher.stopped:
        say(fewer)
    traces = _traces(folder, plan, parts)
    if plan.tool == NSYS and traces:
        for part in parts:
            part["file"] = traces[0].with_suffix(".sqlite").name if part["state"] == RECORDED else None
    manifest = manifest_of(
        plan,
        parts,
        name=folder.name,
        started=started.isoformat(timespec="seconds"),
        seconds=round(ending.seconds, 3),
        command=scrubbed_command(request.program.command),
        exit_code=ending.exit_code,
        signal=ending.signal,
        stopped=watcher.stopped,
        git=revision,
        devices=watcher.devices or before,
        devices_sampled="while recording" if watcher.devices else "before the program",
        environment=mattering_variables(os.environ),
        files=[trace.name for trace in traces],
        versions=_tool_versions(plan, before),
    )
    try:
        write_manifest(folder, manifest)
    except WarplineError as error:  # the trace may exist anyway
        say(error.line())
    make_private(folder, there_before)
    own = [Path(path) for part in parts for path in part["own_traces"] if Path(path).is_file()]
    trace = next(iter(traces), None) or next(reversed(own), None)
    nothing = None if trace else why_no_trace(folder, plan, parts, ending)
    code = 0 if watcher.stopped else ending.exit_code
    return Run(folder, manifest, ending, code, trace, nothing)


def _traces(folder: Path, plan: Plan, parts: list[dict[str, Any]]) -> list[Path]:
    if plan.tool == TORCH:
        files = [folder / part["file"] for part in parts if part["state"] == RECORDED and part["file"]]
        return [file for file in files if file.is_file()]
    return sorted([*folder.glob("*.nsys-rep"), *folder.glob("*.ncu-rep")])


def why_no_trace(folder: Path, plan: Plan, parts: list[dict[str, Any]], ending: Ending) -> WarplineError:
    """What the tool or the processes say of it."""
    known = ncu_failure(folder) if plan.tool == NCU else None
    if known is None or (known.code == NO_KERNELS and parts):  # ncu has no kernels either where no recording began
        known = why_nothing(folder, plan, parts, ending) or known
    if known is not None:
        return known
    return WarplineError(
        "no-report",
        f"{plan.tool} wrote no report to {folder.name}",
        "see its messages above; warpline doctor checks this machine",
        ending.exit_code or EXIT_INCONCLUSIVE,
    )


def _where_it_failed(parts: list[dict[str, Any]]) -> str:
    """The step in which the program ended, as far as its processes counted them."""
    part = max(parts, key=lambda each: max(each["steps_seen"].values(), default=0))
    if part["state"] == RECORDED and part["steps_recorded"] and part["ended_by"] == "steps":
        return f"after step {part['first_step'] + part['steps_recorded']}, the last one that was recorded"
    seen = max(part["steps_seen"].values(), default=0)
    return f"after {seen} step{'s' if seen > 1 else ''}" if seen else "in its first step, or before it"


def _tool_versions(plan: Plan, devices: list[dict[str, object]]) -> dict[str, object]:
    versions: dict[str, object] = {"driver": devices[0]["driver"] if devices else None}
    if plan.tool != TORCH:
        said = subprocess.run([find_tool(plan.tool), "--version"], capture_output=True, text=True, check=False).stdout
        versions[plan.tool] = next((word for word in said.split() if word[:4].isdecimal() and "." in word), None)
    return versions


class _Watcher:
    """Watch the reports of running processes, to inform the user and to record the GPU's state at that moment."""

    def __init__(self, folder: Path, request: RunRequest, plan: Plan, say: Say) -> None:
        self._folder, self._request, self._plan, self._say = folder, request, plan, say
        self._looked = self._window_since = 0.0
        self._told: set[str] = set()
        self._log = NcuLog(folder, say) if plan.tool == NCU else None
        self.devices: list[dict[str, object]] = []
        self._ending: EndProcesses | None = None

    @property
    def stopped(self) -> bool:
        """Whether the program was asked to end."""
        return self._ending is not None

    def end_all(self) -> None:
        """End the processes that outlive the one that was started, and say what ncu wrote last."""
        if self._log is not None:
            self._log.look()
        if self._ending is not None:
            self._ending.wait()

    def look(self, child: subprocess.Popen[bytes]) -> None:
        if time.monotonic() - self._looked < CHECK_INTERVAL_S:
            return
        self._looked = time.monotonic()
        if self._log is not None:
            self._log.look()
        if self._ending is not None:
            self._ending.insist()
            return
        every = read_parts(self._folder)
        parts = [part for part in every if part["state"] != NOTHING]
        if every:
            self._tell_progress(every[0])
        if parts and self._is_new("recording"):
            self.devices = gpu_states()
        done = [part for part in parts if part["state"] == RECORDED and not in_second_pass(part)]
        if done and len(done) == len(parts):
            if self._request.stop and any(map(self._steps_may_follow, done)):
                if self._is_new("waits for steps"):
                    self._say("recorded a window; steps are recorded instead if they come soon")
            elif self._is_new(f"recorded {done[0]['steps_recorded']}"):
                self._after_recording(child, done)

    def _tell_progress(self, part: dict[str, Any]) -> None:
        records, by_steps = part["state"] == RECORDING, part["steps_found_by"]
        if records and not by_steps and not self._plan.whole and self._is_new("window"):
            self._say(f"no step is known after {self._plan.after_s:g} s; recording {WINDOW_S:g} s of the program")
        if records and part["ended_by"] and self._plan.tool == TORCH and self._is_new(f"stopped {by_steps}"):
            self._say("the profiler has stopped; torch puts its events together")
        elif part["step_is"] and not part["steps_recorded"] and self._is_new(part["step_is"]):
            first = "running" if self._plan.tool == NCU else "timing"
            self._say(f"a step is {part['step_is']}; {first} some, then recording {self._plan.steps}")

    def _steps_may_follow(self, part: dict[str, Any]) -> bool:
        """Whether steps may replace the window that this process recorded: a slow start may have held them up."""
        if not may_be_replaced(part, self._plan):
            return False
        self._window_since = self._window_since or time.monotonic()
        waited_s = time.monotonic() - self._window_since
        announced = bool(part["steps_seen"] or part["optimizers"] or part["step_is"])
        return announced and waited_s < PATIENCE * self._plan.after_s * (PATIENCE if part["step_is"] else 1)

    def _is_new(self, subject: str) -> bool:
        """Whether nothing was said about it yet."""
        is_new = subject not in self._told
        self._told.add(subject)
        return is_new

    def _after_recording(self, child: subprocess.Popen[bytes], done: list[dict[str, Any]]) -> None:
        first = done[0]
        what = f"{first['steps_recorded']} steps ({first['steps_found_by']})" if first["steps_recorded"] else "a window"
        processes = len({part["pid"] for part in done})
        ranks = f" in each of {processes} processes" if processes > 1 else ""
        if self._request.stop and self._plan.tool == TORCH:
            self._say(f"recorded {what}{ranks}; ending the program as requested")
            # Each process gets its own signal: a shell does not pass one on.
            self._ending = EndProcesses([child.pid, *(part["pid"] for part in done)], self._say)
        elif first["ended_by"] in {"steps", *WINDOW_ENDS}:
            waits = "waiting for the program to end"
            if may_be_replaced(first, self._plan):
                waits = "steps are recorded instead if there are any before the program ends"
            self._say(f"recorded {what}{ranks}; {waits}, Ctrl-C ends it")


def may_be_replaced(part: dict[str, Any], plan: Plan) -> bool:
    """Whether this process recorded a window that steps replace if they come."""
    is_window = not part["steps_recorded"] and part["ended_by"] in WINDOW_ENDS
    return is_window and plan.tool == TORCH and not plan.whole


def say_on_stderr(text: str) -> None:
    """Progress messages."""
    print(f"warpline: {sanitise(text)}", file=sys.stderr, flush=True)
