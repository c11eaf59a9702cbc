"""The environment that a run's numbers depend on: versions, the device and its state, the revision, some variables.

No secrets are stored: variables are named only if they affect speed, and their values are stored only if they are known
to be harmless.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

TIMEOUT_SECONDS = 10
SET = "(set)"
AFFECTING_SPEED = re.compile(
    r"(?:CUDA|NVIDIA|NCCL|TORCH|PYTORCH|TRITON|CUBLAS|CUDNN|KINETO|NVTE|OMP|MKL|KMP|OPENBLAS|GOMP|MALLOC|ACCELERATE|XLA|VLLM)_"
    r"|(?:RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|LD_PRELOAD|TOKENIZERS_PARALLELISM|TEARDOWN_CUPTI)$"
)
"""Names of variables that affect the speed of a program."""
HARMLESS = re.compile(
    r"CUDA_(?:VISIBLE_DEVICES|LAUNCH_BLOCKING|DEVICE_MAX_CONNECTIONS|DEVICE_ORDER|MODULE_LOADING)"
    r"|NVIDIA_TF32_OVERRIDE|NCCL_(?:DEBUG|P2P_DISABLE|IB_DISABLE|ALGO|PROTO|MAX_NCHANNELS|NVLS_ENABLE)"
    r"|TORCHDYNAMO_DISABLE|TORCH_(?:COMPILE_DISABLE|NCCL_AVOID_RECORD_STREAMS|ALLOW_TF32_CUBLAS_OVERRIDE)"
    r"|PYTORCH_(?:CUDA_ALLOC_CONF|ALLOC_CONF|NO_CUDA_MEMORY_CACHING)|CUBLAS_WORKSPACE_CONFIG|KINETO_LOG_LEVEL"
    r"|(?:OMP|MKL|OPENBLAS)_NUM_THREADS|OMP_PROC_BIND|(?:LOCAL_)?RANK|(?:LOCAL_)?WORLD_SIZE"
    r"|TOKENIZERS_PARALLELISM|TEARDOWN_CUPTI"
)
"""Those of them whose values are numbers and switches."""
_PLAIN_VALUE = re.compile(r"[\w.,:+ -]{0,64}")
_SECRET = re.compile(
    r"(?i)token(?!s\b|iz)|secret|passw|passphrase|credential|auth(?!or\b)|cookie"
    r"|(?:api|access|private|account)[_-]?key|(?:^|[\W_])(?:key|pw|pwd|pat)$"
)
"""Names whose values must not be in a manifest."""
_KNOWN_SECRET = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_|gh[a-z]_|github_pat_|glpat-|sk-|nvapi-|xox[a-z]-|A[KS]IA|eyJ|(?i:bearer) )[\w.~+/=-]{12,}"
    r"|(?<=://)[^/@\s]+(?=@)"
)
"""Keys by their published prefixes, and user and password in a URL."""
_TOLD_SECRET = re.compile(r"(?i)((?:token|secret|passw\w{0,64}|credentials?|key)[\"']?\s*[:=]\s*[\"']?)[^\s\"',;}]+")
"""A secret within a word, after its name."""
GPU_FACTS = {
    "index": "index",
    "name": "name",
    "driver": "driver_version",
    "sm_clock_mhz": "clocks.sm",
    "sm_clock_max_mhz": "clocks.max.sm",
    "memory_clock_mhz": "clocks.mem",
    "power_w": "power.draw",
    "power_limit_w": "power.limit",
    "temperature_c": "temperature.gpu",
    "utilization_pct": "utilization.gpu",
    "persistence": "persistence_mode",
    "throttling": "clocks_throttle_reasons.active",
}
"""Our names for nvidia-smi's fields."""


def mattering_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that affect speed: the value if it is known to be harmless, otherwise only that it is set."""
    return {
        name: value if HARMLESS.fullmatch(name) and _PLAIN_VALUE.fullmatch(value) else SET
        for name, value in sorted(environment.items())
        if AFFECTING_SPEED.match(name) and not _SECRET.search(name)
    }


def scrubbed_command(command: Sequence[str]) -> list[str]:
    """The command without secrets and without the path of the home folder."""
    home = str(Path.home())
    kept: list[str] = []
    hide_next = False
    for word in command:
        name, equals, _ = word.partition("=")
        secret = bool(_SECRET.search(name)) and name.startswith("-")
        bare = f"{name}=…" if equals and secret else _TOLD_SECRET.sub(r"\1…", _KNOWN_SECRET.sub("…", word))
        kept.append("…" if hide_next else bare.replace(home, "~") if len(home) > 1 else bare)
        hide_next = secret and not equals
    return kept


def git_state() -> dict[str, object] | None:
    """The git revision and whether files have changed since; None outside a repository."""
    revision = _ask("git", "rev-parse", "HEAD")
    if not revision:
        return None
    changed = _ask("git", "status", "--porcelain", "--untracked-files=no")
    return {"revision": revision, "dirty": None if changed is None else bool(changed)}


def gpu_states() -> list[dict[str, object]]:
    """Name, driver, clocks, power and temperature of every GPU, from nvidia-smi; empty without one."""
    said = _ask("nvidia-smi", f"--query-gpu={','.join(GPU_FACTS.values())}", "--format=csv,noheader,nounits")
    states = []
    for line in (said or "").splitlines():
        values = [value.strip() for value in line.split(",")]
        if len(values) == len(GPU_FACTS):
            states.append({name: _value(value) for name, value in zip(GPU_FACTS, values)})  # noqa: B905 - Python 3.9
    return states


def _value(text: str) -> object:
    if text.startswith("[") or text in {"N/A", ""}:
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _ask(*command: str) -> str | None:
    """A program's output; None if it is missing or fails."""
    if shutil.which(command[0]) is None:
        return None
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
