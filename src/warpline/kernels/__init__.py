"""A kernel's name -> what it is: library, op, class, data types, tile, tensor cores, with a reason each.

``identify`` is the one entry. Families are modules of this folder; none imports anything of warpline
outside it.
"""

from warpline.kernels.decode import identify
from warpline.kernels.identity import CLASSES, DataTypes, KernelIdentity, Token
from warpline.kernels.normalise import NormalName, normalise

__all__ = ["CLASSES", "DataTypes", "KernelIdentity", "NormalName", "Token", "identify", "normalise"]
