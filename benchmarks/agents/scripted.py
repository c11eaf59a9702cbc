"""A client without a model: it drives the server through the loop of the skill, and its answers are graded.

    python -m benchmarks.agents.scripted [--json FILE] [--only NAME]

It shows that the server's first pages hold what an agent needs, what they cost in tokens, and how long they take. It
does not show what a model would make of them: benchmarks/agents/README.md says how to ask one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from benchmarks.agents.cases import Case, Grade, cases, grade
from faults.recorded import RECORDINGS

TOKEN_CHARACTERS = 3
"""As docs/commands/mcp.md counts."""


@dataclass
class Session:
    """What one case took."""

    name: str
    calls: int = 0
    characters: int = 0
    largest: int = 0
    seconds: float = 0.0
    answer: dict[str, Any] = field(default_factory=dict)
    grade: Grade | None = None


async def ask(client: Client, session: Session, tool: str, **arguments: Any) -> dict[str, Any]:
    """One call, counted."""
    start = time.perf_counter()
    result = await client.call_tool(tool, arguments)
    text = "".join(getattr(part, "text", "") for part in result.content)
    session.calls += 1
    session.characters += len(text)
    session.largest = max(session.largest, len(text))
    session.seconds += time.perf_counter() - start
    page: dict[str, Any] = json.loads(text)
    return page


async def solve(client: Client, case: Case) -> Session:
    """Diagnose, choose one fix, ask what it gains, compare the recordings before and after."""
    session = Session(case.name)
    parts = (await ask(client, session, "diagnose", path=str(case.before)))["parts"]
    verdict = parts["/verdict"]
    session.answer = {"cause": verdict["cause"], "fix": verdict["fix"]}
    if verdict["fix"]:
        predicted = await ask(client, session, "whatif", path=str(case.before), fixes=[verdict["fix"]])
        session.answer["gain"] = predicted.get("parts", {}).get("/gain")
    compared = await ask(client, session, "compare", before=[str(case.before)], after=[str(case.after)])
    session.answer["verdict"] = compared.get("parts", {}).get("/verdict")
    session.grade = grade(case, session.answer)
    return session


async def solve_all(chosen: Sequence[Case]) -> list[Session]:
    """All cases with one server."""
    source = str(Path(__file__).parents[2] / "src")
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "warpline", "mcp", str(RECORDINGS)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])},
    )
    async with Client(server) as client:
        return [await solve(client, case) for case in chosen]


def table(sessions: Sequence[Session]) -> str:
    """The sessions as Markdown."""
    lines = [
        "| program | cause | fix | gain in range | faster | calls | tokens | largest | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in sessions:
        assert one.grade is not None
        marks = [
            "yes" if right else "no"
            for right in (one.grade.cause, one.grade.fix, one.grade.gain_in_range, one.grade.verdict)
        ]
        said = [f"{one.answer['cause']}: {marks[0]}", f"{one.answer['fix']}: {marks[1]}", *marks[2:]]
        tokens, largest = (round(value / TOKEN_CHARACTERS) for value in (one.characters, one.largest))
        lines.append(
            f"| `{one.name}` | {' | '.join(said)} | {one.calls} | {tokens:,} | {largest:,} | {one.seconds:.1f} |"
        )
    points = sum(one.grade.points for one in sessions if one.grade)
    lines.append(f"\n{points} of {4 * len(sessions)} facts are right.")
    return "\n".join(lines)


def main() -> None:
    """Run, print the table, and store what was said."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every answer to this file")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these programs only")
    asked = parser.parse_args()
    sessions = anyio.run(solve_all, [case for case in cases() if not asked.only or case.name in asked.only])
    print(table(sessions))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) for one in sessions], indent=1))


if __name__ == "__main__":
    main()
