"""The working state of a family decoder: fields with their reasons, tokens with their meanings."""

from __future__ import annotations

from typing import Any

from warpline.kernels.identity import MATRIX_CLASSES, DataTypes, KernelIdentity, Token

NO_TYPES = DataTypes()


class Draft:
    """A KernelIdentity under construction. ``set`` is the only way to add a value, so that every value has a reason."""

    __slots__ = ("dtype", "family", "library", "reasons", "remarks", "tokens", "values")

    def __init__(self, family: str, library: str | None) -> None:
        self.family = family
        self.library = library
        self.values: dict[str, Any] = {}
        self.dtype: dict[str, str] = {}
        self.reasons: dict[str, str] = {}
        self.tokens: list[Token] = []
        self.remarks: list[str] = []

    def set(self, field: str, value: Any, reason: str) -> None:
        """Record a proven value; ``None`` is not a value and is ignored."""
        if value is None:
            return
        self.values[field] = value
        self.reasons["class" if field == "kernel_class" else field] = reason

    def kind(self, kernel_class: str, op: str | None, reason: str, tensor_core: bool | None = None) -> Draft:
        """Set class and op; a class without matrix arithmetic also determines the tensor cores."""
        self.set("kernel_class", kernel_class, reason)
        self.set("op", op, reason)
        if tensor_core is None and kernel_class not in MATRIX_CLASSES and kernel_class != "unknown":
            self.set("tensor_core", False, f"{kernel_class} kernels have no matrix arithmetic")
        elif tensor_core is not None and self.values.get("tensor_core") is not tensor_core:
            self.set("tensor_core", tensor_core, reason)
        return self

    def leave_units_open(self) -> None:
        """Retract what the class implied about tensor cores."""
        self.values.pop("tensor_core", None)
        self.reasons.pop("tensor_core", None)

    def types(self, reason: str, **roles: str | None) -> None:
        """Record data types by role (``a``, ``b``, ``out``, ``acc``)."""
        known = {role: dtype for role, dtype in roles.items() if dtype is not None}
        if known:
            self.dtype.update(known)
            self.reasons["dtype"] = reason

    def token(self, text: str, meaning: str) -> None:
        """Explain a piece of the name."""
        self.tokens.append(Token(text, meaning))

    def abstain(self, reason: str) -> Draft:
        """Record that the name does not prove a class, and why."""
        self.values["kernel_class"] = "unknown"
        self.reasons["class"] = reason
        return self

    def build(self, name: str, truncated: bool) -> KernelIdentity:
        """The finished identity."""
        return KernelIdentity(
            name=name,
            library=self.library,
            family=self.family,
            dtype=DataTypes(**self.dtype) if self.dtype else NO_TYPES,
            truncated=truncated,
            reasons=self.reasons,
            tokens=tuple(self.tokens),
            remarks=tuple(self.remarks),
            **self.values,
        )
