"""Builds the optional compiled parts into the wheel: small shared libraries, no Python headers; and packs its trace.

Without a C compiler the install still succeeds, and plain Python does the same more slowly.
"""

from __future__ import annotations

import lzma
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from runpy import run_path
from tempfile import mkdtemp
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

try:
    import deflate
except ImportError:
    deflate = None

LIBRARIES = {
    Path("src/warpline/sources/kineto/scan.c"): "_scan.so",
    Path("src/warpline/trace/nest.c"): "_nest.so",
    Path("src/warpline/replay/simulate.c"): "_simulate.so",
}
FLAGS = ["-O3", "-s", "-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-asynchronous-unwind-tables"]
FLAGS += ["-nostartfiles"]  # none of them has anything to do when it is loaded


class HardDeflate:
    """What ZipFile asks of a compressor, done by libdeflate at its highest level."""

    def __init__(self) -> None:
        self._content = b""

    def compress(self, content: bytes) -> bytes:
        """Takes a part; all comes out at the end."""
        self._content += content
        return b""

    def flush(self) -> bytes:
        """The whole, compressed."""
        return bytes(deflate.deflate_compress(self._content, 12))


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        if version == "standard":
            made = Path(mkdtemp(prefix="warpline-build-"))
            self._pack_trace(build_data, made)
            self._fold_words(build_data, made)
        if os.environ.get("WARPLINE_NO_NATIVE"):
            return
        for source, name in LIBRARIES.items():
            if self._compile(source, source.with_name(name)):
                build_data["pure_python"] = False
                platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
                build_data["tag"] = f"py3-none-{platform}"
                build_data["artifacts"].append(source.with_name(name).as_posix())

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Compresses a finished wheel again, harder: with libdeflate where it is at hand, or else with zlib."""
        if self.target_name != "wheel":
            return
        with ZipFile(artifact_path) as wheel:
            files = [(file, wheel.read(file)) for file in wheel.infolist()]
        with ZipFile(artifact_path, "w", ZIP_DEFLATED, compresslevel=9) as wheel:
            for file, content in files:
                with wheel.open(file, "w") as target:
                    if deflate is not None:
                        target._compressor = HardDeflate()  # type: ignore[attr-defined]  # a file of ZipFile has one
                    target.write(content)

    def _pack_trace(self, build_data: dict[str, Any], folder: Path) -> None:
        """The bundled trace as `bundled.py` packs it, in the place of the trace itself."""
        bundled = run_path(str(Path(self.root) / "src/warpline/bundled.py"))
        trace = lzma.decompress((bundled["HERE"] / bundled["TRACE"]).read_bytes()).decode()
        made = folder / bundled["PACKED"]
        made.write_bytes(bundled["packed"](bundled["in_order"](trace)))
        build_data["force_include"][str(made)] = f"warpline/data/{made.name}"

    def _fold_words(self, build_data: dict[str, Any], folder: Path) -> None:
        """The words that `warpline scrub` lets pass as `vocabulary.py` folds them."""
        source = Path(self.root) / "src/warpline/scrub/vocabulary.py"
        words, rest = source.with_name("known_words.txt").read_text("ascii").split("\n\n", 1)
        made = folder / "known_words.txt"
        made.write_text(run_path(str(source))["folded"](words.split()) + "\n\n" + rest, "ascii")
        build_data["force_include"][str(made)] = f"warpline/scrub/{made.name}"

    def _compile(self, source: Path, library: Path) -> bool:
        compiler = shlex.split(os.environ.get("CC", "")) or [shutil.which("cc") or shutil.which("gcc") or "cc"]
        target = Path(self.root) / library
        target.unlink(missing_ok=True)  # one from older sources must not stay when this build fails
        try:
            subprocess.run(
                [*compiler, *FLAGS, str(Path(self.root) / source), "-o", str(target)], check=True, capture_output=True
            )
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"warpline: {source.name} is not compiled ({error}); Python will do its work", file=sys.stderr)
            return False
        return True
