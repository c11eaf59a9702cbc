"""Messages and facts of an nsys export: the sentences that nsys itself writes stay, and all around them goes."""

from __future__ import annotations

import re
from collections.abc import Callable

from warpline.scrub.names import NameScrubber
from warpline.secrets import REMOVED
from warpline.sources.nsys.program import ending_of

MAX_MESSAGE_CHARS = 2000
_WHAT = (
    "CUDA|CUPTI|NVTX|OS runtime libraries|OS runtime|OSRT|OpenGL|Vulkan|OpenACC|OpenMP|cuBLAS|cuDNN|NCCL|MPI|UCX"
    "|GPU Metrics|GPU context switch|CPU"
)
_SENTENCE = re.compile(
    r"Installed CUDA driver version \([\d.]{1,12}\) is not supported|driver version [\d.]{1,12}(?![\d.])"
    r"|CUPTI buffers:\s*\d{1,9} of \d{1,9}"
    rf"|Number of (?:{_WHAT}) events(?: collected| produced)?:\s*\d{{1,9}}"
    r"|Profiling (?:started|stopped) due to (?:cu(?:da)?Profiler(?:Start|Stop|Api)?|NVTX|nvtx|hotkey|signal|timeout)\b"
    rf"|No (?:{_WHAT}) events collected|Not all (?:{_WHAT}) events might have been collected"
    rf"|(?:{_WHAT}) profiling might have not been started correctly|CUPTI_ERROR_[A-Z_]{{1,40}}"
    r"|(?:CUPTI|CUDA (?:injection|profiling|tracing))\b|\b(?:failed|failure|could not|unable|error)\b"
    r"|paranoid|CPU kernel IP|IP samples|Scheduling information is absent|context switch|CPU (?:sampling|scheduling)"
    r"|backtrace|Unified Memory cannot be traced on devices that don't support peer-to-peer transfers"
    r"|OpenGL|Vulkan|ftrace|perf_event|non-?monotonic|out[- ]of[- ]order",
    re.IGNORECASE,
)
"""What the reader of nsys's diagnostics looks for; variable in it are numbers alone."""
_ERROR = re.compile(
    r"CUDA out of memory|CUDA error: (?:out of memory|an illegal memory access was encountered|invalid device function"
    r"|device-side assert triggered|invalid argument|unspecified launch failure"
    r"|no kernel image is available for execution on the device)"
    r"|CUDA error|NCCL error|Segmentation fault|Bus error|Killed|Aborted",
)
"""Errors of CUDA and of the system, in their own words."""

_METRIC = re.compile(r"[A-Za-z /]{1,60}(?: \[[A-Za-z %/]{1,30}\])?")
METRIC_WORDS = frozenset(
    re.findall(
        r"\w+",
        "active and async avg bandwidth bus clock compute core cycle cycles data dram draw engine flight fp frequency "
        "geometry gpc gr hit in internal issue l link mhz nvdec nvenc nvlink pcie per pipe pixel rate read received "
        "request requests response rx sector sm sms sync sys tensor tess throughput transmitted tx unallocated unit "
        "user vertex warps write",
    )
)
"""Of the names that nsys gives the metrics it samples."""


def message(text: str) -> str:
    """A message of the profiler: its known sentences, without anything between them.

    >>> message("CUPTI buffers: 3 of 5, saved to /home/user/run.nsys-rep")
    'CUPTI buffers: 3 of 5. (removed)'
    """
    text = text[:MAX_MESSAGE_CHARS]
    found = [match[0] for match in _SENTENCE.finditer(text)]
    rest = _SENTENCE.sub("", text).strip(" .,;:\n")
    return ". ".join([*found, *([REMOVED] if rest or not found else [])])


def ending(text: str) -> str:
    """The end of a program's error output, as far as it says how the program failed."""
    end = ending_of(text)
    if not end.failed:
        return REMOVED
    known = _ERROR.search(end.quote)
    kind = "KeyboardInterrupt" if end.interrupted else "RuntimeError"
    return f"{kind}: {known[0]}: {REMOVED}" if known else f"{kind}: {REMOVED}"


def metric(text: str) -> str:
    """The name of a GPU metric, which has no other words than the hardware's.

    >>> metric("SM Issue [Throughput %]")
    'SM Issue [Throughput %]'
    """
    is_name = bool(_METRIC.fullmatch(text)) and METRIC_WORDS.issuperset(re.findall(r"[a-z]+", text.lower()))
    return text if is_name else REMOVED


_SYSTEM = (
    r"(?:Ubuntu|Debian GNU/Linux|Red Hat Enterprise Linux|CentOS(?: Linux| Stream)?|Rocky Linux|AlmaLinux"
    r"|Fedora(?: Linux)?|SUSE Linux Enterprise Server|openSUSE Leap|Amazon Linux|Oracle Linux(?: Server)?"
    r"|Arch Linux|Linux|Windows)"
    r"(?: \d{1,4}(?:\.\d{1,3}){0,2}(?: LTS\b)?)?"
)
"""Operating systems, with their versions."""


def facts(names: NameScrubber) -> dict[str, Callable[[str], str | None]]:
    """The facts that may stay, by name: how the value is cleaned, or None where it is dropped."""
    return {
        "EXPORT_PRODUCT_NAME": _leading("NVIDIA Nsight Systems"),
        "EXPORT_PRODUCT_VERSION": _leading(r"\d{4}\.\d{1,2}\.\d{1,3}(?:\.\d{1,4})?"),
        "EXPORT_SCHEMA_VERSION": _leading(r"\d{1,4}\.\d{1,4}(?:\.\d{1,4})?"),
        "EXPORT_SCHEMA_VERSION_MAJOR": _leading(r"\d{1,4}\Z"),
        "EXPORT_SCHEMA_VERSION_MINOR": _leading(r"\d{1,4}\Z"),
        "EXPORT_SCHEMA_VERSION_MICRO": _leading(r"\d{1,4}\Z"),
        "CAPTURE_EVENT_TYPE": _leading(r"(?:Cuda|CUDA|Nvtx|NVTX|Hotkey|None|Immediate|cudaProfilerApi)\b"),
        "RUN_DURATION_MS": _leading(r"\d{1,9}\Z"),
        "PROCESS_0:COMMAND": names.process,
        "PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE": _leading(r"(?i:graph|node)\b"),
        "PROCESS_0:COLLECT_GPU_MEMORY_USAGE": _leading(r"(?i:true|false|yes|no|[01])\b"),
        "PROCESS_0:COLLECT_UVM_CPU_PAGE_FAULTS": _leading(r"(?i:true|false|yes|no|[01])\b"),
        "PROCESS_0:COLLECT_UVM_GPU_PAGE_FAULTS": _leading(r"(?i:true|false|yes|no|[01])\b"),
        "NvDriverVersion": _leading(r"\d{3}\.\d{2,4}(?:\.\d{1,2})?\Z"),
        "CudaDriverVersion": _leading(r"(?:[5-9]|1\d)0\d0\Z"),  # 1000 times the major version and 10 times the minor
        "OsDescription": _leading(_SYSTEM),
        "SoftwareReleaseVersion": _kernel_release,
    }


def _leading(pattern: str) -> Callable[[str], str | None]:
    compiled = re.compile(pattern)

    def cleaned(text: str) -> str | None:
        found = compiled.match(text)
        return found[0] if found else None

    return cleaned


def _kernel_release(text: str) -> str | None:
    """The release of the operating system's kernel; its suffix only where it says that the system is WSL."""
    found = re.match(r"[2-9]\.\d{1,2}(?:\.\d{1,4})?(?!\d)", text)  # an address has larger numbers, or four
    is_wsl = "microsoft" in text.lower()
    if found is None or (text[found.end() :].startswith(".") and not is_wsl):
        return None
    if is_wsl:
        return f"{found[0]}-microsoft-standard-WSL2"
    return found[0] + ("-generic" if text[found.end() :] else "")
