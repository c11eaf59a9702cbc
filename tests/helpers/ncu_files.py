"""Tiny files of Nsight Compute, written by hand: CSV pages, and the blocks of a report."""

from __future__ import annotations

RAW_HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",'
    '"gpu__time_duration.sum","dram__bytes.sum.per_second","launch__func_cache_config","sm__warps_active.avg.pct_of_peak_sustained_active"'
)
RAW_UNITS = '"","","","","","","","","","","","us","Gbyte/s","","%"'
GEMM = "void cutlass::Kernel2<cutlass_80_gemm>(T1::Params)"
DETAILS_HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",'
    '"Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description",'
    '"Estimated Speedup Type","Estimated Speedup"'
)


def raw_row(
    launch: int, name: str, duration: str, bandwidth: str, cache: str = "PreferNone", warps: str = "14.68"
) -> str:
    """One kernel of a raw page."""
    cells = (
        launch,
        7,
        "python",
        "host",
        name,
        1,
        7,
        "(384, 1, 1)",
        "(2, 66, 1)",
        0,
        "9.0",
        duration,
        bandwidth,
        cache,
        warps,
    )
    return ",".join(f'"{cell}"' for cell in cells)


def raw_page(*rows: str, before: str = "==PROF== Connected to process 7\n") -> str:
    """A raw page: messages, header, units, rows."""
    return before + "\n".join([RAW_HEADER, RAW_UNITS, *rows]) + "\n"


def details_row(launch: int, section: str, label: str, unit: str, value: str) -> str:
    """One metric of a details page; ncu ends such a row behind the value."""
    cells = (
        launch,
        7,
        "python",
        "host",
        GEMM,
        1,
        7,
        "(128, 1, 1)",
        "(10, 1, 1)",
        0,
        "8.6",
        section,
        label,
        unit,
        value,
    )
    return ",".join(f'"{cell}"' for cell in cells) + ","


def details_rule(launch: int, section: str, rule: str, text: str, kind: str = "", speedup: str = "") -> str:
    """One rule of a details page."""
    cells = (launch, 7, "python", "host", GEMM, 1, 7, "(128, 1, 1)", "(10, 1, 1)", 0, "8.6", section, "", "", "")
    return ",".join(f'"{cell}"' for cell in (*cells, rule, "OPT", text, kind, speedup))


def varint(number: int) -> bytes:
    """A number in protocol-buffer encoding."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def message(fields: dict[int, int | bytes]) -> bytes:
    """A protocol buffer of integers and texts."""
    out = b""
    for number, value in fields.items():
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def block(
    results: int = 0, payload: bytes = b"", session: bytes = b"", process: tuple[int, str] | None = None
) -> bytes:
    """One block of a report."""
    fields: dict[int, int | bytes] = {1: 0, 2: results, 5: len(payload)}
    if session:
        fields[3] = session
    if process is not None:
        fields[6] = message({1: process[0], 2: b"127.0.0.1", 3: process[1].encode()})
    header = message(fields)
    return len(header).to_bytes(4, "little") + header + payload


def report(*blocks: bytes) -> bytes:
    """A whole report; NVIDIA's reader cannot read its payloads, which are made up."""
    return b"NVR\x00\x02\x00\x00\x00\x08\x07" + b"".join(blocks)
