"""Keys of a torch.profiler trace whose values leak because of their meaning."""

from __future__ import annotations

import re

from warpline.scrub.addresses import is_address
from warpline.scrub.kinds import REMOVED, Kind
from warpline.scrub.text import Scrubber

_SENSITIVE_KEYS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (Kind.ENVIRONMENT, re.compile(r"(?i)(?:os_?)?(?:env|environ|environment|env_?vars?|environment_?variables?)")),
    (Kind.HOST, re.compile(r"(?i)(?:host|node|computer|machine|server)_?name|fqdn")),
    (Kind.USER, re.compile(r"(?i)(?:tw_)?user_?name|tw_user|log_?name|e-?mail")),
    (Kind.JOB, re.compile(r"(?i)(?:tw|mast|slurm|lsf|pbs)_\w+|job_?(?:name|id)|ai_rm_attribution")),
    (Kind.COMMAND, re.compile(r"(?i)cmd_?line|command_?line|(?:sys\.?)?argv")),
    (Kind.PATH, re.compile(r"traceName|(?i:cwd|working_?dir(?:ectory)?)")),
    (
        Kind.TOKEN,
        re.compile(
            r"(?i)[\w.-]*(?:token|secret|passw(?:or)?d|passphrase|api_?key|access_?key|private_?key|credentials?)"
        ),
    ),
)
"""Keys that are sensitive anywhere."""
_SENSITIVE_HEADER_KEYS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (Kind.HOST, re.compile(r"(?i)hosts?|nodes?|servers?")),
    (Kind.USER, re.compile(r"(?i)user|users|login|owner|author|started_?by")),
    (Kind.COMMAND, re.compile(r"(?i)cmd|command|program_?args")),
    (Kind.JOB, re.compile(r"(?i)run_?name|task_?(?:name|id)|cluster(?:_?name)?|queue|partition")),
)
"""Keys that are sensitive outside events only; within an event, a node or a command means something else."""
_NO_SECRET = re.compile(r"[\d.]*|(?i:true|false|none|null)")


def kind_of(key: str) -> Kind | None:
    """The kind of the value of a key, anywhere."""
    return next((kind for kind, pattern in _SENSITIVE_KEYS if pattern.fullmatch(key)), None)


def kind_in_header(key: str) -> Kind | None:
    """The kind of the value of a key outside events."""
    return next((kind for kind, pattern in (*_SENSITIVE_KEYS, *_SENSITIVE_HEADER_KEYS) if pattern.fullmatch(key)), None)


def learn_keyed(kind: Kind, value: str, scrubber: Scrubber) -> None:
    """Remember the account or machine that a key's value names."""
    if kind is Kind.HOST:
        scrubber.learn_host(value)
    elif kind is Kind.USER and "@" not in value and " " not in value:
        scrubber.learn_user(value)


def keyed_value(kind: Kind, value: str, scrubber: Scrubber) -> str:
    """The replacement of a key's value of that kind; the same text if it leaks nothing."""
    if not value or value == REMOVED:
        return value
    match kind:
        case Kind.HOST:
            return scrubber.names.address(value) if is_address(value) else scrubber.names.host(value)
        case Kind.USER:
            return scrubber.clean(value)[0] if "@" in value else scrubber.names.user(value)
        case Kind.PATH:
            return re.split(r"[/\\]", value)[-1] or REMOVED
        case Kind.TOKEN:
            return value if _NO_SECRET.fullmatch(value) else REMOVED
    return REMOVED
