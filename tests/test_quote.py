"""Texts that are quoted in messages: no paths, no hosts, no secrets, one line."""

from __future__ import annotations

import pytest

from warpline.quote import quote, redacted


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("open /home/ada/a/b.txt failed", "open …/b.txt failed"),
        ("ada@cluster-7: denied", "…@…: denied"),
        ("GET https://internal.corp/x?y=1 failed", "GET https://… failed"),
        ("C:\\Users\\ada\\x.exe", "…\\x.exe"),
        ("api_key=sk-123 rejected", "api_key=… rejected"),
        ("--hf-token abc --lr 1", "--hf-token … --lr 1"),
        ("password: hunter", "password: …"),
        ("401 for hf_abcdefghijklmnopqrstuvwxyz0123", "401 for …"),
        ("Authorization: Bearer abc.def.123456", "Authorization: …"),
        ("max_tokens=128", "max_tokens=128"),
        ("unexpected token in line", "unexpected token in line"),
        ("ratio 1/2 and a/b", "ratio 1/2 and a/b"),
    ],
)
def test_quotes_carry_no_paths_hosts_or_secrets(text: str, safe: str) -> None:
    assert redacted(text) == safe


def test_quotes_are_one_short_line() -> None:
    line = quote("\x1b[31mError\x1b[0m:\n" + "x y " * 200)
    assert len(line) <= 160
    assert line.startswith("Error: x y")
