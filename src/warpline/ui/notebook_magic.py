"""`%%warpline`: profile a notebook's cell, and show the diagnosis and the timeline below it.

    %load_ext warpline

    %%warpline --steps 4
    train()

The cell runs once, in the notebook's own namespace. The name `_warpline` then holds the diagnosis.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
import tempfile
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

from msgspec import Struct

from warpline.capture.profile import profile
from warpline.errors import WarplineError
from warpline.findings.diagnosis import Diagnosis
from warpline.front.functions import diagnose
from warpline.reports.page.document import page
from warpline.reports.sections import Report, Section, Text
from warpline.ui.cards import card_of

FRAME_PX = 640
FRAME_CLASS = "warpline-page"
# A frame takes light or dark from the element around it: JupyterLab and VS Code say which on the body alone.
THEMES = {
    "light": ('body[data-jp-theme-light="true"]', "body.vscode-light"),
    "dark": ('body[data-jp-theme-light="false"]', "body.vscode-dark"),
}
THEME_STYLE = "".join(
    f"{','.join(f'{body} .{FRAME_CLASS}' for body in bodies)}{{color-scheme:{theme}}}"
    for theme, bodies in THEMES.items()
)
UNTRUSTED = "The timeline is a page with a script: trust this notebook to see it, or run the cell again."
"""Inside the frame, where no browser shows it; an untrusted notebook has no frame, and keeps this text of it."""
MOST_FRAME_BYTES = 20_000_000
"""A larger page would make the notebook's file slow to open; it is left out, and the card says so."""
VARIABLE = "_warpline"
FEWER_SKIPPED = "add --skip 1, or omit --steps to record the whole cell"
HELP = """%%warpline [--steps N] [--skip N] [--stacks] [--no-timeline] [--keep FOLDER]

Profile this cell with torch.profiler, and show the diagnosis and the timeline.

  --steps N        record N steps of the loop in the cell, instead of all of it
  --skip N         run N steps before that without the profiler
  --stacks         record Python stacks, to name lines (slower)
  --no-timeline    show the diagnosis only
  --keep FOLDER    keep the recording in this folder"""


class Options(Struct, frozen=True):
    """What the line of the magic asks for."""

    steps: int | None = None
    skip: int | None = None
    stacks: bool = False
    timeline: bool = True
    keep: str | None = None

    @classmethod
    def parse(cls, line: str) -> Options:
        """Read the line."""
        chosen: dict[str, Any] = {}
        try:
            words = iter(shlex.split(line))
            for word in words:
                match word:
                    case "--stacks":
                        chosen["stacks"] = True
                    case "--no-timeline":
                        chosen["timeline"] = False
                    case "--steps" | "--skip":
                        chosen[word[2:]] = int(next(words))
                    case "--keep":
                        chosen["keep"] = next(words)
                    case _:
                        raise WarplineError("usage", f"%%warpline has no option {word!r}", "%%warpline? shows all")
        except (ValueError, StopIteration, RuntimeError) as error:
            raise WarplineError("usage", f"%%warpline cannot read {line!r}", "%%warpline? shows its options") from error
        return cls(**chosen)


class CellProfile(Struct, frozen=True):
    """What the cell's output shows: the diagnosis as a card, and the timeline in a frame of its own."""

    diagnosis: Diagnosis
    timeline: str | None
    """The page of `warpline report`; None if it was not asked for, or is too large."""
    note: str = ""

    def __repr__(self) -> str:
        return repr(self.diagnosis)

    def _repr_html_(self) -> str:
        shown = self.diagnosis._repr_html_()
        if self.note:
            shown += card_of(Report("timeline", (Section("note", "", (Text(self.note),)),)))
        if self.timeline is None:
            return shown
        # The page has its own policy and runs apart from the notebook: scripts, but no access to the notebook's origin.
        look = f"width:100%;height:{FRAME_PX}px;border:0;resize:vertical"
        frame = f'<iframe sandbox="allow-scripts" class="{FRAME_CLASS}" style="{look}" title="warpline timeline"'
        # The card says what the top of the page says, so the frame begins with the timeline.
        page = escape(self.timeline.replace("<html ", '<html class="embedded" ', 1))
        return f'{shown}<style>{THEME_STYLE}</style>{frame} srcdoc="{page}">{UNTRUSTED}</iframe>'


def load_ipython_extension(shell: Any) -> None:
    """Called by `%load_ext warpline`."""

    def run(line: str, cell: str) -> CellProfile | None:
        return profile_cell(shell, line, cell)

    run.__doc__ = HELP
    shell.register_magic_function(run, "cell", "warpline")


def profile_cell(shell: Any, line: str, cell: str) -> CellProfile | None:
    """Run a cell under the profiler; None if it failed or nothing was recorded, which has been said then."""
    try:
        options = Options.parse(line)
        with tempfile.TemporaryDirectory(prefix="warpline-") as scratch:
            now = datetime.now()  # the notebook's own clock
            found = _profiled(shell, cell, options, Path(options.keep or scratch) / f"{now:%Y%m%d-%H%M%S}")
    except WarplineError as error:
        print(f"warpline: {error.line()}", file=sys.stderr)
        return None
    if found is not None:
        shell.user_ns[VARIABLE] = found.diagnosis
    return found


def _profiled(shell: Any, cell: str, options: Options, folder: Path) -> CellProfile | None:
    recorder = profile("cell", steps=options.steps, skip=options.skip, stacks=options.stacks, output=folder)
    recorder.__enter__()
    try:
        result = shell.run_cell(cell)
    finally:
        _end(recorder, is_kept=options.keep is not None)
    if not result.success or recorder.trace is None:
        return None
    diagnosis = diagnose(recorder.trace)
    if not options.timeline:
        return CellProfile(diagnosis, None)
    document = page(diagnosis).html
    if len(document) <= MOST_FRAME_BYTES:
        return CellProfile(diagnosis, document)
    file = recorder.trace
    return CellProfile(
        diagnosis,
        None,
        f"The timeline has {len(document) / 1e6:.0f} MB, too many for a notebook: record fewer steps with --steps, or "
        f"keep the recording with --keep and run warpline report {file}.",
    )


def _end(recorder: profile, is_kept: bool) -> None:
    """End the recording; where it wrote a file is said only if the file is kept."""
    messages = io.StringIO()
    with contextlib.redirect_stderr(messages):
        recorder.__exit__(None, None, None)
    for line in messages.getvalue().splitlines():
        if is_kept or recorder.trace is None:
            print(_for_the_magic(line), file=sys.stderr)


def _for_the_magic(line: str) -> str:
    """The recorder's line, its hint in options of the magic instead of arguments of a function."""
    what, found, _ = line.rpartition("; try skip=")
    return f"{what}; {FEWER_SKIPPED}" if found else line.replace("omit steps=", "omit --steps")
