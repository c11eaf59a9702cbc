"""Files of measured ceilings: what is damaged is one error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from warpline.errors import UnreadableFile
from warpline.hardware.ceilings import SCHEMA, parse_ceilings

GOOD = {"device": {"name": "GPU", "sm_count": 4, "compute": "9.0"}, "measurements": {"hbm": {"value": 2.5}}}


def text(**changed: Any) -> str:
    return json.dumps({"schema": SCHEMA, **GOOD, **changed})


def test_a_file_is_read() -> None:
    found = parse_ceilings(text(), "x.json")
    assert (found.device, found.sm_count, found.compute, found.values) == ("GPU", 4, (9, 0), {"hbm": 2.5})


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "[" * 100_000,
        "[]",
        text(schema="other"),
        text(device=[1]),
        text(device={"sm_count": "many"}),
        text(device={"compute": "x.y"}),
        text(measurements=[1]),
        text(measurements={"hbm": 1}),
        text(measurements={"hbm": {"value": None}}),
        text(measurements={"hbm": {"value": -1}}),
        text(measurements={"hbm": {"value": float("nan")}}),
    ],
)
def test_a_damaged_file_is_one_error(damaged: str) -> None:
    with pytest.raises(UnreadableFile) as raised:
        parse_ceilings(damaged, "x.json")
    assert raised.value.code == "bad-ceilings"
