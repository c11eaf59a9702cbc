"""How well and how fast kernel names are decoded.

    python benchmarks/kernel_names.py labelled tests/kernels/labelled.jsonl [--split test]
    python benchmarks/kernel_names.py corpus NAMES.jsonl

A labelled file has one JSON object a line: ``name``, ``family``, ``split``, ``class``, ``tensor_core``
(null = not judged), ``fields`` (``tile``, ``dtype.a`` …) and ``also`` (other classes that a careful
reader may give). A field counts only if it is printed; a class only if the decoder did not abstain.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warpline.kernels import KernelIdentity, identify

STREAM_LENGTH = 200_000


@dataclass
class Score:
    """Counts of one family, or of all."""

    names: int = 0
    right: int = 0
    wrong: int = 0
    abstained: int = 0
    core_judged: int = 0
    core_right: int = 0
    fields_labelled: int = 0
    fields_printed: int = 0
    fields_right: int = 0
    mistakes: list[str] = field(default_factory=list)

    def add(self, row: dict[str, Any], identity: KernelIdentity) -> None:
        """Judge one decoded name against its label."""
        self.names += 1
        accepted = {row["class"], *row.get("also", ())}
        short = row["name"][:110]
        if identity.kernel_class in accepted:
            self.right += 1
        elif not identity.known:
            self.abstained += 1
            self.mistakes.append(f"abstained, is {row['class']}: {short} ({identity.reasons.get('class')})")
        else:
            self.wrong += 1
            self.mistakes.append(f"{identity.kernel_class}, is {row['class']}: {short}")
        if row["tensor_core"] is not None:
            self.core_judged += 1
            if identity.tensor_core is row["tensor_core"]:
                self.core_right += 1
            else:
                self.mistakes.append(f"tensor core {identity.tensor_core}, is {row['tensor_core']}: {short}")
        for key, expected in row.get("fields", {}).items():
            value = printed(identity, key)
            self.fields_labelled += 1
            if value is None:
                continue
            self.fields_printed += 1
            if value == expected:
                self.fields_right += 1
            else:
                self.mistakes.append(f"{key} = {value}, is {expected}: {short}")


def printed(identity: KernelIdentity, key: str) -> Any:
    """The value of a field, ``dtype.a`` included."""
    if key.startswith("dtype."):
        return getattr(identity.dtype, key[6:])
    return getattr(identity, key)


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def score(rows: list[dict[str, Any]]) -> dict[str, Score]:
    """Scores by family, with ``all`` first."""
    scores: dict[str, Score] = {"all": Score()}
    for row in rows:
        identity = identify(row["name"])
        scores["all"].add(row, identity)
        scores.setdefault(row["family"], Score()).add(row, identity)
    return scores


def labelled(path: Path, split: str | None, quiet: bool) -> None:
    """Print the scores of a labelled file."""
    rows = [row for row in read(path) if split in (None, row["split"])]
    scores = score(rows)
    print(f"{'family':20} names  class %  wrong %  abstained %  tensor core %  fields right %  fields printed %")
    for family, found in scores.items():
        print(
            f"{family:20} {found.names:5} {share(found.right, found.names):8} {share(found.wrong, found.names):8} "
            f"{share(found.abstained, found.names):12} {share(found.core_right, found.core_judged):14} "
            f"{share(found.fields_right, found.fields_printed):15} "
            f"{share(found.fields_printed, found.fields_labelled):17}"
        )
    if not quiet:
        print()
        print("\n".join(scores["all"].mistakes))


def share(part: int, whole: int) -> str:
    """A percentage, or a dash where there is nothing to divide."""
    return f"{100 * part / whole:.1f}" if whole else "-"


def corpus(path: Path, unknown: bool) -> None:
    """Print the coverage of a file of names and the speed on it."""
    rows = read(path)
    names = [row["name"] for row in rows]
    started = time.process_time()
    decoded = [identify(name) for name in names]
    first = time.process_time() - started
    stream = [names[(at * 7919) % len(names)] for at in range(STREAM_LENGTH)]
    started = time.process_time()
    for name in stream:
        identify(name)
    cached = time.process_time() - started
    known = sum(identity.known for identity in decoded)
    print(
        f"{len(names)} names: {share(known, len(names))} % decoded, {share(len(names) - known, len(names))} % abstained"
    )
    print(f"first time {len(names) / first:,.0f} names/s, repeated {len(stream) / cached:,.0f} names/s")
    print("classes:", dict(Counter(identity.kernel_class for identity in decoded).most_common()))
    families: dict[str, list[bool]] = defaultdict(list)
    for row, identity in zip(rows, decoded, strict=True):
        families[row.get("family", "?")].append(identity.known)
    print("abstained by family:", {family: f"{flags.count(False)}/{len(flags)}" for family, flags in families.items()})
    if unknown:
        for identity in decoded:
            if not identity.known:
                print(f"{identity.name[:120]}  |  {identity.reasons.get('class')}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("labelled", "corpus"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--split", choices=("train", "test"))
    parser.add_argument("--quiet", action="store_true", help="no list of mistakes")
    parser.add_argument("--unknown", action="store_true", help="list the abstained names")
    options = parser.parse_args()
    if options.what == "labelled":
        labelled(options.path, options.split, options.quiet)
    else:
        corpus(options.path, options.unknown)


if __name__ == "__main__":
    main()
