"""Compiles the small C libraries into the wheel; they need no Python headers.

Without a C compiler the install still succeeds, and plain Python does the same more slowly.
"""

from __future__ import annotations

import os
import runpy
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = ["src/warpline/sources/kineto/scan.c", "src/warpline/trace/nest.c", "src/warpline/replay/simulate.c"]
FLAGS = ["-O3", "-shared", "-fPIC", "-std=c11"]


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or os.environ.get("WARPLINE_NO_NATIVE"):
            return
        native = runpy.run_path(str(Path(self.root, "src/warpline/native.py")))
        for source in (Path(self.root, name) for name in SOURCES):
            for built in native["libraries_of"](source):
                built.unlink()  # one from older sources must not stay when this build fails
            library = native["library_of"](source)
            if self._compile(source, library):
                build_data["pure_python"] = False
                platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
                build_data["tag"] = f"py3-none-{platform}"
                build_data["artifacts"].append(library.relative_to(self.root).as_posix())

    def _compile(self, source: Path, library: Path) -> bool:
        compiler = shlex.split(os.environ.get("CC", "cc"))
        try:
            subprocess.run([*compiler, *FLAGS, str(source), "-o", str(library)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"warpline: {source.name} is not compiled ({error}); Python will do its work", file=sys.stderr)
            return False
        return True
