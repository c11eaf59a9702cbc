"""Parse a command line: assignments, wrappers, the tool, its options, and the command inside it."""

from __future__ import annotations

import re
import shlex
from difflib import get_close_matches

from msgspec import Struct
from msgspec.structs import replace

from warpline.errors import UsageError

TOOLS = {"nsys", "ncu", "nv-nsight-cu-cli", "docker", "podman", "nerdctl"}
_WRAPPERS = {"sudo", "env", "time", "nohup", "exec", "nice"}
_OPERATORS = {"&&", "||", ";", "|", "&"}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PROGRAM = re.compile(r"(?:.*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|mpirun|srun|uv)|[^=]*\.py")
"""What begins a program, and is no value of an option."""
_PLAIN = re.compile(r"[\w@%+=:,./$~{}…-]+")
"""Words that need no quotes; variables are left for the shell to expand."""

NSYS_VERBS = {"profile", "launch", "start", "stats", "export", "analyze", "recipe", "stop", "shutdown", "status"}
_NSYS_SWITCHES = {"-h", "--help", "--version", "-V"}
_NSYS_SHORT = {
    "-b": "--backtrace",
    "-c": "--capture-range",
    "-d": "--duration",
    "-e": "--env-var",
    "-f": "--force-overwrite",
    "-n": "--inherit-environment",
    "-o": "--output",
    "-p": "--nvtx-capture",
    "-s": "--sample",
    "-t": "--trace",
    "-w": "--show-output",
    "-x": "--stop-on-exit",
    "-y": "--delay",
}
_TRUE_OR_FALSE = {"--force-overwrite", "--stats", "--cuda-memory-usage", "--trace-fork-before-exec"}
"""Options of nsys that may be given without a value."""
_NCU_SHORT = {
    "-c": "--launch-count",
    "-f": "--force-overwrite",
    "-k": "--kernel-name",
    "-o": "--export",
    "-s": "--launch-skip",
    "-i": "--import",
}
_NCU_SWITCHES = {
    *("--force-overwrite", "--nvtx", "--csv", "--details-all", "--print-fp", "--call-stack", "--verbose", "--quiet"),
    *("--force", "--fp", "--list-chips", "--open-in-ui", "--section-folder-restore", "--print-rule-details"),
    *("--disable-profiler-start-stop", "--print-metric-attribution", "--lockstep-kernel-launch", "-v"),
    *("--list-sets", "--list-sections", "--list-rules", "--list-metrics", "--query-metrics", "--version", "--help"),
    *("--null-stdin", "--disable-extra-suffixes", "--support-32bit", "-h"),
}
_DOCKER_SWITCHES = {
    *("--rm", "--init", "--privileged", "--read-only", "--detach", "-d", "-i", "-t", "-it", "-ti", "--interactive"),
    *("--tty", "-P", "--publish-all", "--no-healthcheck", "-itd", "-dit"),
}


class CommandOption(Struct, frozen=True):
    """One option as given; ``name`` is the long form if there is one."""

    name: str
    value: str | None
    words: tuple[str, ...]


class ParsedCommand(Struct, frozen=True):
    """One command; ``inner`` is the command that it runs, if that is a tool too."""

    before: tuple[str, ...]
    """Assignments and wrappers in front of it."""
    tool: str
    """nsys, ncu, docker, or empty for any other program."""
    path: str
    """The tool as typed."""
    verb: str
    options: tuple[CommandOption, ...]
    image: str
    program: tuple[str, ...]
    """What it runs, as words; the whole command if it is not a tool."""
    inner: ParsedCommand | None = None

    def value(self, name: str) -> str | None:
        """The last value given for an option; an option without value counts as ``true``."""
        given = [option.value for option in self.options if option.name == name]
        return (given[-1] if given[-1] is not None else "true") if given else None

    def values(self, name: str) -> list[str]:
        """All values given for an option."""
        return [option.value or "" for option in self.options if option.name == name]

    def with_option(self, name: str, value: str | None) -> ParsedCommand:
        """A copy with an option set, in its old place or at the end."""
        separate = self.tool == "ncu"
        words = (name,) if value is None else ((name, value) if separate else (f"{name}={value}",))
        new = CommandOption(name, value, words)
        names = [option.name for option in self.options]
        place = names.index(name) if name in names else len(names)
        before, after = self.options[:place], self.options[place:]
        return replace(self, options=(*before, new, *(option for option in after if option.name != name)))

    def with_before(self, word: str) -> ParsedCommand:
        """A copy with one more assignment in front."""
        return replace(self, before=(word, *self.before))

    @property
    def environment(self) -> dict[str, str]:
        """The assignments in front, and those of nsys's --env-var and docker's -e."""
        words = [word for word in self.before if _ASSIGNMENT.match(word)]
        names = {"nsys": ("--env-var",), "docker": ("-e", "--env")}.get(self.tool, ())
        for name in names:
            words += [word for value in self.values(name) for word in value.split(",")]
        return {key: value for key, _, value in (word.partition("=") for word in words)}

    def words(self) -> tuple[str, ...]:
        """The command as words."""
        options = [word for option in self.options for word in option.words]
        verb = (self.verb,) if self.verb else ()
        image = (self.image,) if self.image else ()
        path = (self.path,) if self.path else ()
        program = self.inner.words() if self.inner is not None else self.program
        return (*self.before, *path, *verb, *options, *image, *program)

    def text(self) -> str:
        """The command as text."""
        return " ".join(quoted(word) for word in self.words())


def quoted(word: str) -> str:
    """A word quoted for a shell; variables are not quoted."""
    if _PLAIN.fullmatch(word):
        return word
    return shlex.quote(word) if set(word) & {'"', "`", "\\"} else f'"{word}"'


class Line(Struct, frozen=True):
    """A whole line: commands, and the operators between them."""

    commands: tuple[ParsedCommand, ...]
    operators: tuple[str, ...]

    def text(self) -> str:
        """The line as text."""
        words = [self.commands[0].text()]
        for operator, command in zip(self.operators, self.commands[1:], strict=True):
            words += [operator, command.text()]
        return " ".join(words)


def parse_line(text: str) -> Line:
    """Parse a line into its commands; raise ``UsageError`` if it is not a command line."""
    joined = text.replace("\\\r\n", " ").replace("\\\n", " ").replace("\n", " ; ")
    try:
        lexer = shlex.shlex(joined, posix=True, punctuation_chars=";|&")
        lexer.whitespace_split = True
        lexer.commenters = ""
        words = list(lexer)
    except ValueError as error:
        raise UsageError("bad-command", f"the command line cannot be parsed: {error}", "check its quotes") from error
    return line_of([word for word in words if word != "$"])


def line_of(words: list[str]) -> Line:
    """The commands of a line that a shell has already split into words."""
    groups: list[list[str]] = [[]]
    operators: list[str] = []
    for word in words:
        if word in _OPERATORS:
            if groups[-1]:
                groups.append([])
                operators.append(word)
        elif word:
            groups[-1].append(word)
    commands = tuple(parse(tuple(group)) for group in groups if group)
    if not commands:
        raise UsageError("bad-command", "the command line is empty", 'warpline doctor "nsys profile … python train.py"')
    return Line(commands, tuple(operators[: len(commands) - 1]))


def parse(words: tuple[str, ...]) -> ParsedCommand:
    """One command."""
    position = 0
    while position < len(words):
        word = words[position]
        if _ASSIGNMENT.match(word) or word in _WRAPPERS or (position and word.startswith("-")):
            position += 1
        else:
            break
    before, rest = words[:position], words[position:]
    name = rest[0].rpartition("/")[2] if rest else ""
    if name not in TOOLS:
        at = next((i for i, word in enumerate(rest[1:], 1) if word.rpartition("/")[2] in ("nsys", "ncu")), None)
        if at is not None:
            # A launcher such as torchrun, mpirun or srun, with a profiler for every rank.
            inside = parse(rest[at:])
            if inside.tool and (inside.verb or inside.program):
                return replace(inside, before=(*before, *rest[:at], *inside.before))
        return ParsedCommand(before, "", "", "", (), "", rest)
    if name == "nsys":
        return _nsys(before, rest)
    return _ncu(before, rest) if name in ("ncu", "nv-nsight-cu-cli") else _docker(before, rest)


def _nsys(before: tuple[str, ...], words: tuple[str, ...]) -> ParsedCommand:
    # A word that is nearly a verb is one, misspelt.
    verb = words[1] if len(words) > 1 and get_close_matches(words[1], NSYS_VERBS, 1, 0.75) else ""
    options, program = _options(words[2 if verb else 1 :], _NSYS_SHORT, _NSYS_SWITCHES, _TRUE_OR_FALSE)
    return _with_inner(ParsedCommand(before, "nsys", words[0], verb, options, "", program))


def _ncu(before: tuple[str, ...], words: tuple[str, ...]) -> ParsedCommand:
    options, program = _options(words[1:], _NCU_SHORT, _NCU_SWITCHES, set())
    return _with_inner(ParsedCommand(before, "ncu", words[0], "", options, "", program))


def _docker(before: tuple[str, ...], words: tuple[str, ...]) -> ParsedCommand:
    verb = words[1] if len(words) > 1 else ""
    if verb not in ("run", "exec"):
        return ParsedCommand(before, "docker", words[0], verb, (), "", words[2:])
    options, rest = _options(words[2:], {}, _DOCKER_SWITCHES, set())
    image = rest[0] if rest else ""
    return _with_inner(ParsedCommand(before, "docker", words[0], verb, options, image, rest[1:]))


def _with_inner(command: ParsedCommand) -> ParsedCommand:
    """The same with the command that it runs, if that is a tool too."""
    inner = parse(command.program) if command.program else None
    return replace(command, inner=inner) if inner is not None and inner.tool else command


def _options(
    words: tuple[str, ...], short: dict[str, str], switches: set[str], optional: set[str]
) -> tuple[tuple[CommandOption, ...], tuple[str, ...]]:
    """The options in front, and the rest."""
    found: list[CommandOption] = []
    position = 0
    while position < len(words) and words[position].startswith("-"):
        word = words[position]
        position += 1
        if word == "--":
            break
        name, equals, value = word.partition("=")
        name = short.get(name, name)
        following = words[position] if position < len(words) else None
        if equals:
            found.append(CommandOption(name, value, (word,)))
        elif (
            name in switches
            or following is None
            or (name in optional and following not in ("true", "false"))
            or _PROGRAM.fullmatch(following)
        ):
            found.append(CommandOption(name, None, (word,)))
        else:
            found.append(CommandOption(name, following, (word, following)))
            position += 1
    return tuple(found), words[position:]
