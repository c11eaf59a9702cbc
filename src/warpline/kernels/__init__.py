"""Decode a kernel's name: library, op, class, data types, tile, tensor cores, each with its reason.

``identify`` is the only entry point. Families are modules of this folder; none imports other parts of warpline.
"""

from warpline.kernels.decode import identify
from warpline.kernels.identity import CLASSES, DataTypes, KernelIdentity, Token
from warpline.kernels.normalise import NormalName, normalise

__all__ = ["CLASSES", "DataTypes", "KernelIdentity", "NormalName", "Token", "identify", "normalise"]
