"""Compiles CUDA C++ with NVRTC and launches it through the driver, in torch's context."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from faults.kernels.case import Buffers, Cuda

SOURCES = Path(__file__).parent / "cuda"
MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES of cuda.h."""
DEFAULT_SHARED_BYTES = 48 << 10
"""Dynamic shared memory that a launch may use without the attribute above."""


class CudaError(RuntimeError):
    """A call of NVRTC or of the driver failed."""


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


@cache
def _nvrtc(cuda_major: str) -> ctypes.CDLL:
    for name in (f"libnvrtc.so.{cuda_major}", "libnvrtc.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    for folder in (Path("/usr/local/cuda/lib64"), *Path(_torch_folder()).parent.glob("nvidia/*/lib")):
        for library in sorted(folder.glob("libnvrtc.so*")):
            return ctypes.CDLL(str(library))
    raise CudaError("no libnvrtc found")


def _torch_folder() -> str:
    import torch  # noqa: PLC0415

    return str(Path(torch.__file__).parent)


def _check(what: str, result: int) -> None:
    if result:
        raise CudaError(f"{what} failed with error {result}")


@cache
def _cubin(file: str, architecture: str, cuda_major: str) -> bytes:
    """The machine code of a source file, with line information. Where there is no NVRTC, nvcc compiles it."""
    path = SOURCES / f"{file}.cu"
    try:
        nvrtc = _nvrtc(cuda_major)
    except CudaError:
        return _nvcc_cubin(path, architecture)
    program = ctypes.c_void_p()
    source = path.read_bytes()
    _check(
        "nvrtcCreateProgram",
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, str(path).encode(), 0, None, None),
    )
    options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17", b"-lineinfo"]
    result = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    if result:
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise CudaError(f"{file}.cu does not compile: {log.value.decode(errors='replace').strip()[:500]}")
    size = ctypes.c_size_t()
    _check("nvrtcGetCUBINSize", nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
    code = ctypes.create_string_buffer(size.value)
    _check("nvrtcGetCUBIN", nvrtc.nvrtcGetCUBIN(program, code))
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


def _nvcc_cubin(path: Path, architecture: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "kernel.cubin")
        command = ["nvcc", f"-arch={architecture}", "-cubin", "-lineinfo", "-o", str(output), str(path)]
        subprocess.run(command, check=True, capture_output=True)
        return output.read_bytes()


@cache
def _function(file: str, entry: str, architecture: str, cuda_major: str) -> ctypes.c_void_p:
    """The kernel, loaded into the current context."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    driver = _driver()
    _check("cuModuleLoadData", driver.cuModuleLoadData(ctypes.byref(module), _cubin(file, architecture, cuda_major)))
    _check(f"cuModuleGetFunction({entry})", driver.cuModuleGetFunction(ctypes.byref(function), module, entry.encode()))
    return function


def launch(torch: Any, form: Cuda, which: str, buffers: Buffers) -> None:
    """Launches one form on torch's current stream."""
    major, minor = torch.cuda.get_device_capability()
    function = _function(
        form.file, f"{form.file}_{which}", f"sm_{major}{minor}", str(torch.version.cuda).split(".", maxsplit=1)[0]
    )
    values: list[Any] = []
    for argument in form.arguments:
        if isinstance(argument, str):
            values.append(ctypes.c_void_p(buffers[argument].data_ptr()))
        elif isinstance(argument, int):
            values.append(ctypes.c_int(argument))
        else:
            values.append(ctypes.c_float(argument))
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    driver = _driver()
    if form.shared_bytes > DEFAULT_SHARED_BYTES:
        _check(
            "cuFuncSetAttribute",
            driver.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED_SIZE_BYTES, form.shared_bytes),
        )
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    _check(
        "cuLaunchKernel",
        driver.cuLaunchKernel(function, *form.grid, *form.block, form.shared_bytes, stream, pointers, None),
    )
