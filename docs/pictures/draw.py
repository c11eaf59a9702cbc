"""Draws the pictures: what `warpline demo` prints (demo.svg), without outside fonts, and its step (step.svg)."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from warpline.exports.pictures import step_picture
from warpline.findings.diagnosis import diagnose
from warpline.package_data import demo_trace
from warpline.reports.diagnosis import report
from warpline.reports.terminal import render
from warpline.trace.open import open_trace

WIDTH = 96


def main() -> None:
    trace = open_trace(demo_trace())
    trace.path = Path("demo.json.xz")
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    diagnosis = diagnose(trace, why=True)
    Path(__file__).with_name("step.svg").write_text(step_picture(diagnosis))
    answer = report(diagnosis, again="warpline demo")
    console.print(render(answer, WIDTH), soft_wrap=True, end="")
    picture = console.export_svg(title="warpline demo", theme=MONOKAI)
    picture = re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    picture = picture.replace("#625e4c", "#a09c8c")  # what is quiet must be readable too
    picture = picture.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")
    Path(__file__).with_name("demo.svg").write_text("\n".join(line.rstrip() for line in picture.splitlines()) + "\n")


main()
