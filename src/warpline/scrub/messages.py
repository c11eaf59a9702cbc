"""Sentences and facts of an nsys export: known words and short numbers pass, all else is removed."""

from __future__ import annotations

import re
from collections.abc import Callable

from warpline.scrub.names import NameScrubber, is_known_text
from warpline.secrets import REMOVED

MAX_MESSAGE_CHARS = 2000
MAX_CHAIN_DIGITS, MAX_CHAIN_NUMBERS = 8, 3
_CHAIN = re.compile(r"(?<!\d)\d++(?:[ .:/-]\d++)+")
_TOKEN = re.compile(r"\S+")
_OPENING, _CLOSING = "\"'([{<", "\"')]}>.,:;!?"
_WORDS = re.compile(r"[A-Za-z_][\w-]{0,60}(?:'[a-z]{1,2})?|[A-Za-z_]\w{0,40}\(\)")
_NUMBER = re.compile(
    r"-?\d{1,6}|\d{1,4}\.\d{1,4}(?:\.\d{1,4})?|\d{1,3}(?:,\d{3}){1,2}|\d{1,4}(?:ms|s|us|ns|%|x|MB|GB|KB|MiB)"
)
_MARKS = re.compile(r"[-=*+_/|.:~]{1,3}")

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
    """A message of the profiler, without paths, names and long numbers.

    >>> message("CUPTI buffers: 3 of 5, saved to /home/user/run.nsys-rep")
    'CUPTI buffers: 3 of 5, saved to (removed)'
    """
    return _TOKEN.sub(_token, _CHAIN.sub(_chain, text[:MAX_MESSAGE_CHARS]))


def metric(text: str) -> str:
    """The name of a GPU metric, which has no other words than the hardware's; else a message.

    >>> metric("SM Issue [Throughput %]")
    'SM Issue [Throughput %]'
    """
    is_name = bool(_METRIC.fullmatch(text)) and METRIC_WORDS.issuperset(re.findall(r"[a-z]+", text.lower()))
    return text if is_name else message(text)


def _chain(found: re.Match[str]) -> str:
    """Numbers that follow each other: a version or a share stays, an address or a card does not."""
    long = sum(map(str.isdigit, found[0])) > MAX_CHAIN_DIGITS or len(re.findall(r"\d+", found[0])) > MAX_CHAIN_NUMBERS
    return REMOVED if long else found[0]


def _token(found: re.Match[str]) -> str:
    if found[0] == REMOVED:
        return REMOVED
    if _passes(found[0].lstrip(_OPENING).rstrip(_CLOSING)) and found[0].isascii():
        return found[0]
    mark = found[0][-1] if found[0].endswith((",", ":", ";", ".")) and REMOVED not in found[0] else ""
    return REMOVED + mark


def _passes(token: str) -> bool:
    if not token or _NUMBER.fullmatch(token) or _MARKS.fullmatch(token):
        return True
    return bool(_WORDS.fullmatch(token)) and is_known_text(token.replace("'", "_"))


def facts(names: NameScrubber) -> dict[str, Callable[[str], str | None]]:
    """The facts that may stay, by name: how the value is cleaned, or None where it is dropped."""
    return {
        "EXPORT_PRODUCT_NAME": message,
        "EXPORT_PRODUCT_VERSION": _leading(r"\d{4}\.\d{1,2}\.\d{1,3}(?:\.\d{1,4})?"),
        "EXPORT_SCHEMA_VERSION": _leading(r"\d{1,4}\.\d{1,4}(?:\.\d{1,4})?"),
        "EXPORT_SCHEMA_VERSION_MAJOR": _leading(r"\d{1,4}"),
        "EXPORT_SCHEMA_VERSION_MINOR": _leading(r"\d{1,4}"),
        "EXPORT_SCHEMA_VERSION_MICRO": _leading(r"\d{1,4}"),
        "CAPTURE_EVENT_TYPE": _known,
        "RUN_DURATION_MS": _leading(r"\d{1,12}"),
        "PROCESS_0:COMMAND": names.process,
        "PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE": _known,
        "PROCESS_0:COLLECT_GPU_MEMORY_USAGE": _known,
        "PROCESS_0:COLLECT_UVM_CPU_PAGE_FAULTS": _known,
        "PROCESS_0:COLLECT_UVM_GPU_PAGE_FAULTS": _known,
        "NvDriverVersion": _leading(r"\d{1,4}\.\d{1,4}(?:\.\d{1,4})?"),
        "CudaDriverVersion": _leading(r"\d{4,6}"),
        "OsDescription": message,
        "SoftwareReleaseVersion": _kernel_release,
    }


def _leading(pattern: str) -> Callable[[str], str | None]:
    compiled = re.compile(pattern)

    def cleaned(text: str) -> str | None:
        found = compiled.match(text)
        return found[0] if found else None

    return cleaned


def _known(text: str) -> str | None:
    return text if re.fullmatch(r"[A-Za-z0-9_. -]{1,40}", text) and is_known_text(text) else None


def _kernel_release(text: str) -> str | None:
    """The release of the operating system's kernel; its suffix only where it says that the system is WSL."""
    found = re.match(r"\d{1,3}\.\d{1,3}(?:\.\d{1,4})?", text)
    if found is None:
        return None
    if "microsoft" in text.lower():
        return f"{found[0]}-microsoft-standard-WSL2"
    return found[0] + ("-generic" if text[found.end() :] else "")
