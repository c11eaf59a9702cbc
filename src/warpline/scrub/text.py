"""The scrubber: returns a text without its leaks, and the kinds of leaks."""

from __future__ import annotations

import re
from collections.abc import Collection

from warpline.scrub import addresses, paths, secrets
from warpline.scrub.binary import clean_bytes
from warpline.scrub.kinds import REMOVED, Kind
from warpline.scrub.pseudonyms import GENERIC_HOSTS, GENERIC_USERS, Pseudonyms, is_pseudonym
from warpline.scrub.rule import Rule

RULES: tuple[Rule, ...] = (*addresses.FIRST_RULES, *secrets.RULES, *paths.RULES, *addresses.RULES, *secrets.LAST_RULES)
_VARIABLE = r"(?:export |declare -x )?[A-Za-z_][A-Za-z0-9_]*="
_VARIABLE_LINES = re.compile(rf"(?:(?<=\n)|\A)(?:{_VARIABLE}[^\n]*(?:\n|\Z)){{4,}}")
"""Four assignments on separate lines, as ``env`` prints them."""
_VARIABLE_START = re.compile(_VARIABLE)
_BINARY = re.compile(r"[\x01-\x08\x0e-\x1a\x1c-\x1f]")
MIN_LEARNT_CHARS = 5
"""Shorter names are not searched for in running text: they would match by chance."""
# Names that are also chip names, which must stay.
_CHIP = re.compile(r"(?i)(?:[a-z]{1,3}\d{2,4}[a-z]?|mi\d{3}x?)")
MAX_CACHED_TEXTS = 50_000
MAX_CACHED_CHARS = 1024
"""Limits of the results kept for repeated texts: at most about 100 MB."""


class Scrubber:
    """Scrubs the texts of one file; names learnt in one place are replaced everywhere."""

    def __init__(self, keep: Collection[Kind] = ()) -> None:
        self.keep = frozenset(keep)
        self.names = Pseudonyms()
        self.hosts: dict[str, None] = {}
        self.users: dict[str, None] = {}
        self._rules = tuple(rule for rule in RULES if rule.kind not in self.keep)
        self._learnt: tuple[Rule, ...] | None = None
        self._known: dict[str, tuple[str, tuple[Kind, ...]]] = {}

    def learn(self, text: str) -> None:
        """Remember the accounts and machines that a text names."""
        for user in sorted(paths.users_in(text) | addresses.accounts_in(text)):
            self.learn_user(user)
        for host in sorted(addresses.hosts_in(text)):
            self.learn_host(host)

    def learn_user(self, name: str) -> None:
        """Remember an account."""
        if name not in self.users and not is_pseudonym(name) and name.lower() not in GENERIC_USERS:
            self.users[name] = None
            self.names.user(name)
            self._forget()

    def learn_host(self, name: str) -> None:
        """Remember a machine, by its full and short names."""
        for form in (name, name.partition(".")[0]):
            if form not in self.hosts and not is_pseudonym(form) and form.lower() not in GENERIC_HOSTS:
                self.hosts[form] = None
                self.names.host(form)
                self._forget()

    def _forget(self) -> None:
        self._learnt = None
        self._known.clear()

    def clean(self, text: str) -> tuple[str, tuple[Kind, ...]]:
        """The scrubbed text, and the kind of each leak."""
        known = self._known.get(text)
        if known is not None:
            return known
        result = self._clean(text)
        if len(text) <= MAX_CACHED_CHARS:
            if len(self._known) >= MAX_CACHED_TEXTS:
                self._known.clear()
            self._known[text] = result
        return result

    def _clean(self, text: str) -> tuple[str, tuple[Kind, ...]]:
        found: list[Kind] = []
        inner = text.strip("\0")
        if "\0" in inner:
            return self._clean_parts(text, inner)
        if Kind.ENVIRONMENT not in self.keep and text.count("\n") >= 3:
            text, blocks = _VARIABLE_LINES.subn(f"{REMOVED}\n", text)
            found += [Kind.ENVIRONMENT] * blocks
        if Kind.TOKEN not in self.keep:
            for rule in secrets.FIRST_RULES:
                if rule.may_match(text.lower()):
                    text = rule.apply(text, self.names, found)
        if "\n" not in text.rstrip("\n"):
            return self._clean_line(text, found), tuple(found)
        return "".join(self._clean_line(line, found) for line in text.splitlines(keepends=True)), tuple(found)

    def _clean_line(self, text: str, found: list[Kind]) -> str:
        if self._learnt is None:
            self._learnt = self._learnt_rules()
        lowered = text.lower()
        for rule in (*self._rules, *self._learnt):
            if rule.may_match(lowered):
                text = rule.apply(text, self.names, found)
        return text

    def _clean_parts(self, text: str, inner: str) -> tuple[str, tuple[Kind, ...]]:
        """Texts separated by zero bytes, as /proc shows an environment or a command line; empty otherwise."""
        if _BINARY.search(inner):
            raw, kinds = clean_bytes(text.encode("utf-8", "surrogateescape"), self.clean)
            return raw.decode("utf-8", "surrogateescape"), kinds
        parts = [part for part in inner.split("\0") if part]
        kind = Kind.ENVIRONMENT if any(map(_VARIABLE_START.match, parts)) else Kind.COMMAND
        if kind in self.keep:
            cleaned = [self.clean(part) for part in text.split("\0")]
            return "\0".join(new for new, _ in cleaned), tuple(found for _, kinds in cleaned for found in kinds)
        return REMOVED, (kind,)

    def _learnt_rules(self) -> tuple[Rule, ...]:
        """Rules for the names learnt from this file."""
        rules = []
        users = [name for name in self.users if len(name) > 1]
        if users and Kind.USER not in self.keep:
            folder = re.compile(rf"(?<=[/\\])({_either(users)})(?=[/\\\s'\":;,)]|$)")
            rules.append(Rule(Kind.USER, folder, _own_folder, ("/", "\\")))
            at = re.compile(rf"(?<![\w.-])({_either(users)})(?=@[A-Za-z])")
            rules.append(Rule(Kind.USER, at, lambda match, names: names.user(match[1]), ("@",)))
            distinct = [name for name in users if len(name) >= MIN_LEARNT_CHARS]
            if distinct:
                word = re.compile(rf"(?<![\w.:$/\\-])({_either(distinct)})(?![\w.(:<-]*[\w(:<])")
                rules.append(Rule(Kind.USER, word, lambda match, names: names.user(match[1]), ()))
        hosts = [name for name in self.hosts if _distinctive(name)]
        if hosts and Kind.HOST not in self.keep:
            word = re.compile(rf"(?<![\w-])({_either(hosts)})(?![\w-])")
            rules.append(Rule(Kind.HOST, word, lambda match, names: names.host(match[1]), ()))
        return tuple(rules)


def _either(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))


def _own_folder(match: re.Match[str], names: Pseudonyms) -> str | None:
    """A folder named like an account, unless it belongs to a library."""
    before = match.string[: match.start()].rpartition(" ")[2]
    return None if "-packages/" in before or "lib/python" in before else names.user(match[1])


def _distinctive(host: str) -> bool:
    """Whether a machine name is distinct from a word or a chip name in running text."""
    if len(host) < MIN_LEARNT_CHARS or _CHIP.fullmatch(host):
        return False
    return bool(re.search(r"[\d.-]", host)) or len(host) >= 8
