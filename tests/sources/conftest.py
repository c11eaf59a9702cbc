"""The compiled scanner, built from the sources at hand so that no stale library is tested."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from scan_checks import SOURCE, Build

from warpline.sources.kineto import native

FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]


@pytest.fixture(scope="session")
def build_scanner(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles scan.c with more flags; skips the test where there is no compiler."""

    def build(*flags: str, source: Path = SOURCE) -> Path:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            pytest.skip("there is no C compiler, so the compiled scanner cannot be tested")
        library = tmp_path_factory.mktemp("scanner") / "_scan.so"
        subprocess.run([compiler, *FLAGS, *flags, str(source), "-o", str(library)], check=True)
        return library

    return build


@pytest.fixture(scope="module")
def compiled(build_scanner: Build) -> Iterator[None]:
    """The compiled scanner is present and current in this module."""
    library = build_scanner("-O2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "library_of", lambda _source: library)
        yield
