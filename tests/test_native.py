"""Which compiled library is loaded."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from warpline.native import library_of, load


def test_a_library_of_older_sources_is_not_loaded_and_that_is_said(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source, header = tmp_path / "sum.c", tmp_path / "sum.h"
    source.write_text('#include "sum.h"\nint sum(void) { return ONE + 1; }\n')
    header.write_text("#define ONE 1\n")
    subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", str(library_of(source))], check=True)
    library = load(library_of(source), source)
    assert library is not None
    assert library.sum() == 2
    header.write_text("#define ONE 2\n")
    library_of.cache_clear()  # as in the next process
    with pytest.warns(UserWarning, match=r"sum\.c has changed"):
        assert load(library_of(source), source) is None
