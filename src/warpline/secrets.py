"""Passwords, keys and tokens: by their published prefixes, by the name before them, or by their randomness."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter

REMOVED = "(removed)"
"""Replaces a removed text; the nsys reader recognises it."""

_KNOWN = re.compile(
    r"""(?<![A-Za-z0-9])(?:
      hf_[A-Za-z0-9]{20,} | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_\w{20,} | glpat-[\w-]{16,}
    | sk-(?=[\w-]{0,80}\d)[\w-]{20,} | [srp]k_(?:live|test)_[A-Za-z0-9]{16,} | gsk_[A-Za-z0-9]{30,}
    | r8_[A-Za-z0-9]{30,} | xox[abeoprs]-[\w-]{10,} | A(?:KIA|SIA|ROA|IDA)[A-Z0-9]{12,} | AIza[\w-]{30,}
    | ya29\.[\w-]{20,}
    | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{30,} | dop_v1_[0-9a-f]{40,} | SG\.[\w-]{16,}\.[\w-]{16,} | nvapi-[\w-]{20,}
    | dckr_pat_[\w-]{20,} | eyJ[\w-]{8,999}+\.[\w-]{8,}(?:\.[\w-]*)? | \d{8,10}:AA[\w-]{30,}
    )""",
    re.VERBOSE,
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)", re.DOTALL
)
_AUTHORISATION = re.compile(
    r"(?i)(\bauthori[sz]ation[\"']?\s*[:=]\s*[\"']?)((?:(?:bearer|basic|token)\s+)?[^\s\"'\\]+)"
)
_BEARER = re.compile(r"(?i)(\bbearer\s+)((?=[^\s\"']*\d)[\w.~+/=-]{12,})")

SECRET_NAME = (
    r"[\w.-]*(?:token|secret|password|passwd|passphrase|api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key"
    r"|secret[_-]?key|account[_-]?key|credentials?|cookie|(?-i:[A-Z0-9]_(?:KEY|PAT|AUTH|PWD|PASS)|\bPGPASS))"
)
_ASSIGNED = re.compile(rf"(?i)(?<![\w.-])((?:--?)?{SECRET_NAME}\\?[\"']?\s*=(?!=)\s*\\?[\"']?)([^\s\"'\\;,&\0]+)")
_TOLD = re.compile(rf"(?i)(?<![\w.-])({SECRET_NAME}\\?[\"']?\s*:\s*\\?[\"']?)((?=[^\s\"']*\d)[^\s\"'\\;,&\0]{{6,}})")
_OPTION = re.compile(rf"(?i)(?<![\w.-])(?=[\w.-]*?(?<![\w-])-)({SECRET_NAME}\s+)([^\s\"'\0-][^\s\"'\0]*)")
# Numbers, types and identifiers, as in max_tokens=128, token=None or cls_token: torch.Size.
_NO_SECRET = re.compile(
    r"(?i)[\d.,e+-]+|true|false|yes|no|none|null|nan|str|int|float|bool|bytes|0x[0-9a-f]{1,16}|\W+"
    r"|(?:torch|self|tensor|np|args|cfg|config)\b.*|[<(\[{].*|" + re.escape(REMOVED)
)

_RUN = re.compile(r"(?<![\w+/$@.-])[A-Za-z0-9+/_-]{32,512}={0,2}(?![\w$@(<])")
_SEPARATORS = re.compile(r"[_/+=-]")
MAX_SEPARATOR_SHARE = 0.12
"""Two of base64's 64 characters are neither letters nor digits; names have an underscore every few letters."""
MIN_ENTROPY_BITS = 4.0
"""Bits per character. Thirty random letters and digits have 4.5 on average; kernel names repeat themselves."""
MIN_WORD_LETTERS = 4
MAX_WORD_SHARE = 0.25
"""Share of characters in runs of at least four lower-case letters: a third in CamelCase names, under a tenth in random
text."""
MIN_CLASS_CHANGE_SHARE = 0.45
"""Share of neighbours of different classes (upper case, lower case, digit): 0.62 in random text."""
_WORD = re.compile(rf"[a-z]{{{MIN_WORD_LETTERS},}}")
# Itanium mangling, and sizes such as 128x256.
_NAME = re.compile(r"_Z[A-Z0-9]|ILi\d|ELi\d|ELb[01]|NS\d?_|\dx\d")


def looks_random(word: str) -> bool:
    """Whether a word is random mixed-case letters and digits: a key, not a name or a hexadecimal hash."""
    if _NAME.search(word) or sum(map(len, _WORD.findall(word))) > MAX_WORD_SHARE * len(word):
        return False
    letters = _SEPARATORS.sub("", word)
    classes = ["d" if char.isdigit() else "u" if char.isupper() else "l" for char in letters]
    if len(word) - len(letters) > MAX_SEPARATOR_SHARE * len(word) or set(classes) != {"d", "u", "l"}:
        return False
    switches = sum(one != other for one, other in itertools.pairwise(classes))
    return entropy_bits(letters) >= MIN_ENTROPY_BITS and switches >= MIN_CLASS_CHANGE_SHARE * (len(letters) - 1)


def entropy_bits(text: str) -> float:
    """The Shannon entropy of the characters."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def _value(match: re.Match[str]) -> str:
    return match[0] if _NO_SECRET.fullmatch(match[2]) or REMOVED in match[2] else match[1] + REMOVED


def _random(match: re.Match[str]) -> str:
    return REMOVED if looks_random(match[0]) else match[0]


def without_secrets(text: str) -> str:
    """Remove the secrets from a text."""
    text = _KNOWN.sub(REMOVED, _PRIVATE_KEY.sub(REMOVED, text))
    for pattern in (_AUTHORISATION, _BEARER, _ASSIGNED, _TOLD, _OPTION):
        text = pattern.sub(_value, text)
    return _RUN.sub(_random, text)
