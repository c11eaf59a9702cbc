"""Names of GPUs: by their grammar, because new ones appear every year."""

from __future__ import annotations

import re

_LISTED = """
    NVIDIA Tesla GeForce Quadro TITAN Titan RTX GTX GT GTS NVS GRID AMD ATI Instinct Radeon Pro PRO VII Vega Ti TI Super
    SUPER Max Q Max-Q Laptop GPU SXM PCIe PCIE NVL Graphics Device DGX DGXS HGX MIG Ada Generation Orin Thor Jetson
    Xavier AGX NX Nano Grace Hopper Blackwell Server Edition Workstation Intel Arc Data Center Flex XT XTX XE Xe Black
    Xp X V Tuned Lite Embedded VF HVM vGPU ECC OAM RX with Design Spark Series D
"""
_WORDS = frozenset(_LISTED.split())
"""As drivers spell them: a host's name is in small letters."""
_NUMBERED = frozenset(
    ["RTX", "GTX", "GT", "GTS", "NVS", "RX", "GeForce", "Quadro", "Radeon", "Pro", "PRO", "Max", "Arc"]
)
"""Brands whose models are numbers."""
_NUMBER = re.compile(r"[1-9]\d{2,3}[A-Z]{0,2}")
_PART = re.compile(r"(?:SXM|NVL|PCIe|HBM)\d{0,2}[a-z]?|\d{1,4}(?:GB|MB|gb|g)|gfx[0-9a-f]{3,4}")
_MODEL = re.compile(r"[A-Z]{1,3}[1-9]\d{0,3}[A-Za-z]{0,3}")
MAX_PARTS = 8
MAX_MODELS = 2
"""MI250X and MI250 are one device; a network address has more parts that look so."""
_CHIP = re.compile(r"[A-Z]{2}\d{2,3}[A-Z]{0,2}")


def device_name(text: str) -> str:
    """The words of a device's name that are known; ``GPU`` if there are none.

    >>> device_name("NVIDIA A100-SXM4-80GB"), device_name("hunter2 H200"), device_name("192.168.13.37")
    ('NVIDIA A100-SXM4-80GB', 'H200', 'GPU')
    """
    words = re.split(r"[ ./-]+", text.strip())
    known = [word for before, word in zip(["", *words], words, strict=False) if word and _is_known(before, word)]
    models = [word for word in known if word not in _WORDS and _MODEL.fullmatch(word) and not _PART.fullmatch(word)]
    if not known or len(models) > MAX_MODELS:
        return "GPU"
    return text if known == words and len(words) <= MAX_PARTS else " ".join(known[:MAX_PARTS])


def _is_known(before: str, word: str) -> bool:
    is_number = before in _NUMBERED and bool(_NUMBER.fullmatch(word))
    return word in _WORDS or is_number or any(form.fullmatch(word) for form in (_PART, _MODEL))


def is_chip(text: str) -> bool:
    """Whether a text is the name of a chip: GH100."""
    return bool(_CHIP.fullmatch(text))
