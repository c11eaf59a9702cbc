"""Pseudonyms: one for each name throughout a file, numbered in order of appearance."""

from __future__ import annotations

import re

GENERIC_USERS = frozenset(
    (
        "root",
        "user",
        "users",
        "ubuntu",
        "debian",
        "centos",
        "ec2-user",
        "azureuser",
        "opc",
        "jovyan",
        "vscode",
        "runner",
        "nobody",
        "app",
        "appuser",
        "docker",
        "coder",
        "sagemaker-user",
        "linuxbrew",
        "shared",
        "public",
        "default",
        "admin",
        "administrator",
        "guest",
        "nvidia",
        "conda",
        "mambauser",
        "build",
        "builder",
        "nonroot",
        "all users",
    )
)
"""Default accounts of images and systems, which identify nobody."""
GENERIC_HOSTS = frozenset(
    ("", "localhost", "localhost.localdomain", "local", "host", "node", "server", "none", "(none)", "unknown")
)
UNIDENTIFYING_ADDRESSES = re.compile(r"(?:127|0|255)\.\d+\.\d+\.\d+|240\.0\.\d+\.\d+|::1?|2001:db8::[0-9a-f]+")
"""Loopback, unset and broadcast addresses, and the reserved block (RFC 1112) of our own replacements."""
_OURS = re.compile(r"(?:user|host|dir)-\d+")


def is_pseudonym(name: str) -> bool:
    """Whether a name is one of our pseudonyms."""
    return bool(_OURS.fullmatch(name))


class Pseudonyms:
    """The pseudonym of each name in the scrubbed file."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}

    def user(self, name: str) -> str:
        """An account."""
        if is_pseudonym(name) or name.lower() in GENERIC_USERS:
            return name
        return f"user-{self._number('user', name.lower())}"

    def host(self, name: str) -> str:
        """A machine; its short and full names get the same pseudonym."""
        if is_pseudonym(name) or name.lower() in GENERIC_HOSTS:
            return name
        return f"host-{self._number('host', name.lower().partition('.')[0])}"

    def folder(self, path: str) -> str:
        """A folder of a site."""
        return path if is_pseudonym(path) else f"dir-{self._number('dir', path)}"

    def address(self, text: str) -> str:
        """An IP address."""
        if UNIDENTIFYING_ADDRESSES.fullmatch(text.lower()):
            return text
        number = self._number("address", text.lower())
        if ":" in text:
            return f"2001:db8::{number:x}"
        return f"240.0.{number >> 8 & 255}.{number & 255}"

    def hardware(self, text: str) -> str:
        """A MAC address or port GUID: locally administered, so that it belongs to no vendor."""
        digits = re.sub(r"[^0-9a-f]", "", text.lower())
        if not digits.strip("0f") or digits.startswith("02000000"):
            return text
        number = self._number("hardware", digits)
        return f"02:00:00:00:{number >> 8 & 255:02x}:{number & 255:02x}"

    def identifier(self, text: str) -> str:
        """A UUID."""
        digits = text.lower().replace("-", "")
        if digits.startswith("0" * 20):
            return text
        return f"00000000-0000-0000-0000-{self._number('identifier', digits):012x}"

    def _number(self, group: str, value: str) -> int:
        known = self._numbers.setdefault(group, {})
        return known.setdefault(value, len(known) + 1)
