"""The page as text: one file that loads nothing, with the numbers of every other report."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest
from answers import diagnosed
from dive_kernels import kernel as reported
from dived_trace import copies
from kineto_files import call, write
from msgspec.structs import replace
from paths import DEMO
from small_pages import EDGES, EVIL

from warpline.dive.answer import dive_into
from warpline.dive.model import Dive
from warpline.estimate import Estimate
from warpline.findings.diagnosis import Diagnosis, diagnose
from warpline.findings.model import MEASURE_IT
from warpline.reports import markdown, terminal
from warpline.reports.diagnosis import report
from warpline.reports.dive import report as dive_report
from warpline.reports.page.document import page
from warpline.sources.ncu.model import NcuReport
from warpline.trace.open import open_trace
from warpline.units import duration, share, speedup


def made(file: Path) -> str:
    return page(diagnose(open_trace(file, cache=False), True)).html


def block(html: str, name: str) -> bytes:
    (text,) = re.findall(rf'<script type="application/octet-stream" id="data-{name}">([^<]*)</script>', html)
    return zlib.decompress(base64.b64decode(text), -zlib.MAX_WBITS)


@pytest.fixture(scope="module")
def demo() -> Diagnosis:
    return diagnosed(DEMO)


@pytest.fixture(scope="module")
def html(demo: Diagnosis) -> str:
    return page(demo).html


def plain(text: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).replace("\\", "").replace("**", "").split())


FORMATS: dict[str, Callable[[Diagnosis], str]] = {
    "terminal": lambda one: plain(terminal.render(report(one, True), 200).plain),
    "markdown": lambda one: plain(markdown.render(report(one, True))),
    "html": lambda one: plain(page(one).html.partition('<script type="application')[0]),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_shows_the_numbers_of_the_json(name: str, demo: Diagnosis) -> None:
    shown, answer = FORMATS[name](demo), json.loads(json.dumps(demo.to_dict(), default=str))
    verdict = answer["verdict"]
    expected = [verdict["sentence"]]
    for found, finding in zip(demo.findings, answer["findings"], strict=True):
        expected.append(finding["claim"])
        if not found.gain.is_wide:  # of such a fix no format shows a number that nobody knows
            expected += [speedup(finding["gain"]["expected"]), duration(finding["new_step_ns"]["expected"])]
            assert duration(finding["new_step_ns"]["expected"]) in finding["verify"]
    expected += [duration(step["new_step_ns"]["expected"]) for step in answer["plan"]]
    (device,) = answer["account"]
    for ns in (*device["busy"].values(), *device["idle"].values()):
        expected += [duration(ns), share(ns, device["window_ns"])] if ns else []
    expected += [entry["message"] for entry in answer["trace"]["health"]]
    assert [text for text in expected if " ".join(text.split()) not in shown] == []


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_that_a_wide_range_must_be_measured(name: str, demo: Diagnosis) -> None:
    assert demo.judgement is not None and len(demo.judgement.plan) > 1
    plan = [replace(step, gain=Estimate(0.9, 2.0, 9.0)) for step in demo.judgement.plan]
    shown = FORMATS[name](replace(demo, judgement=replace(demo.judgement, plan=plan)))
    assert MEASURE_IT in shown
    assert "0.90–9.00×" in shown


@pytest.fixture(scope="module")
def dived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Diagnosis, Dive]:
    trace = open_trace(copies(tmp_path_factory.mktemp("dived")), cache=False)
    report = NcuReport(Path("r.csv"), "csv-raw", "", (reported("copy"), reported("<b>missing", launch=1)))
    return diagnose(trace, True), dive_into(report, trace)


DIVES: dict[str, Callable[[Diagnosis, Dive], str]] = {
    "terminal": lambda _, dive: plain(terminal.render(dive_report(dive, verbose=True), 300).plain),
    "markdown": lambda _, dive: plain(markdown.render(dive_report(dive, verbose=True))),
    "html": lambda one, dive: plain(page(one, dive=dive).html.partition('<script type="application')[0]),
}


@pytest.mark.parametrize("name", DIVES)
def test_every_format_shows_what_ncu_measured(name: str, dived: tuple[Diagnosis, Dive]) -> None:
    shown, answer = DIVES[name](*dived).lower(), json.loads(json.dumps(dived[1].to_dict()))
    expected: list[str] = []
    for kernel in answer["kernels"]:
        measured = [node for node in kernel["tree"] if node["value"] is not None]
        assert len(measured) > 20
        expected += [kernel["reason"], kernel["sentence"], kernel["how"], speedup(kernel["gain"]["expected"])]
        expected += [words for node in measured for words in (node["question"], node["metric"])]
        expected += [f"{node['value']:,.2f} %" for node in measured if node["unit"] == "%"]
    expected.append(duration(answer["kernels"][0]["step"]["new_step_ns"]["expected"]))
    assert [text for text in expected if " ".join(text.replace("*", "").split()).lower() not in shown] == []


def test_each_launch_of_a_profiled_kernel_leads_to_its_answer(dived: tuple[Diagnosis, Dive]) -> None:
    rest = block(page(dived[0], dive=dived[1]).html, "rest")
    particulars = json.loads(rest[4 : 4 + int.from_bytes(rest[:4], "little")])
    assert [launch["inside"] for launch in particulars["launches"]] == [0, None]  # `copy` and `other`
    copy, missing = particulars["inside"]
    assert copy["start_ns"] == 100_000
    assert copy["reason"].startswith(dived[1].found[0].reason)
    assert missing["start_ns"] is None


def test_the_parts_of_the_bar_sum_to_the_window(html: str) -> None:
    bar = html[html.index('id="time"') : html.index("</svg>", html.index('id="time"'))]
    parts = [(float(x), float(width)) for x, width in re.findall(r'x="([\d.]+)" width="([\d.]+)"', bar)]
    assert sum(width for _, width in parts) == pytest.approx(10_000, abs=1)
    assert all(after[0] == pytest.approx(sum(before), abs=0.2) for before, after in pairwise(parts))


def test_the_policy_allows_one_script_and_one_style_by_hash_and_no_request(html: str) -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    (script,) = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", html, flags=re.DOTALL)
    for kind, content in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert not re.findall(r'(?:src|href)="(?!data:|#)', html)
    assert " style=" not in html.partition("<script")[0]


def test_the_blocks_hold_every_row(html: str) -> None:
    first = block(html, "timeline")
    size = int.from_bytes(first[:4], "little")
    head = json.loads(first[4 : 4 + size])
    assert head["events"] == sum(sum(track["lanes"]) for track in head["tracks"])
    trace = open_trace(DEMO, cache=False)
    rows = {
        kind: sum(sum(track["lanes"]) for track in head["tracks"] if track["kind"] == kind)
        for kind in ("gpu", "api", "ops", "python")
    }
    assert rows == {kind: len(trace.tables[kind].stored) for kind in rows}
    assert len(json.loads(block(html, "panels"))["steps"]["lengths_ns"]) == 4


@pytest.mark.parametrize("name", EDGES)
def test_a_page_is_made_of_every_trace(name: str, tmp_path: Path) -> None:
    html = made(EDGES[name](tmp_path))
    assert html.count("<script") == 4
    assert html.count("</script") == 4
    assert "<img" not in html
    assert EVIL not in html
    assert "\u202e" not in html
    assert len(html) < 400_000


def test_a_trace_without_its_gpu_work_leads_to_the_doctor_and_has_no_empty_part(tmp_path: Path) -> None:
    file = write(tmp_path, [call("cudaLaunchKernel", 10 * number, 2, number + 1) for number in range(20)])
    html = made(file)
    assert "how to record what is missing" in html
    assert "Everything else" not in html


def test_a_trace_without_events_has_no_empty_axis(tmp_path: Path) -> None:
    assert '<section id="timeline" aria-label="Timeline" hidden>' in made(write(tmp_path, []))
    assert '<section id="timeline" aria-label="Timeline">' in made(DEMO)
