"""Compiles the small C libraries into the wheel; they need no Python headers.

Without a C compiler the install still succeeds, and plain Python does the same more slowly.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARIES = {
    Path("src/warpline/sources/kineto/scan.c"): "_scan.so",
    Path("src/warpline/trace/nest.c"): "_nest.so",
    Path("src/warpline/replay/simulate.c"): "_simulate.so",
}
FLAGS = ["-O3", "-shared", "-fPIC", "-std=c11"]


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or os.environ.get("WARPLINE_NO_NATIVE"):
            return
        for source, name in LIBRARIES.items():
            library = source.with_name(name)
            if self._compile(source, library):
                build_data["pure_python"] = False
                platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
                build_data["tag"] = f"py3-none-{platform}"
                build_data["artifacts"].append(library.as_posix())

    def _compile(self, source: Path, library: Path) -> bool:
        compiler = shlex.split(os.environ.get("CC", "cc"))
        target = Path(self.root, library)
        target.unlink(missing_ok=True)  # one from older sources must not stay when this build fails
        try:
            subprocess.run([*compiler, *FLAGS, str(Path(self.root, source)), "-o", str(target)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"warpline: {source.name} is not compiled ({error}); Python will do its work", file=sys.stderr)
            return False
        return True
