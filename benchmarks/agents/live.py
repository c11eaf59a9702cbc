"""From a slow script to a verified comparison, on a machine with a GPU.

    python -m benchmarks.agents.live DIR

Records the slow program three times, asks the server why it is slow, lets the server try the fix that it names, records
the program with the fix three times, and asks the server whether it became faster. Every answer is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from benchmarks.agents.scripted import TOKEN_CHARACTERS, Session, ask

PROGRAM = Path(__file__).with_name("slow_program.py")
RUNS = 3
TRY_S = 90


def record(folder: Path, side: str, *arguments: str) -> list[str]:
    """Record the program so many times; the folders of the runs."""
    folders = [f"{side}{number}" for number in range(1, RUNS + 1)]
    for name in folders:
        words = [
            "run",
            "--no-diagnose",
            "--stop",
            "--output",
            str(folder / name),
            str(folder / PROGRAM.name),
            *arguments,
        ]
        subprocess.run([sys.executable, "-m", "warpline", *words], check=True, stdout=subprocess.DEVNULL)
    return folders


async def drive(folder: Path) -> None:
    """The loop of the skill."""
    environment = dict(os.environ)
    arguments = ["-m", "warpline", "mcp", "--allow-run", str(folder)]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    session = Session("live")
    before = record(folder, "before")
    async with Client(server) as client:

        async def said(tool: str, **given: Any) -> dict[str, Any]:
            page = await ask(client, session, tool, **given)
            parts: dict[str, Any] = page.get("parts", page)
            return parts

        verdict = (await said("diagnose", path=before[0])).get("/verdict")
        if not verdict or not verdict["fix"]:
            sys.exit("the diagnosis names no fix: this needs a GPU")
        print(verdict["sentence"])
        tried = await said("try", program=[PROGRAM.name], fixes=[verdict["fix"]], seconds=TRY_S)
        print(f"try: {json.dumps(tried)}")
        after = record(folder, "after", "--fixed")
        compared = await said("compare", before=before, after=after)
        print(f"compare: {compared['/verdict']}, {compared['/change']}")
    tokens, largest = (round(value / TOKEN_CHARACTERS) for value in (session.characters, session.largest))
    print(f"{session.calls} calls, {tokens:,} tokens (largest {largest:,}), {session.seconds:.1f} s in the server")


def main() -> None:
    """Drive the server over a new folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True)
    shutil.copy(PROGRAM, folder)
    anyio.run(drive, folder)


if __name__ == "__main__":
    main()
