"""Remarks that follow from a kernel's identity: hints for its performance."""

from __future__ import annotations

from warpline.kernels.grammar import sm_number
from warpline.kernels.identity import KernelIdentity

_NAMES = {
    50: "a Maxwell",
    60: "a Pascal",
    70: "a Volta",
    75: "a Turing",
    80: "an Ampere",
    86: "an Ampere",
    89: "an Ada",
}
PRE_HOPPER_SHARE = "two thirds"
"""mma.sync on Hopper reached 62.9 % of the wgmma peak on average: Luo et al., "Benchmarking and Dissecting
the Nvidia Hopper GPU Architecture via Microbenchmarking", 2024. Rounded up, so that it stays a bound."""

_TF32_SETTINGS = {
    "gemm": "torch.set_float32_matmul_precision('high')",
    "conv": "torch.backends.cudnn.allow_tf32 = True, the default",
}


def remarks_of(identity: KernelIdentity, device_arch: str | None = None) -> tuple[str, ...]:
    """Remarks on a decoded kernel, and on its match with the device if one is given."""
    found: list[str] = []
    matrix = identity.kernel_class in ("gemm", "conv")
    if matrix and identity.tensor_core is False and identity.op != "gemv" and not identity.is_sparse:
        if identity.is_amd:
            found.append("runs without the matrix cores (MFMA)")
        elif identity.dtype.a == "f32":
            setting = _TF32_SETTINGS[identity.kernel_class]
            found.append(f"fp32 on CUDA cores: allow TF32 ({setting}) or use bf16, to use the tensor cores")
        elif identity.dtype.a in ("f16", "bf16"):
            found.append("16-bit data on CUDA cores: check alignment (multiples of 8 elements) and shapes")
    if identity.op == "gemv":
        found.append("a matrix-vector product (GEMV) is memory-bound: batch more rows to use the tensor cores")
    if identity.is_sparse:
        found.append("a product with a sparse (CSR) matrix gathers rows and is memory-bound: TF32 does not apply")
    if matrix and identity.tensor_core and identity.alignment is not None and identity.alignment < 4:
        found.append(
            f"aligned to only {identity.alignment} element(s): pad the dimensions to a multiple of 8 for wide loads"
        )
    if matrix and identity.tensor_core and identity.dtype.a == "tf32":
        found.append("fp32 data multiplied in TF32, with a 10-bit mantissa; bf16 doubles the rate")
    fit = _fit(identity, device_arch)
    return (*found, fit) if fit else tuple(found)


def _fit(identity: KernelIdentity, device_arch: str | None) -> str | None:
    kernel, device = sm_number(identity.arch), sm_number(device_arch)
    if kernel is None or device is None or not identity.tensor_core or kernel >= device:
        return None
    if kernel >= 90 or device < 90:
        return None
    kernel_name = _NAMES.get(kernel, f"an sm{kernel}")
    if device >= 120:
        # sm_120 and sm_121 have neither wgmma nor tcgen05: their tensor cores run mma.sync, as the older ones do.
        return (
            f"{kernel_name} kernel on an sm{device} chip (a compatibility kernel): mma.sync is that chip's own "
            "instruction too, so no tensor peak is lost to it; tile and stages were chosen for the older chip, and "
            "fp4 and block-scaled fp8 need newer kernels"
        )
    if device == 90:
        return f"{kernel_name} kernel on a Hopper chip: at most {PRE_HOPPER_SHARE} of its tensor peak"
    return f"{kernel_name} kernel on a Blackwell chip: its instructions cannot reach the tensor peak (no tcgen05)"
