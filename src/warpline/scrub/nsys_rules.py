"""Fields of an nsys export that leak because of their meaning, whatever their text looks like."""

from __future__ import annotations

import re
from dataclasses import dataclass

from warpline.scrub.kinds import REMOVED, Kind
from warpline.scrub.nsys_tables import Value
from warpline.scrub.text import Scrubber

_ENVIRONMENT = re.compile(r"(?i)environment|env_?var")
_HOST = re.compile(r"(?i)(?:host|node|computer|machine)_?name$|^device_display_name$|domain_?name$|fqdn$")
_USER = re.compile(r"(?i)(?:^|[_:])user(?:_?name)?$|login(?:_?name)?$|owner$")
_ARGUMENT = re.compile(r"(?i)argument_\d+$|command_?line$|_args$")
_FOLDER = re.compile(r"(?i)working_?dir(?:ectory)?$|(?:^|[_:])cwd$")
_FILE = re.compile(r"(?i)(?:in|out)\w*_path(?:_abs)?$|(?:^|:)command$")
_IDENTIFIER = re.compile(r"(?i)uuid$|uid$|serial(?:_?number)?$|guid$|machine_?id$|asset_?tag$")
_ADDRESS = re.compile(r"(?i)^nic_?info$|mac_?address(?:es)?$|ip_?address(?:es)?$")
_EMPTY = frozenset(("", "0", "{}", "[]", "null", REMOVED))

_FLAG = re.compile(r"(--?[A-Za-z][\w-]{0,40})(?:=(.*))?", re.DOTALL)
_SCRIPT = re.compile(r"(?:.*[/\\])?([\w.-]{1,60}\.(?:py|sh|exe|out))")
_NUMBER = re.compile(r"[+-]?[\d.]{1,6}")

_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_IDENTIFYING = re.compile(r"(?i)uuid|guid|serial(?:_?number)?|mac(?:_?address)?")


@dataclass(frozen=True, slots=True)
class Field:
    """How to scrub one fact; if ``kind`` is None, the general rules apply."""

    kind: Kind | None
    text: str
    drop_row: bool = False


def learn_named(name: Value, value: Value, scrubber: Scrubber) -> None:
    """Remember the account or machine that a fact names."""
    if not isinstance(name, str) or not isinstance(value, str) or value in _EMPTY:
        return
    if _HOST.search(name):
        scrubber.learn_host(value)
    elif _USER.search(name):
        scrubber.learn_user(value)


def named_value(name: str, value: str, scrubber: Scrubber) -> Field:
    """How to scrub the fact ``name`` with this value."""
    if _ENVIRONMENT.search(name) and Kind.ENVIRONMENT not in scrubber.keep:
        return Field(Kind.ENVIRONMENT, "", drop_row=True)
    kind, new = _by_name(name, value, scrubber)
    if value in _EMPTY or kind is None or kind in scrubber.keep or new == value:
        return Field(None, value)
    return Field(kind, new)


def _by_name(name: str, value: str, scrubber: Scrubber) -> tuple[Kind | None, str]:
    if _HOST.search(name):
        return Kind.HOST, scrubber.names.host(value)
    if _USER.search(name):
        return Kind.USER, scrubber.names.user(value)
    if _ARGUMENT.search(name):
        return Kind.COMMAND, argument(value)
    if _FOLDER.search(name):
        return Kind.PATH, REMOVED
    if _FILE.search(name):
        return Kind.PATH, re.split(r"[/\\]", value)[-1] if re.match(r"/|[A-Za-z]:[/\\]", value) else value
    if _IDENTIFIER.search(name):
        return Kind.IDENTIFIER, scrubber.names.identifier(value) if _UUID.fullmatch(value) else REMOVED
    if _ADDRESS.search(name):
        return Kind.ADDRESS, REMOVED
    return None, value


def argument(text: str) -> str:
    """Scrub one command argument: keep option names, scripts and short numbers, remove values."""
    if _NUMBER.fullmatch(text):
        return text
    flag = _FLAG.fullmatch(text)
    if flag:
        value = flag[2]
        return flag[1] if value is None else f"{flag[1]}={value if _NUMBER.fullmatch(value) else REMOVED}"
    script = _SCRIPT.fullmatch(text)
    return script[1] if script else REMOVED


def is_identifying(column: str) -> bool:
    """Whether a column identifies a device, whether by text, bytes or number."""
    return bool(_IDENTIFYING.fullmatch(column))


def identifier(value: Value, scrubber: Scrubber) -> Value:
    """The replacement of a device identifier, in the form of the original."""
    if isinstance(value, str):
        plain = value.removeprefix("GPU-")
        if value in _EMPTY:
            return value
        return value[: -len(plain)] + scrubber.names.identifier(plain) if _UUID.fullmatch(plain) else REMOVED
    if isinstance(value, bytes):
        # Bytes that are zero except for the last two are our own replacements.
        ours = not any(value[:-2])
        return value if ours else bytes.fromhex(scrubber.names.identifier(value.hex())[-4:]).rjust(len(value), b"\0")
    if isinstance(value, int) and abs(value) >> 16:
        return int(scrubber.names.identifier(f"{value:x}")[-4:], 16)
    return value
