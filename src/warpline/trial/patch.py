"""The best combination as a git diff: each change where the first run saw its place, else the lines to write.

Edits are made on the text, at places that the syntax tree gives, so that everything else stays as it is. A file whose
edited text does not parse keeps its text.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct

from warpline.capture.trial.use import ModuleUse, ProgramUse
from warpline.trial.answer import TrialAnswer, TriedFix
from warpline.trial.candidates import tryable
from warpline.trial.lines import BEFORE_WRAPPING, changed_modules, measured_number, module_lines


class SourcePlace(Struct, frozen=True):
    """A line of the program's source."""

    file: str
    line: int

    @classmethod
    def of(cls, text: str) -> SourcePlace | None:
        """From `train.py:12`; None if it is not known."""
        file, _, line = text.rpartition(":")
        return cls(file, int(line)) if file and line.isdigit() else None


class Patch(Struct, frozen=True):
    """A diff, and what it does not hold."""

    diff: str
    by_hand: tuple[TriedFix, ...]
    """Fixes whose place is not known."""

    @property
    def text(self) -> str:
        """As a file: git ignores the lines before the diff."""
        lines = [f"# {row.name}, by hand: {row.lines.splitlines()[0]}\n" for row in self.by_hand]
        return "".join(lines) + self.diff


Edit = Callable[[str, int], str | None]
"""A source with a change at a line; None if the line does not have what is changed."""


def make_patch(answer: TrialAnswer, folder: Path) -> Patch:
    """The best combination, for the files of the program in this folder."""
    sources: dict[str, str] = {}
    by_hand = []
    for name in answer.best:
        row = answer.row(name)
        if row is None:
            continue
        changed = _applied(row, answer.use, folder, sources)
        if changed is None:
            by_hand.append(row)
        else:
            sources = changed
    parts = [_diff(file, (folder / file).read_text(), text) for file, text in sorted(sources.items())]
    return Patch("".join(parts), tuple(by_hand))


def _diff(file: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{file}", f"b/{file}"
    )
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return f"diff --git a/{file} b/{file}\n{text}" if text else ""


def _applied(row: TriedFix, use: ProgramUse, folder: Path, sources: dict[str, str]) -> dict[str, str] | None:
    """The sources with one fix more; None if one of its places is not known."""
    edits = edits_of(row, use)
    changed = dict(sources)
    if not edits:
        return None
    # Lines were seen in the unchanged file: edits that add lines come last, from the bottom up.
    for place, edit in edits:
        path = folder / place.file
        if not path.is_relative_to(folder) or not path.is_file():
            return None
        file = str(path.relative_to(folder))
        original = path.read_text()
        before = changed.get(file, original)
        line = _same_line(original, before, place.line)
        after = edit(before, line) if line is not None else None
        if after is None or not _parses(after):
            return None
        changed[file] = _with_torch(after)
    return changed


def _same_line(original: str, changed: str, line: int) -> int | None:
    """Where a line of the original is now."""
    matcher = difflib.SequenceMatcher(None, original.splitlines(), changed.splitlines(), autojunk=False)
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
        if start < line <= end:
            if tag == "equal" or end - start == new_end - new_start:
                return new_start + line - start
            return min(new_start + line - start, new_end) if tag == "replace" else None
    return None


def edits_of(row: TriedFix, use: ProgramUse) -> list[tuple[SourcePlace, Edit]]:
    """Where a fix is made, and how; empty if a place is not known."""
    name = row.name.partition("=")[0]
    match name:
        case "fused_optimizer":
            slow = [one.place for one in use.optimizers if one.can_fuse and not one.is_fused]
            return _at(dict.fromkeys(slow, call_with(fused="True")).items())
        case "prefetch":
            return _at(_prefetching(use, int(measured_number(name, row.proof) or 4)).items())
        case "pin_memory":
            pageable = [one.place for one in use.loaders if not one.is_pinned]
            return _at(dict.fromkeys(pageable, call_with(pin_memory="True")).items())
        case "set_to_none":
            return _at([(use.places.get("zero_grad", ""), call_with(set_to_none="True"))])
        case "static_cache":
            return _at([(use.places.get("generate", ""), call_with("generate", cache_implementation="'static'"))])
        case "no_empty_cache":
            return _at([(use.places.get("empty_cache", ""), without_statement)])
        case "tf32" | "cudnn_benchmark":
            main = _main_place(use)
            return [(main, after_import(row.lines))] if main else []
        case "bf16":
            return _autocast(use)
    modules = {(one.place, one.name): one for one in changed_modules(name, use)}.values()
    if name in BEFORE_WRAPPING and any(one.inside for one in modules):
        return []  # the place known is where the wrapper is made
    return _at([(one.place, after_statement(one, tryable()[name][0].lines)) for one in modules])


def _prefetching(use: ProgramUse, workers: int) -> dict[str, Edit]:
    """By place, for the loaders that the change acts on: each worker more would yield all of an iterable dataset."""
    more = {
        one.place: one.workers if one.is_iterable else max(one.workers, workers)
        for one in use.loaders
        if not one.is_persistent and (one.workers or not one.is_iterable)
    }
    return {
        place: call_with(num_workers=str(number), persistent_workers="True", prefetch_factor="4")
        for place, number in more.items()
    }


def _at(edits: Iterable[tuple[str, Edit]]) -> list[tuple[SourcePlace, Edit]]:
    """The edits, if all places are known."""
    found = [(SourcePlace.of(place), edit) for place, edit in edits]
    known = [(place, edit) for place, edit in found if place is not None]
    return known if len(known) == len(found) else []


def _main_place(use: ProgramUse) -> SourcePlace | None:
    """The file in which the program's outermost frame is."""
    frames = [*use.backward_frames[-1:], *(module.calls[-1] for module in use.modules if module.calls)]
    return SourcePlace.of(frames[0]) if frames else None


# Edits.


def call_with(name: str = "", **keywords: str) -> Edit:
    """Give the call at the line these keywords; with a name, the call of that."""

    def edit(source: str, line: int) -> str | None:
        call = _call_at(ast.parse(source), line, name)
        if call is None:
            return None
        text = source
        for keyword, value in keywords.items():
            call = _call_at(ast.parse(text), line, name)
            if call is None:
                return None
            own = next((one for one in call.keywords if one.arg == keyword), None)
            if own is not None:
                text = _replaced(text, own.value, value)
            else:
                end = _offset(text, call.end_lineno or 0, call.end_col_offset or 0) - 1
                before = text[:end].rstrip()
                comma = "" if before.endswith((",", "(")) else ", "
                space = " " if before.endswith(",") else ""
                text = f"{before}{comma}{space}{keyword}={value}{text[end:]}"
        return text

    return edit


def without_statement(source: str, line: int) -> str | None:
    """Leave out the statement at the line."""
    statement = _statement_at(ast.parse(source), line)
    return _replaced(source, statement, "pass") if isinstance(statement, ast.Expr) else None


def after_import(text: str) -> Edit:
    """Write a line after the file's import of torch."""

    def edit(source: str, line: int) -> str | None:
        for statement in ast.parse(source).body:
            names = [alias.name for alias in getattr(statement, "names", ())]
            if isinstance(statement, ast.Import) and "torch" in names:
                return _line_after(source, statement, text)
        return None

    return edit


def after_statement(module: ModuleUse, lines: str) -> Edit:
    """Write lines after the assignment that made a module."""

    def edit(source: str, line: int) -> str | None:
        statement = _statement_at(ast.parse(source), line)
        variable = _variable(statement, module.name)
        return _line_after(source, statement, module_lines(lines, module, variable)) if statement and variable else None

    return edit


def _autocast(use: ProgramUse) -> list[tuple[SourcePlace, Edit]]:
    """From the first call of a module to backward(), if both stand in one block, and no other loss has forwards of its
    own, which would then get bfloat16 without autocast."""
    device = "cuda" if use.on_gpu else "cpu"
    for frame in () if use.backward_elsewhere else use.backward_frames:
        last = SourcePlace.of(frame)
        calls = [place for module in use.modules for place in map(SourcePlace.of, module.calls) if place and last]
        same_file = [place for place in calls if last and place.file == last.file and place.line <= last.line]
        if last and same_file:
            first = min(same_file, key=lambda place: place.line)
            return [(last, in_autocast(last.line - first.line, device))]
    return []


def in_autocast(lines_before: int, device: str) -> Edit:
    """Put the statements from so many lines before to the one at the line, without it, under autocast."""

    def edit(source: str, line: int) -> str | None:
        tree = ast.parse(source)
        for block in _blocks(tree):
            first = next((place for place, one in enumerate(block) if _covers(one, line - lines_before)), None)
            last = next((place for place, one in enumerate(block) if _covers(one, line)), None)
            if (
                first is None
                or last is None
                or last <= first
                or block[last].lineno <= (block[last - 1].end_lineno or 0)
            ):
                continue
            lines = source.splitlines(keepends=True)
            start, end = block[first].lineno - 1, block[last - 1].end_lineno or 0
            indent = lines[start][: block[first].col_offset]
            if indent.strip():
                return None
            inside = [f"    {one}" if one.strip() else one for one in lines[start:end]]
            head = f"{indent}with torch.autocast('{device}', torch.bfloat16):\n"
            return "".join([*lines[:start], head, *inside, *lines[end:]])
        return None

    return edit


# The syntax tree.


def _covers(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _blocks(tree: ast.AST) -> list[list[ast.stmt]]:
    """All lists of statements, innermost first."""
    found = [
        body
        for node in ast.walk(tree)
        for field in ("body", "orelse", "finalbody")
        if isinstance(body := getattr(node, field, None), list) and body and isinstance(body[0], ast.stmt)
    ]
    return found[::-1]


def _statement_at(tree: ast.AST, line: int) -> ast.stmt | None:
    """The smallest statement that covers the line; of several on it, the first."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and _covers(node, line)]
    return min(found, key=lambda node: ((node.end_lineno or 0) - node.lineno, node.col_offset), default=None)


def _call_at(tree: ast.AST, line: int, name: str) -> ast.Call | None:
    """The outermost call that starts on the line, or covers it; with a name, of that."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _covers(node, line) and (not name or _name(node.func) == name)
    ]
    makers = [node for node in found if _name(node.func) in MAKERS] if not name else found
    return max(makers, key=lambda node: node.lineno, default=None)


MAKERS = frozenset(("AdamW", "Adam", "SGD", "Adagrad", "DataLoader", "zero_grad"))
"""Calls whose arguments are changed; a place of a call also covers what is called around it."""


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _variable(statement: ast.stmt | None, module: str) -> str | None:
    """The variable to which a module of this class is assigned."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
        return None
    target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
    pairs = [(target, statement.value)]
    if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
        pairs = list(zip(target.elts, statement.value.elts, strict=False))
    fits = [
        one
        for one, value in pairs
        if isinstance(one, (ast.Name, ast.Attribute)) and _makes(value, module, by_name=len(pairs) > 1)
    ]
    return ast.unparse(fits[0]) if len(fits) == 1 else None


def _makes(value: ast.expr, module: str, by_name: bool) -> bool:
    """Whether the value is the module: `Net()`, `Net().to(device)`, or what a function returns that does not get it."""
    if not isinstance(value, ast.Call):
        return False
    if _name(value.func) == module:
        return True
    if isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Call):
        return _makes(value.func.value, module, by_name)
    return not by_name and not any(isinstance(one, ast.Call) and _name(one.func) == module for one in ast.walk(value))


def _offset(source: str, line: int, column: int) -> int:
    """SourcePlace in the text of a line and a column, which the tree counts in bytes."""
    lines = source.splitlines(keepends=True)
    return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())


def _replaced(source: str, node: ast.stmt | ast.expr, text: str) -> str:
    start = _offset(source, node.lineno, node.col_offset)
    end = _offset(source, node.end_lineno or node.lineno, node.end_col_offset or 0)
    return source[:start] + text + source[end:]


def _line_after(source: str, statement: ast.stmt, text: str) -> str:
    lines = source.splitlines(keepends=True)
    first, end = lines[statement.lineno - 1], statement.end_lineno or statement.lineno
    indent = first[: len(first) - len(first.lstrip())]
    if not lines[end - 1].endswith("\n"):
        lines[end - 1] += "\n"
    return "".join([*lines[:end], f"{indent}{text}\n", *lines[end:]])


def _with_torch(source: str) -> str:
    """Import torch where lines that were added name it and the file imports only what is in it."""
    tree = ast.parse(source)
    if not any(isinstance(node, ast.Name) and node.id == "torch" for node in ast.walk(tree)):
        return source
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    bound = {alias.asname or alias.name.partition(".")[0] for node in imports for alias in node.names}
    first = next((node for node in imports if _package(node) == "torch" and node.col_offset == 0), None)
    if "torch" in bound or first is None:
        return source
    lines = source.splitlines(keepends=True)
    return "".join([*lines[: first.lineno - 1], "import torch\n", *lines[first.lineno - 1 :]])


def _package(node: ast.Import | ast.ImportFrom) -> str:
    module = node.names[0].name if isinstance(node, ast.Import) else node.module or ""
    return module.partition(".")[0]


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True
