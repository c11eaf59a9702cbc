"""Shorten folders that name a person, a team or a site to what an analysis needs: the path within the project."""

from __future__ import annotations

import re

from warpline.scrub.kinds import Kind
from warpline.scrub.pseudonyms import GENERIC_USERS, Pseudonyms, is_pseudonym
from warpline.scrub.rule import Rule

_PART = r"[^/\s'\":;,()<>|\\\0]+"
_ABSOLUTE = r"(?<![\w.~/-])(?:(?<=file:)//)?"
HOME = re.compile(
    _ABSOLUTE + r"(/(?:(?:var|usr|export|data|nfs|net|afs|cfs|mnt/[a-z]|global|System/Volumes/Data)/)?"
    r"(?:home\d*|Users|users|homes|u\d*|run/media|media|(?:var/)?(?:spool/)?mail)/(?:([a-z])/(?=\2))?)"
    rf"({_PART})"
)
"""Home folders; some sites sort them by first letter."""
TILDE = re.compile(rf"(?<![\w.~/-])~([A-Za-z_][\w.-]*)(?=/{_PART})")
WINDOWS = re.compile(
    r"(?<![A-Za-z])([A-Za-z]:(?:\\{1,4}|/)(?:Users|Documents and Settings)(?:\\{1,4}|/))"
    r"([^\\/:*?\"'<>|\r\n\0]+)"
)
CACHE = re.compile(r"(\b(?:torchinductor|triton_cache|pip-build|jax_cache|tmux)[_-])([A-Za-z][\w.-]*)(?=[/\\]|$)")
"""Inductor and others put the account name into the name of their temporary folder."""

_SYSTEM_ROOT = re.compile(
    r"usr|lib(?:32|64)?|s?bin|etc|proc|sys|dev|boot|run|var|opt|tmp|root|workspaces?|workdir|app|code|content|kaggle|nix"
    r"|snap|home\d*|[Uu]sers|homes|u\d*|media|Library|System|Applications|private|cygdrive|databricks"
)
"""Folders that are the same on all machines or images of a kind; the paths below them are kept."""
SITE_ROOTS = (
    r"[\w-]*scratch\d*|mnt|Volumes|data\d*|datasets?|nfs\w*|lustre\w*|gpfs\w*|fsx\w*|beegfs|ceph\w*|projects?|proj|work\d*"
    r"|global|clusters?|srv|shared?|exports?|afs|net|builds|storage\d*|efs|dbfs|raid\d*|ssd\d*|nvme\d*|hdd\d*|disks?\d*"
    r"|cfs|archive|ptmp|group|groups|teams?|vol\d*|volumes?|models?|checkpoints?|local|hpc\w*|depot|lus|flash"
)
_FILE = (
    r"\.(?:py[cdx]?|so(?:\.\d+)*|cpp|cc|cuh?|h|hpp|json|ya?ml|toml|txt|csv|sh|pth?|ckpt|bin|safetensors|onnx|np[yz]"
    r"|parquet|gz|tar|zip|log|sqlite|nsys-rep|ncu-rep|qdrep|fits|h5|nc|zarr|png|jpe?g)\b"
)
_SITE_ROOT = re.compile(SITE_ROOTS)
SITE = re.compile(_ABSOLUTE + rf"/({SITE_ROOTS})/((?:{_PART}/)*)({_PART})?")
OTHER = re.compile(_ABSOLUTE + rf"/((?:{_PART}/)+)(?={_PART}{_FILE})")
"""A file below a root that is neither a system folder nor a common site folder."""
_LIBRARY = re.compile(r"(?:^|/)(?:lib(?:64)?/python\d|site-packages/|dist-packages/)")


def _home(match: re.Match[str], names: Pseudonyms) -> str | None:
    letter, user = match[2], match[3]
    if user.startswith("$") or user.isdigit():
        return None
    folder = match[1].removesuffix(f"{letter}/") if letter else match[1]
    name = names.user(user)
    return None if name == user else folder + name


def _user(match: re.Match[str], names: Pseudonyms) -> str:
    user = match[2].rstrip()
    return match[1] + names.user(user) + match[2][len(user) :]


def _tilde(match: re.Match[str], names: Pseudonyms) -> str:
    return "~" + names.user(match[1])


def shortened(folders: str, names: Pseudonyms) -> str:
    """Replace the folders with one pseudonym, down to the last folder or to a library."""
    library = _LIBRARY.search(folders)
    cut = library.start() + (folders[library.start()] == "/") if library else None
    if cut is None:
        parts = folders.split("/")[:-1]
        cut = len("/".join(parts[: max(len(parts) - 1, 1)])) + 1
    head, rest = folders[:cut].rstrip("/"), folders[cut:]
    return f"{names.folder(head)}/{rest}" if head else folders


def _site(match: re.Match[str], names: Pseudonyms) -> str | None:
    folders, last = match[2], match[3] or ""
    first = (folders or last).partition("/")[0]
    if is_pseudonym(first) or not (folders or last) or HOME.match(match[0]):
        return None
    if not folders:
        # A single entry of the root, such as /mnt/team: a folder unless it has a file extension.
        return None if "." in last else match[0][: -len(last)] + names.folder(last)
    return match[0][: len(match[0]) - len(folders + last)] + shortened(folders, names) + last


def _other(match: re.Match[str], names: Pseudonyms) -> str | None:
    root = match[1].partition("/")[0]
    if is_pseudonym(root) or _SYSTEM_ROOT.fullmatch(root) or _SITE_ROOT.fullmatch(root):
        return None
    return match[0][: len(match[0]) - len(match[1])] + shortened(match[1], names)


def users_in(text: str) -> set[str]:
    """The accounts whose folders a text names."""
    found = {match[3] for match in HOME.finditer(text)} if "/" in text else set()
    if ":" in text:
        found |= {match[2].strip() for match in WINDOWS.finditer(text)}
    return {name for name in found if not (is_pseudonym(name) or name.lower() in GENERIC_USERS or name.isdigit())}


RULES = (
    Rule(Kind.USER, HOME, _home, ("/",)),
    Rule(Kind.USER, TILDE, _tilde, ("~",)),
    Rule(Kind.USER, WINDOWS, _user, ("users", "documents and settings")),
    Rule(Kind.USER, CACHE, _user, ("torchinductor", "triton_cache", "pip-build", "jax_cache", "tmux")),
    Rule(Kind.PATH, SITE, _site, ("/",)),
    Rule(Kind.PATH, OTHER, _other, ("/",)),
)
