"""Checks of nsys and ncu: their versions, whether they match the driver, and whether nsys is complete."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpline.doctor.checks_gpu import GpuFacts
from warpline.doctor.failures import known_failure
from warpline.doctor.machine import Machine
from warpline.doctor.model import Check

CUDA_OF_NCU: dict[tuple[int, int], tuple[int, int]] = {
    (2021, 2): (11, 4),
    (2021, 3): (11, 5),
    (2022, 1): (11, 6),
    (2022, 2): (11, 7),
    (2022, 3): (11, 8),
    (2022, 4): (12, 0),
    (2023, 1): (12, 1),
    (2023, 2): (12, 2),
    (2023, 3): (12, 3),
    (2024, 1): (12, 4),
    (2024, 2): (12, 5),
    (2024, 3): (12, 6),
    (2025, 1): (12, 8),
    (2025, 2): (12, 9),
    (2025, 3): (13, 0),
    (2025, 4): (13, 1),
}
"""The CUDA release of each ncu version, from the labels of NVIDIA's conda channel (anaconda.org/nvidia)."""
IMPORTER = "QdstrmImporter"
_PACKAGES = {"libdw.so.1": "libdw1", "libelf.so.1": "libelf1", "libbz2.so.1.0": "libbz2-1.0"}
"""Debian packages of the libraries that nsys's importer often lacks."""
_VERSION = re.compile(r"(\d{4})\.(\d+)(?:\.(\d+))?")
_SCRIPT_WORD = re.compile(r"[^\s\"'`=():;]++")
_CUPTI = re.compile(r"libcupti\.so\.(\d+)\.(\d+)$")


def tool_checks(machine: Machine, gpus: GpuFacts) -> Iterator[Check]:
    """All checks about the profilers."""
    cupti: tuple[int, int] | None = None
    nsys = _real_path(machine, "nsys")
    if nsys is None:
        means = "torch.profiler traces do not need it."
        yield Check("nsys", "note", "no nsys on PATH", means, ("https://developer.nvidia.com/nsight-systems",))
    else:
        yield _version("nsys", nsys, machine)
        cupti = _newest_cupti(nsys, machine)
        yield _nsys_against_driver(cupti, gpus)
        yield _importer(nsys, machine)
    ncu = _real_path(machine, "ncu")
    if ncu is None:
        do = ("https://developer.nvidia.com/nsight-compute",)
        yield Check("ncu", "note", "no ncu on PATH", "Only needed to profile inside kernels.", do)
        return
    found = _version("ncu", ncu, machine)
    yield found
    number = _number(found.seen)
    cuda = CUDA_OF_NCU.get(number) if number else None
    yield _ncu_against_driver(cuda, number, gpus)
    if cupti and cuda and cupti[0] != cuda[0]:
        seen = f"nsys is for CUDA {cupti[0]}.{cupti[1]}, ncu for CUDA {cuda[0]}.{cuda[1]}"
        yield Check(
            "nsys-and-ncu", "note", seen, "They may be of different releases, but only one may match the driver."
        )


def _real_path(machine: Machine, program: str) -> str | None:
    """The path of the program itself, if a wrapper script comes first."""
    path = machine.which(program)
    if path is None:
        return None
    text = machine.read(path) or ""
    if text.startswith("#!"):
        words = (word for word in _SCRIPT_WORD.findall(text) if word[0] == "/" and word.endswith(("/nsys", "/ncu")))
        found = next(filter(machine.exists, words), None)
        return found or path
    return path


def _version(name: str, path: str, machine: Machine) -> Check:
    answer = machine.ask([path, "--version"], 30)
    found = _VERSION.search(answer.output) if answer is not None else None
    if not found:
        reason = "it did not answer within 30 s" if answer is None else "it does not print its version"
        return Check(name, "unknown", f"cannot tell {name}'s version, because {reason}", "", (f"{name} --version",))
    inside = " (inside Nsight Compute's package)" if name == "nsys" and "nsight-compute" in path else ""
    return Check(name, "ok", f"{name} {found[0]}{inside}")


def _number(seen: str) -> tuple[int, int] | None:
    found = _VERSION.search(seen)
    return (int(found[1]), int(found[2])) if found else None


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _newest_cupti(nsys: str, machine: Machine) -> tuple[int, int] | None:
    """The newest CUDA version that this nsys has a CUPTI library for, in its own folder."""
    matches = [_CUPTI.search(name) for name in machine.names(_folder(nsys))]
    return max(((int(found[1]), int(found[2])) for found in matches if found), default=None)


def _nsys_against_driver(cupti: tuple[int, int] | None, gpus: GpuFacts) -> Check:
    driver = gpus.cuda_number
    if cupti is None:
        return Check("nsys-and-driver", "unknown", "cannot tell, because there is no libcupti.so.X.Y beside nsys")
    if driver is None:
        return Check("nsys-and-driver", "unknown", "cannot tell, because the driver's CUDA version is not known")
    seen = f"nsys supports up to CUDA {cupti[0]}.{cupti[1]}, the driver is for CUDA {driver[0]}.{driver[1]}"
    if cupti < driver:
        found = known_failure("driver-newer-than-nsys").found(seen, "warning")
        return Check("nsys-and-driver", found.state, found.seen, found.means, found.do, found.failure)
    return Check("nsys-and-driver", "ok", seen)


def _importer(nsys: str, machine: Machine) -> Check:
    """Check whether nsys can convert its raw stream to a report."""
    folder = _folder(nsys)
    parent = _folder(folder)
    places = [folder, *(f"{parent}/{name}" for name in machine.names(parent))]
    # Debian installs the target and host parts in different folders.
    places += ["/usr/lib/nsight-systems/host-linux-x64"] if folder.startswith("/usr/lib") else []
    found = next((place for place in places if IMPORTER in machine.names(place)), None)
    if found is None:
        failure = known_failure("stream-not-imported").found(
            f"no {IMPORTER} beside {nsys}: a target-only install", "problem"
        )
        return Check("nsys-importer", failure.state, failure.seen, failure.means, failure.do, failure.failure)
    answer = machine.ask(["ldd", f"{found}/{IMPORTER}"])
    if answer is None or answer.status:
        return Check("nsys-importer", "unknown", f"{IMPORTER} is present; cannot check its libraries without ldd")
    missing = sorted(set(re.findall(r"^[ \t]*+(\S++) => not found", answer.output, re.MULTILINE)))
    if missing:
        packages = [_PACKAGES[name] for name in missing if name in _PACKAGES]
        do = (f"apt-get install {' '.join(packages)}" if packages else "install a full Nsight Systems",)
        means = "nsys records, but leaves a .qdstrm that nothing here can convert to a report."
        seen = f"{IMPORTER} lacks {', '.join(missing)}"
        return Check("nsys-importer", "problem", seen, means, do, known_failure("stream-not-imported").number)
    return Check("nsys-importer", "ok", f"{IMPORTER} and its libraries are present")


def _ncu_against_driver(cuda: tuple[int, int] | None, number: tuple[int, int] | None, gpus: GpuFacts) -> Check:
    driver = gpus.cuda_number
    name = "ncu-and-driver"
    if cuda is None:
        which = f"ncu {number[0]}.{number[1]} is not in warpline's list" if number else "ncu's version is not known"
        return Check(name, "unknown", f"cannot tell, because {which}")
    if driver is None:
        return Check(name, "unknown", "cannot tell, because the driver's CUDA version is not known")
    seen = f"ncu is for CUDA {cuda[0]}.{cuda[1]}, the driver for CUDA {driver[0]}.{driver[1]}"
    failure = known_failure("ncu-and-driver-do-not-match")
    if cuda[0] > driver[0]:
        means = "The driver is too old for this ncu, which will refuse to profile."
        do = (f"install the ncu for CUDA {driver[0]}.{driver[1]}, or a newer driver",)
        return Check(name, "problem", seen, means, do, failure.number)
    if cuda[0] < driver[0]:
        means = "An ncu that is older than the driver may fail to prepare kernels for profiling."
        return Check(
            name, "warning", seen, means, (f"install the ncu for CUDA {driver[0]}.{driver[1]}",), failure.number
        )
    return Check(name, "ok", seen)
