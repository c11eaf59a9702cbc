"""What devices can do: peaks with citations, and ceilings measured on the device itself."""

from warpline.hardware.chips import Chip, CitedFigure, chip_named, chips
from warpline.hardware.find import find_device
from warpline.hardware.roof import Roof, RooflinePoint, roof_of, roofline

__all__ = ["Chip", "CitedFigure", "Roof", "RooflinePoint", "chip_named", "chips", "find_device", "roof_of", "roofline"]
