"""Names of torch and of other libraries that tell where a value lives."""

from __future__ import annotations

FACTORIES = frozenset(
    [
        "randn",
        "rand",
        "zeros",
        "ones",
        "empty",
        "full",
        "arange",
        "tensor",
        "as_tensor",
        "eye",
        "linspace",
        "randint",
        "randperm",
        "from_numpy",
    ]
)
METADATA = frozenset(
    [
        "shape",
        "dtype",
        "device",
        "ndim",
        "is_cuda",
        "requires_grad",
        "training",
        "layout",
        "names",
        "itemsize",
        "is_leaf",
        "grad_fn",
        "config",
        "images",
        "name",
    ]
)
TO_HOST = frozenset(["item", "cpu", "numpy", "tolist"])
ABOUT = frozenset(
    [
        "size",
        "numel",
        "dim",
        "stride",
        "element_size",
        "data_ptr",
        "is_contiguous",
        "keys",
        "get_last_lr",
        "state_dict",
        "nelement",
        "is_floating_point",
        "type",
        "record",
        "elapsed_time",
        "query",
        "wait",
        "get_device",
        "storage_offset",
        "untyped_storage",
    ]
)
CONVERSIONS = frozenset(["float", "int", "bool"])
HOST_FUNCTIONS = CONVERSIONS | {"len", "range", "str", "print", "repr", "type", "id", "hash", "hasattr", "isinstance"}
SYNCING_FUNCTIONS = frozenset(["nonzero", "argwhere", "unique", "unique_consecutive", "masked_select"])
SYNCING_TESTS = frozenset(["allclose", "equal"])
HOST_MODULES = ("numpy", "math", "time", "pandas", "json", "os", "random", "cv2", "sys", "re", "timeit", "datetime")
NO_VALUE = frozenset(["synchronize", "empty_cache", "save", "load", "manual_seed", "is_available", "set_device"])
WORK_METHODS = frozenset(["backward", "replay"])
GRADIENT_NORMS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.get_total_norm")
WRAPPERS = ("torch.compile", "torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel")


def asks(name: str) -> bool:
    """Whether a name asks about an object, not about its values: `is_cuda`, `has_state`, `requires_grad`."""
    return name.startswith(("is_", "has_", "requires_", "supports_", "should_", "needs_"))
