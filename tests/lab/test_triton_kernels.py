"""The Triton kernels against their references, by Triton's interpreter on a CPU: shapes, strides, types, odd sizes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from paths import ROOT

pytestmark = pytest.mark.skipif(
    find_spec("triton") is None or find_spec("torch") is None,
    reason="Triton is not installed: pip install 'warpline[lab]'",
)
NAMES = ("scale-add", "silu-mul", "residual-rms-norm", "softmax", "bias-gelu")
CHECK = """
import json, sys, torch
from warpline.lab.kernels import check
check.SHAPES = ((1, 1), (1, 5000), (3, 127), (5, 1024))
kernel = next(one for one in check.KERNELS if one.name == sys.argv[1])
print(json.dumps(check.wrong_cases(torch, kernel, "cpu")))
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_computes_what_its_reference_does(name: str) -> None:
    """In a process of its own: the interpreter is chosen when Triton decorates a kernel."""
    environment = {
        **os.environ,
        "TRITON_INTERPRET": "1",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    done = subprocess.run(
        [sys.executable, "-c", CHECK, name], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == []
