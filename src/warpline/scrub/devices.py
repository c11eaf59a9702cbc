"""Names of GPUs: by their grammar, because new ones appear every year."""

from __future__ import annotations

import re

_LISTED = """
    nvidia tesla geforce quadro titan rtx gtx gt gts nvs amd instinct radeon pro vii vega ti super max q laptop
    gpu sxm pcie nvl graphics device dgx dgxs hgx mig ada generation orin thor jetson xavier agx nx nano grace
    hopper blackwell server edition workstation intel arc data center flex xt xtx xe black xp x tuned lite
    embedded vf hvm vgpu ecc oam rx with design
"""
_WORDS = frozenset(_LISTED.split())
_MODEL = re.compile(r"[A-Z]{0,3}\d{1,4}[A-Za-z]{0,3}|(?:SXM|NVL|PCIe)\d{0,2}|\d{1,4}(?:GB|MB|gb|g)|gfx[0-9a-f]{3,4}")
MAX_PARTS = 8
MAX_NAME_DIGITS = 10
_CHIP = re.compile(r"[A-Z]{2}\d{2,3}[A-Z]{0,2}")


def device_name(text: str) -> str:
    """The words of a device's name that are known; ``GPU`` if there are none.

    >>> device_name("NVIDIA A100-SXM4-80GB"), device_name("hunter2 H200"), device_name("192.168.13.37")
    ('NVIDIA A100-SXM4-80GB', 'H200', 'GPU')
    """
    words = re.split(r"[ ./-]+", text.strip())
    numbers = [word for word in words if word.isdecimal()]
    is_address = len(numbers) > 1 or numbers == words  # a model has at most one number of its own, beside a word
    if all(map(_is_known, words)) and len(words) <= MAX_PARTS and not is_address:
        digits = sum(char.isdigit() for char in text)
        return text if digits <= MAX_NAME_DIGITS else "GPU"
    kept = [word for word in words if word and _is_known(word) and not (is_address and word in numbers)][:MAX_PARTS]
    return device_name(" ".join(kept)) if kept else "GPU"


def _is_known(part: str) -> bool:
    return part.lower() in _WORDS or bool(_MODEL.fullmatch(part)) or not part


def is_chip(text: str) -> bool:
    """Whether a text is the name of a chip: GH100."""
    return bool(_CHIP.fullmatch(text))
