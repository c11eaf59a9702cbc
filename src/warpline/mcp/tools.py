"""The six tools: their arguments, and the command that answers each."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Struct

from warpline.errors import UsageError, WarplineError
from warpline.mcp.command import CommandRunner, ProcessBounds, Tell
from warpline.mcp.folders import Folders
from warpline.mcp.pages import encoded, page
from warpline.trace.open import profiles_in

QUERY = ProcessBounds(seconds=30.0, memory_bytes=1 << 30)
MAX_ROWS = 1000
MAX_TRY_S = 3600
AT_ONCE = max(2, os.cpu_count() or 2)
REMEMBERED = 16
"""Documents whose other pages are at hand."""

Recording = Annotated[str, Meta(description="A trace, or a folder with the ranks of one job.")]
Steps = Annotated[str, Meta(description="Only these steps, START:STOP from 0, for example 3:6.")]
Fixes = Annotated[list[str], Meta(description="Names of fixes, as `fix` of a finding.")]


class Tool(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The arguments that every tool takes."""

    about: ClassVar[str]
    first: ClassVar[tuple[str, ...]] = ()
    """The parts of the answer that come first."""
    at: Annotated[str, Meta(description="Show only the part of this id, for example /kernels.")] = ""
    cursor: Annotated[str, Meta(description="The cursor of a page shows the next; repeat the other arguments.")] = ""

    @property
    def bounds(self) -> ProcessBounds:
        """What the command may take."""
        return ProcessBounds()

    def recordings(self) -> list[str]:
        """The files and folders that the arguments name. No other argument is looked up on the machine."""
        return []

    def words(self, paths: Sequence[Path]) -> list[str]:
        """The command; the paths are where the recordings lie."""
        raise NotImplementedError


class Diagnose(Tool, frozen=True, kw_only=True):
    """Arguments of `diagnose`."""

    about = (
        "Why the GPU is slow in a recording: the verdict, the limits of each resource, the plan of fixes and the"
        " findings with their gains as low, expected and high. Of a folder of ranks: who is waited for, and why."
    )
    first = ("verdict", "trace", "replay", "plan", "findings", "limits", "account", "job")
    path: Recording
    steps: Steps = ""
    job: Annotated[str, Meta(description="Of several jobs in a folder of ranks, this one; default: the newest.")] = ""
    rank: Annotated[int, Meta(ge=0, description="Only this rank of a job.")] | None = None

    def recordings(self) -> list[str]:
        """The trace or folder."""
        return [self.path]

    def words(self, paths: Sequence[Path]) -> list[str]:
        """The command."""
        rank = "" if self.rank is None else str(self.rank)
        chosen = [*_option("--steps", self.steps), *_option("--job", self.job), *_option("--rank", rank)]
        return ["diagnose", str(paths[0]), "--json", *chosen]


class WhatIfTool(Tool, frozen=True, kw_only=True):
    """Arguments of `whatif`."""

    about = "Predicts the step time with fixes, applied together; without fixes, with each known fix alone."
    first = ("gain", "new_step_ns", "old_step_ns")
    path: Recording
    fixes: Fixes = []
    steps: Steps = ""

    def recordings(self) -> list[str]:
        """The trace or folder."""
        return [self.path]

    def words(self, paths: Sequence[Path]) -> list[str]:
        """The command."""
        fixes = [word for fix in self.fixes for word in _option("--fix", fix)]
        return ["whatif", str(paths[0]), "--json", *fixes, *_option("--steps", self.steps)]


class Compare(Tool, frozen=True, kw_only=True):
    """Arguments of `compare`."""

    about = (
        "Whether a program became faster: recordings before a change and after it. The verdict is faster, slower, same,"
        " inconclusive or not_comparable; several recordings of each side narrow the range."
    )
    first = ("verdict", "reasons", "a", "b", "change", "outcome", "unexplained_ns", "parts")
    before: Annotated[list[str], Meta(min_length=1, description="Recordings before the change.")]
    after: Annotated[list[str], Meta(min_length=1, description="Recordings after it.")]

    def recordings(self) -> list[str]:
        """Those of both sides."""
        return [*self.before, *self.after]

    def words(self, paths: Sequence[Path]) -> list[str]:
        """The command; it records nothing."""
        sides = ["--before"] * len(self.before) + ["--after"] * len(self.after)
        chosen = [word for side, path in zip(sides, paths, strict=True) for word in _option(side, str(path))]
        return ["compare", "--json", "--no-history", *chosen]


class Query(Tool, frozen=True, kw_only=True):
    """Arguments of `query`."""

    about = (
        "Runs one SELECT (polars' SQL) on the tables of a trace: gpu, api, ops, ranges, python, steps and others;"
        f" without sql, lists tables and columns. At most {MAX_ROWS} rows, {QUERY.seconds:.0f} seconds and 1 GiB."
    )
    path: Annotated[str, Meta(description="A trace.")]
    sql: Annotated[str, Meta(description="The SELECT.")] = ""

    @property
    def bounds(self) -> ProcessBounds:
        """A list of tables is no query: it opens the trace, which may take more."""
        return QUERY if self.sql else ProcessBounds()

    def recordings(self) -> list[str]:
        """The trace."""
        return [self.path]

    def words(self, paths: Sequence[Path]) -> list[str]:
        """The command."""
        query = ["--max-rows", str(MAX_ROWS), "--", self.sql] if self.sql else []
        return ["sql", str(paths[0]), "--json", *query]


class Explain(Tool, frozen=True, kw_only=True):
    """Arguments of `explain`."""

    about = "What names mean: a kernel, op, CUDA call, metric of Nsight Compute, finding, fix, cause or health code."
    names: Annotated[list[str], Meta(min_length=1, max_length=20, description="Names as an answer shows them.")]

    def words(self, paths: Sequence[Path]) -> list[str]:
        """The command."""
        return ["explain", "--json", "--", *self.names]


class Try(Tool, frozen=True, kw_only=True):
    """Arguments of `try`."""

    about = (
        "Runs a Python program several times, with each fix applied to it from outside, and measures the step of each"
        " against the unchanged program; checks that the results stay the same. No file of the program is changed."
    )
    first = ("baseline", "best", "tries")
    program: Annotated[list[str], Meta(min_length=1, description="A Python file below the folders, and its arguments.")]
    fixes: Fixes = []
    seconds: Annotated[int, Meta(ge=10, le=MAX_TRY_S, description="How long to measure.")] = 300

    @property
    def bounds(self) -> ProcessBounds:
        """Twice the time of measuring: the program also starts."""
        return ProcessBounds(seconds=2.0 * self.seconds + 120.0)

    def recordings(self) -> list[str]:
        """The program: it records anew."""
        return self.program[:1]

    def words(self, paths: Sequence[Path]) -> list[str]:
        """The command."""
        program = paths[0]
        if program.suffix != ".py" or not program.is_file():
            raise UsageError("not-a-program", f"{self.program[0]} is not a Python file", "name a file that ends in .py")
        fixes = [word for fix in self.fixes for word in _option("--fix", fix)]
        return ["try", "--json", "--budget", f"{self.seconds}s", *fixes, "--", str(program), *self.program[1:]]


TOOLS: dict[str, type[Tool]] = {
    "diagnose": Diagnose,
    "whatif": WhatIfTool,
    "compare": Compare,
    "query": Query,
    "explain": Explain,
    "try": Try,
}


def _option(name: str, value: str) -> list[str]:
    """An option with its value in one word, so that a value is never taken for an option."""
    return [f"{name}={value}"] if value else []


def schema_of(tool: type[Tool]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    _, components = msgspec.json.schema_components([tool])
    return components[tool.__name__]


class Answers:
    """What the tools answer: a page of the document that their command prints."""

    def __init__(self, folders: Folders, allow_run: bool) -> None:
        self.folders = folders
        self.commands = CommandRunner(folders.roots[0], AT_ONCE)
        self.tools = {name: tool for name, tool in TOOLS.items() if name != "try" or allow_run}
        self._documents: OrderedDict[tuple[str, ...], Any] = OrderedDict()

    async def text(self, name: str, arguments: dict[str, Any], tell: Tell) -> tuple[str, bool]:
        """The answer as JSON, and whether it is one: else it says why there is none."""
        try:
            return encoded(await self._page(name, arguments, tell)), True
        except WarplineError as error:
            reason = {"code": error.code, "message": error.message[:1000], "hint": error.hint[:1000]}
            return encoded({"error": reason}), False

    async def _page(self, name: str, arguments: dict[str, Any], tell: Tell) -> dict[str, Any]:
        kind = self.tools.get(name)
        if kind is None:
            hint = "start the server with --allow-run" if name in TOOLS else f"the tools are {', '.join(self.tools)}"
            raise UsageError("no-such-tool", f"there is no tool {name!r}", hint)
        try:
            encoded(arguments)
            tool = msgspec.convert(arguments, kind)
        except UnicodeEncodeError as error:
            raise UsageError("bad-arguments", "an argument has half a surrogate pair", "send text") from error
        except msgspec.ValidationError as error:
            raise UsageError("bad-arguments", str(error), f"see the input schema of {name}") from error
        document = await self._document(tool, tell)
        return page(document, first=tool.first, at=tool.at, cursor=tool.cursor)

    async def _document(self, tool: Tool, tell: Tell) -> Any:
        paths = [self.folders.readable(name) for name in tool.recordings()]
        words = tool.words(paths)
        key = (*words, *_states(paths))
        is_new = key not in self._documents or (isinstance(tool, Try) and not (tool.at or tool.cursor))
        if is_new and isinstance(tool, Query) and tool.sql:
            # Reading a trace for the first time takes memory, which is not the query's.
            await self._document(Query(path=tool.path), tell)
        if is_new:
            self._documents[key] = await self.commands.answer(words, tool.bounds, tell)
        self._documents.move_to_end(key)
        while len(self._documents) > REMEMBERED:
            self._documents.popitem(last=False)
        return self._documents[key]


def _states(paths: Sequence[Path]) -> list[str]:
    """Size and time of change of every recording that a command names, and of those in a folder."""
    found = []
    for path in paths:
        for file in profiles_in(path) if path.is_dir() else [path]:
            with contextlib.suppress(FileNotFoundError):  # a recording that is just replaced; its reader says so
                state = file.stat()
                found.append(f"{file} {state.st_size} {state.st_mtime_ns}")
    return found
