"""Builds the optional compiled scanner into the wheel: one shared library, no Python headers.

Without a C compiler the install still succeeds, and the Python reader takes over.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/warpline/sources/kineto")
FLAGS = ["-O3", "-std=c11", "-shared", "-fPIC", "-fvisibility=hidden"]


class ScannerBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or os.environ.get("WARPLINE_NO_NATIVE"):
            return
        compiler = shlex.split(os.environ.get("CC", "")) or [shutil.which("cc") or shutil.which("gcc") or "cc"]
        library = Path(self.root) / FOLDER / "_scan.so"
        source = Path(self.root) / FOLDER / "scan.c"
        library.unlink(missing_ok=True)  # one from older sources must not stay when this build fails
        try:
            subprocess.run([*compiler, *FLAGS, str(source), "-o", str(library)], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"warpline: no compiled scanner ({error}); the Python reader will be used", file=sys.stderr)
            return
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["artifacts"].append(str(FOLDER / "_scan.so"))
