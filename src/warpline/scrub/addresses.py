"""Machines and the ways to reach them: host names, IP and hardware addresses, URLs, e-mail, UUIDs."""

from __future__ import annotations

import re

from warpline.scrub.kinds import REMOVED, Kind
from warpline.scrub.pseudonyms import Pseudonyms, is_pseudonym
from warpline.scrub.rule import Rule

_PUBLIC = re.compile(
    r"(?:[\w-]+\.)*(?:nvidia\.com|pytorch\.org|python\.org|pypi\.org|kernel\.org|llvm\.org|cmake\.org|gnu\.org|w3\.org"
    r"|apache\.org|ubuntu\.com|debian\.org|docker\.(?:com|io)|readthedocs\.io|microsoft\.com|amd\.com|intel\.com"
    r"|wikipedia\.org|example\.(?:com|org|net)|anaconda\.(?:com|org)|conda\.io|freedesktop\.org|sqlite\.org|launchpad\.net|aka\.ms)",
    re.IGNORECASE,
)
"""Sites of vendors and public projects, which messages link to."""
_PUBLIC_PROJECT = re.compile(
    r"github\.com/(?:pytorch|NVIDIA|openai/triton|triton-lang|ROCm|RadeonOpenCompute|huggingface|vllm-project|python)\b"
)
_URL = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{1,15})://([^\s'\"<>\\)\]}\0]+)")
_IMAGE = re.compile(
    r"(?<![\w@./:-])((?:[a-z0-9-]+\.)+(?:com|net|org|io|dev|ai|cloud|local|internal|corp|lan|co|eu|de|cn|us|uk|aws))"
    r"(?::\d+)?/[\w./-]+:[\w.-]+"
)
_PUBLIC_REGISTRY = re.compile(
    r"(?:docker|nvcr|ghcr|quay|gcr)\.io|registry\.k8s\.io|mcr\.microsoft\.com|public\.ecr\.aws"
)
_GIT = re.compile(r"\bgit@[\w.-]+:[\w./~-]+")
_EMAIL = re.compile(r"(?<![\w.+-])([A-Za-z0-9_][\w.+-]*)@((?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,})\b")
_ENDINGS = "internal|local|localdomain|lan|corp|intranet|com|net|org|edu|gov|mil"
_DOTTED = re.compile(
    rf"(?<![\w@./:-])((?:[A-Za-z0-9-]+\.){{2,}}(?:{_ENDINGS}))"
    r"(?![\w(-]|\.\w)",
    re.IGNORECASE,
)
_CLOUD = re.compile(r"(?<![\w.-])ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?:\.[a-z][\w.-]*\w)?(?![\w-])")
_FIELD = re.compile(
    r"(?<![\w])((?:HOSTNAME|HOST|SLURMD_NODENAME|NODE_?NAME|COMPUTERNAME|MASTER_ADDR|[Hh]ost ?name)\s*[=:]\s*)"
    r"([A-Za-z0-9][\w.-]*)"
)
_ACCOUNT = re.compile(
    r"(?<![\w])((?:USER|LOGNAME|USERNAME|SUDO_USER|SLURM_JOB_USER|[Uu]ser ?name)\s*[=:]\s*)([A-Za-z_][\w.-]*)"
)
_BYTE = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_ADDRESS = rf"(?:{_BYTE}\.){{3}}{_BYTE}"
_IP4 = re.compile(rf"(?<![\w.+-])({_ADDRESS})(?![\w+-]|\.\d)")
_VERSION_BEFORE = re.compile(
    r"(?i)(?:==|[^/]/|\bv(?:er(?:sion)?)?\.?\W{0,3}|version\W{0,4}|release\W{0,2}|(?:cudnn|cuda|nccl|torch|driver|cublas|"
    r"curand|cufft|cusparse|cusolver|nvrtc|python|gcc|libfabric|tensorrt)\W{1,3})$"
)
"""Versions of CUDA libraries have four numbers too, for example cuRAND 10.3.2.106."""
_IP6 = re.compile(
    r"(?<![\w:.])((?:fe80|f[cd][0-9a-f]{2}|2[0-9a-f]{3})(?::[0-9a-f]{0,4}){2,7}|(?:[0-9a-f]{4}:){3,7}[0-9a-f]{4})(?![\w:])",
    re.IGNORECASE,
)
_HARDWARE = re.compile(r"(?<![\w:-])((?:[0-9A-Fa-f]{2}[:-]){5}(?:[0-9A-Fa-f]{2}[:-])*[0-9A-Fa-f]{2})(?![\w:-])")
_UUID = re.compile(r"(?<![0-9A-Za-z])([0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12})(?![\w-])")
_SERIAL = re.compile(
    r"(?i)(\b(?:serial(?: ?(?:number|no\.?))?|asset tag|machine[-_ ]?id)[\"']?\s*[:=]\s*[\"']?)([\w-]{6,})"
)


def _url(match: re.Match[str], names: Pseudonyms) -> str | None:
    scheme, rest = match[1], match[2]
    where, _, query = rest.partition("?")
    site = where.rpartition("@")[2]
    host, slash, path = site.partition("/")
    name, _, port = host.partition(":")
    if scheme.lower() == "file" and not host:
        return None
    shown = names.address(name) if is_address(name) else names.host(name)
    public = bool(_PUBLIC.fullmatch(name) or _PUBLIC_PROJECT.match(site))
    end = f":{port}" if port.isdigit() else ""
    if public or (shown == name and not is_pseudonym(name)):
        # A vendor's page or localhost: only the path and query may be private.
        shown, end = name, end + slash + path + ("?" + REMOVED[:-1] if query else "")
    elif path or query:
        end += "/" + REMOVED[:-1]
    # The pattern ends before a closing bracket; without a login or query, the text must not change.
    if f"{shown}{end}" == rest:
        return None
    return f"{scheme}://{shown}{end})" if end.endswith(REMOVED[:-1]) else f"{scheme}://{shown}{end}"


def _image(match: re.Match[str], names: Pseudonyms) -> str | None:
    public = _PUBLIC_REGISTRY.fullmatch(match[1]) or _PUBLIC.fullmatch(match[1])
    return None if public else f"{names.host(match[1])}/{REMOVED}"


def _git(match: re.Match[str], _: Pseudonyms) -> str:
    return REMOVED


def _email(match: re.Match[str], names: Pseudonyms) -> str | None:
    if re.fullmatch(r"example\.(?:com|org|net)", match[2]):
        return None
    return f"{names.user(match[1]) if names.user(match[1]) != match[1] else 'user'}@example.com"


def _dotted(match: re.Match[str], names: Pseudonyms) -> str | None:
    # Python's own dotted names, such as threading.local, have neither digit nor hyphen.
    if _PUBLIC.fullmatch(match[1]) or not re.search(r"[\d-]", match[1]) or is_pseudonym(match[1].partition(".")[0]):
        return None
    return names.host(match[1])


def _cloud(match: re.Match[str], names: Pseudonyms) -> str:
    return names.host(match[0])


def _field(match: re.Match[str], names: Pseudonyms) -> str | None:
    value = match[2]
    if is_address(value):
        return match[1] + names.address(value)
    return match[1] + names.host(value)


def _account(match: re.Match[str], names: Pseudonyms) -> str:
    return match[1] + names.user(match[2])


def _ip4(match: re.Match[str], names: Pseudonyms) -> str | None:
    before = match.string[max(0, match.start() - 16) : match.start()]
    return None if _VERSION_BEFORE.search(before) else names.address(match[1])


def _ip6(match: re.Match[str], names: Pseudonyms) -> str | None:
    text = match[1]
    return names.address(text) if re.search(r"\d", text) else None


def _hardware(match: re.Match[str], names: Pseudonyms) -> str:
    return names.hardware(match[1])


def _uuid(match: re.Match[str], names: Pseudonyms) -> str:
    return names.identifier(match[1])


def _serial(match: re.Match[str], _: Pseudonyms) -> str | None:
    return match[1] + REMOVED if re.search(r"\d", match[2]) else None


def is_address(text: str) -> bool:
    """Whether a text is exactly one IPv4 address."""
    return bool(re.fullmatch(_ADDRESS, text))


def hosts_in(text: str) -> set[str]:
    """The machines that a text names explicitly."""
    return {match[2] for match in _FIELD.finditer(text)} if "=" in text or ":" in text else set()


def accounts_in(text: str) -> set[str]:
    """The accounts that a text names explicitly."""
    return {match[2] for match in _ACCOUNT.finditer(text)} if "=" in text or ":" in text else set()


FIRST_RULES = (
    Rule(Kind.URL, _URL, _url, ("://",)),
    Rule(Kind.URL, _GIT, _git, ("git@",)),
    Rule(Kind.URL, _IMAGE, _image, ("/",)),
)
"""Rules that run before those for secrets and paths, because URLs contain both."""
RULES = (
    Rule(Kind.USER, _EMAIL, _email, ("@",)),
    Rule(Kind.USER, _ACCOUNT, _account, ("user", "logname")),
    Rule(Kind.HOST, _FIELD, _field, ("host", "node", "computername", "master_addr")),
    Rule(Kind.HOST, _CLOUD, _cloud, ("ip-",)),
    Rule(Kind.HOST, _DOTTED, _dotted, tuple(f".{end}" for end in _ENDINGS.split("|"))),
    Rule(Kind.IDENTIFIER, _UUID, _uuid, ("-",)),
    Rule(Kind.IDENTIFIER, _SERIAL, _serial, ("serial", "asset", "machine")),
    Rule(Kind.ADDRESS, _HARDWARE, _hardware, (":", "-")),
    Rule(Kind.ADDRESS, _IP6, _ip6, (":",)),
    Rule(Kind.ADDRESS, _IP4, _ip4, (".",)),
)
