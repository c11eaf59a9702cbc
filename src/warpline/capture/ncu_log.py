"""ncu's own messages while it runs: progress for the user, and why there is no report."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from warpline.capture.tool_commands import LOG
from warpline.errors import WarplineError

COUNTERS_FORBIDDEN, NO_KERNELS = "counters-forbidden", "no-kernels-profiled"
_PROFILED = "==PROF== Profiling "
_PASSES = re.compile(r"(?<!\d)(\d+) pass")
_COUNT = re.compile(r"(?: - \d{1,9})?(?: \(\d{1,9}/\d{1,9}\))?$")
"""Behind a kernel's name: which it is, and of how many."""
_ERROR = re.compile(r"==ERROR== (.+)")
_SHOWN_NAME = 60
_HINT = (
    "as root: NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module; in a container: docker run "
    "--cap-add=SYS_ADMIN; many clouds never allow it"
)


class NcuLog:
    """Follows the log file, and says which kernel was profiled."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._path, self._say = folder / LOG, say
        self._read = 0

    def look(self) -> None:
        """Say what came since the last look."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                text = file.read()
        except OSError:  # ncu has not begun
            return
        whole = text.rpartition(b"\n")[0]
        self._read += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            kernel, _, progress = line.removeprefix(_PROFILED).rpartition(": ")
            passes = _PASSES.search(progress)
            if line.startswith(_PROFILED) and kernel and passes is not None:
                name = _COUNT.sub("", kernel).strip('"')
                self._say(f"profiled {name[:_SHOWN_NAME]} in {passes[1]} passes")


def ncu_failure(folder: Path) -> WarplineError | None:
    """Why ncu wrote no report, by its log; None where the log does not tell."""
    try:
        text = (folder / LOG).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    if "ERR_NVGPUCTRPERM" in text:
        message = "the driver lets only administrators read performance counters (ERR_NVGPUCTRPERM)"
        return WarplineError(COUNTERS_FORBIDDEN, message, _HINT)
    if "No kernels were profiled" in text:
        message = "ncu profiled no kernel: none with that name was launched, or fewer than the launches to skip"
        return WarplineError(NO_KERNELS, message, "is it the program that the timeline recorded?")
    errors = _ERROR.findall(text)
    return WarplineError("ncu-failed", f"ncu said: {errors[-1].strip()[:300]}", "") if errors else None
