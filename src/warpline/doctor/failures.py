"""The known ways in which profiling fails, each with its symptom, cause and fix.

The numbers are those of docs/doctor.md. Sources: public profiles and users' issue threads.
"""

from __future__ import annotations

from msgspec import Struct

from warpline.doctor.model import Check, State


class Failure(Struct, frozen=True):
    """One known failure of profiling."""

    number: int
    name: str
    symptom: str
    cause: str
    do: tuple[str, ...]
    usual: State = "problem"
    """Its state, unless the evidence gives another."""

    def found(self, seen: str, state: State | None = None, means: str = "", do: tuple[str, ...] = ()) -> Check:
        """The failure as a check."""
        return Check(self.name, state or self.usual, seen, means or self.cause, do or self.do, self.number)


PROGRAM_FAILED = Failure(
    1,
    "program-failed",
    "no kernel, almost no CUDA calls, although nsys reported success",
    "The program itself crashed or was stopped; nsys reports success anyway.",
    ("run the program once without the profiler and fix that error first",),
)
PROCESS_WITHOUT_CUDA = Failure(
    2,
    "process-without-cuda",
    "No CUDA events collected. Does the process use CUDA?",
    "The recorded process used no CUDA, or nsys was not injected into it: its environment was cleared, or it is a "
    "worker that was forked instead of spawned.",
    (
        "start workers with spawn, and keep LD_PRELOAD and CUDA_INJECTION64_PATH in their environment",
        "nsys profile --trace-fork-before-exec=true …",
    ),
)
LAUNCHES_WITHOUT_KERNELS = Failure(
    3,
    "launches-without-kernels",
    "launches were recorded, but no kernel",
    "The GPU events were lost: the program was killed before CUPTI delivered its buffers, or driver and nsys cannot "
    "record GPU activity here (WSL2).",
    (
        "call torch.cuda.synchronize() and torch.cuda.cudart().cudaProfilerStop() before the program ends",
        "nsys profile --cuda-flush-interval=1000 …",
        "under WSL2: install a current Windows driver and a current nsys",
    ),
)
DRIVER_NEWER_THAN_NSYS = Failure(
    4,
    "driver-newer-than-nsys",
    "Installed CUDA driver version is not supported by this build of Nsight Systems",
    "nsys is older than the driver and records with an older CUPTI, which may record nothing.",
    ("install a newer nsys (this needs no newer driver): https://developer.nvidia.com/nsight-systems",),
)
RECORDING_CUT_SHORT = Failure(
    5,
    "recording-cut-short",
    "CUPTI buffers: 49 of 50. Some CUPTI events might be missing",
    "The recording ended, or the program was killed, before CUPTI delivered its buffers: the last events are missing.",
    (
        "let the program exit by itself, or call torch.cuda.cudart().cudaProfilerStop() after a synchronisation",
        "raise or remove --duration, and use --kill=none",
    ),
)
OUTSIDE_THE_CONTAINER = Failure(
    6,
    "outside-the-container",
    "nsys profile docker run …: no CUDA and no NVTX events",
    "The program is a child of the container daemon, not of nsys, which recorded only the docker client.",
    ("docker run --gpus all --cap-add=SYS_ADMIN … IMAGE nsys profile … python train.py",),
)
FORKED_WORKERS = Failure(
    7,
    "forked-workers",
    "only one rank has GPU activity, or a worker dies with signal 11",
    "Workers were forked after CUDA was initialised, or forked and never traced.",
    (
        "nsys profile --trace-fork-before-exec=true …",
        "start workers with spawn (vLLM: VLLM_WORKER_MULTIPROC_METHOD=spawn)",
        "Ray: start its workers with runtime_env={'nsight': 'default'}",
    ),
)
NVTX_RANGE_UNREGISTERED = Failure(
    8,
    "nvtx-range-unregistered",
    "--capture-range=nvtx records nothing",
    "nsys matches only registered NVTX strings; torch.cuda.nvtx and nvtx.annotate push unregistered ones.",
    ("NSYS_NVTX_PROFILER_REGISTER_ONLY=0 nsys profile --capture-range=nvtx --nvtx-capture=NAME …",),
)
GRAPH_AS_ONE_BAR = Failure(
    9,
    "graph-as-one-bar",
    "a CUDA graph is one bar, its kernels are missing, tools report idle time",
    "By default, nsys records a graph replay as one event.",
    ("nsys profile --cuda-graph-trace=node …   (slower, but records every kernel)",),
    "warning",
)
COUNTERS_FORBIDDEN = Failure(
    10,
    "counters-forbidden",
    "ERR_NVGPUCTRPERM",
    "The driver allows only administrators to read performance counters; many clouds do not allow it at all.",
    (
        "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/nvidia-profiling.conf"
        "   (then reload the driver or reboot)",
        "in a container: docker run --cap-add=SYS_ADMIN …",
        "if neither is possible: nsys and warpline roofline need no counters",
    ),
)
NCU_AND_DRIVER = Failure(
    11,
    "ncu-and-driver-do-not-match",
    "Cuda driver is not compatible with Nsight Compute; LibraryNotLoaded; NaN metrics",
    "The versions of ncu and the driver do not match (most often the driver is too old for ncu), or the system is "
    "gVisor, which has no counters.",
    ("compare ncu --version with nvidia-smi, and install the ncu for the driver's CUDA version",),
)
NO_KERNELS_PROFILED = Failure(
    12,
    "no-kernels-profiled",
    "==WARNING== No kernels were profiled",
    "ncu's filters matched nothing: the kernels run in a child process, the name is not the short one, the NVTX range "
    "is not push/pop, or --launch-skip is beyond the last launch.",
    (
        "ncu --target-processes all …",
        "copy the name from a timeline: warpline stats TRACE -r cuda_gpu_kern_sum",
        "try without a filter first: ncu --target-processes all --launch-count 5 …",
    ),
)
TWO_CUPTI_CLIENTS = Failure(
    13,
    "two-cupti-clients",
    "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, or a torch trace without kernels",
    "Only one tool may subscribe to CUPTI, and torch.profiler, nsys, ncu, Proton and compute-sanitizer all do.",
    (
        "use one tool per run: turn torch.profiler off under nsys or ncu",
        "unset NVTX_INJECTION64_PATH CUDA_INJECTION64_PATH",
    ),
)
COUNTERS_BUSY = Failure(
    14,
    "counters-busy",
    "a driver resource was unavailable; Failed to prepare kernel for profiling",
    "Another program uses the counters, most often DCGM's exporter; an ncu older than the driver prints the same.",
    ("dcgmi profile --pause   (and afterwards: dcgmi profile --resume)", "ncu --version; nvidia-smi"),
)
REPORT_FROM_NEWER_NSYS = Failure(
    15,
    "report-from-newer-nsys",
    "Report was created in Nsight Systems version (…), newer than …",
    "nsys opens only reports of its own version and older ones.",
    (
        "install that version or a newer one",
        "or export where it was recorded: nsys export --type sqlite REPORT.nsys-rep",
    ),
)
STREAM_NOT_IMPORTED = Failure(
    16,
    "stream-not-imported",
    "a .qdstrm file, but no .nsys-rep",
    "nsys recorded but could not import: its importer or a library is missing (as in the nsys of Nsight Compute's "
    "package), or the disk of the temporary folder was full.",
    (
        "QdstrmImporter --input-file FILE.qdstrm   (exactly the version that recorded it)",
        "apt-get install libdw1 libelf1, or install the full Nsight Systems",
        "NSYS_TMPDIR=/with/room nsys profile …",
    ),
)
TOO_LARGE = Failure(
    17,
    "too-large",
    "a report of several GB, out of memory in the GUI, non-monotonic timestamps",
    "The whole run was recorded, with operating-system calls, CPU samples and backtraces of every process.",
    (
        "nsys profile -t cuda,nvtx --sample=none --cpuctxsw=none --capture-range=cudaProfilerApi "
        "--capture-range-end=stop …   (record three steady steps of one rank)",
    ),
    "warning",
)
EXPORT_INTERRUPTED = Failure(
    18,
    "export-interrupted",
    "file is not a database",
    "The export was interrupted, or the copy is incomplete.",
    ("nsys export --type sqlite --force-overwrite=true REPORT.nsys-rep",),
)
PERF_PARANOID = Failure(
    19,
    "perf-paranoid",
    "Unable to collect CPU kernel IP/backtrace samples. perf event paranoid level is 2",
    "Harmless for GPU profiling; only CPU sampling needs a lower level.",
    ("sudo sysctl kernel.perf_event_paranoid=1   (only for CPU samples)",),
    "note",
)
OLD_NSYS_ON_NEW_GLIBC = Failure(
    20,
    "old-nsys-on-new-glibc",
    "undefined symbol: __libc_dlclose, version GLIBC_PRIVATE",
    "nsys up to 2021.3 cannot inject itself with glibc 2.34 or newer, and the program dies at startup.",
    ("install a newer nsys",),
)
METRIC_UNAVAILABLE = Failure(
    21,
    "metric-unavailable",
    "Failed to find metric X; Unable to access the following metrics",
    "The metric does not exist on this chip: metric names differ between architectures.",
    ("ncu --query-metrics --chip CHIP | grep PART_OF_THE_NAME",),
    "warning",
)
NCU_IS_NO_STOPWATCH = Failure(
    22,
    "ncu-is-no-stopwatch",
    "ncu's kernel duration is much longer than on the timeline",
    "ncu locks the clock to its base frequency, flushes the caches and serialises kernels: its durations are not those "
    "of a normal run.",
    ("ncu --clock-control none --cache-control none …   (do not compare its durations with a timeline)",),
    "note",
)

FAILURES: tuple[Failure, ...] = (
    PROGRAM_FAILED,
    PROCESS_WITHOUT_CUDA,
    LAUNCHES_WITHOUT_KERNELS,
    DRIVER_NEWER_THAN_NSYS,
    RECORDING_CUT_SHORT,
    OUTSIDE_THE_CONTAINER,
    FORKED_WORKERS,
    NVTX_RANGE_UNREGISTERED,
    GRAPH_AS_ONE_BAR,
    COUNTERS_FORBIDDEN,
    NCU_AND_DRIVER,
    NO_KERNELS_PROFILED,
    TWO_CUPTI_CLIENTS,
    COUNTERS_BUSY,
    REPORT_FROM_NEWER_NSYS,
    STREAM_NOT_IMPORTED,
    TOO_LARGE,
    EXPORT_INTERRUPTED,
    PERF_PARANOID,
    OLD_NSYS_ON_NEW_GLIBC,
    METRIC_UNAVAILABLE,
    NCU_IS_NO_STOPWATCH,
)
