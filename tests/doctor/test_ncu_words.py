"""Words that ncu and nsys do not know: options, sets, sections, metrics, and what is traced."""

from __future__ import annotations

import pytest
from doctor_machines import FakeMachine
from msgspec.structs import replace

from warpline.doctor.commands import examine_command
from warpline.doctor.machine import ProgramOutput

HERE = FakeMachine(folders={".": (), "/tmp": ()})
H200 = replace(HERE, answers={"nvidia-smi --query-gpu=compute_cap": ProgramOutput(0, "9.0\n")})
REST = "-c 1 --target-processes all --clock-control none python a.py"
HELP = """  -t, --trace=
       Possible values are 'cuda', 'nvtx', 'nccl' or 'none'. Select the API(s) to trace.
"""

WRONG = {
    "the seeds' output": ("ncu --set full --output v1 python a.py", "unknown-option", "--export v1"),
    "nearly an option": (f"ncu --launch-skp 3 {REST}", "unknown-option", "--launch-skip 3"),
    "a set": (f"ncu --set ful {REST}", "unknown-set", "--set full"),
    "a section": (f"ncu --section Speedoflight {REST}", "unknown-section", "--section SpeedOfLight"),
    "a metric": (
        f"ncu --metrics smsp__warps_issue_stalled_wait_per_warp_active.ratio,sm__throughput.avg.pct_of_peak_sustained_elapsed {REST}",
        "unknown-metric",
        "--metrics smsp__average_warps_issue_stalled_wait_per_issue_active.ratio,sm__throughput.avg.pct_of_peak",
    ),
    "a metric of any chip": (
        f"ncu --metrics l1tex__t_bytes_equiv_l1sectormiss_pipe_lsu_mem_global_op_ld.sum {REST}",
        "unknown-metric",
        "--metrics l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss.sum",
    ),
    "a suffix": (f"ncu --metrics sm__cycles_active.ratio {REST}", "unknown-metric", "--metrics sm__cycles_active.sum"),
    "a library": ("nsys profile -t cuda,nccl python a.py", "unknown-trace", "--trace=cuda,nvtx"),
    "a fruit": ("nsys profile -t cuda,banana python a.py", "unknown-trace", "--trace=cuda "),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_unknown_word_is_a_problem_with_the_right_line(case: str) -> None:
    line, name, correction = WRONG[case]
    examination = examine_command(line, HERE)
    assert {check.state for check in examination.checks if check.name == name} == {"problem"}
    assert correction in examination.corrected
    again = examine_command(examination.corrected, HERE)
    assert name not in {check.name for check in again.checks}


@pytest.mark.parametrize(
    "words",
    [
        "--metrics group:memory__chart,launch__grid_size,regex:dram.*,breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "--section regex:.*Roofline.*",
        "--section Mine --section-folder .",
        "--launch-skip-before 3",
        "--pm-sampling-interval 0 --graph-profiling node --import-source yes",
    ],
)
def test_known_words_pass(words: str) -> None:
    names = {check.name for check in examine_command(f"ncu {words} {REST}", HERE).checks}
    assert not {name for name in names if name.startswith("unknown-")}


def test_the_chip_of_this_machine_counts() -> None:
    line = f"ncu --metrics sm__inst_executed_pipe_fp16.sum {REST}"
    assert "unknown-metric" not in {check.name for check in examine_command(line, HERE).checks}
    found = examine_command(line, H200)
    assert "on sm_90" in next(check.seen for check in found.checks if check.name == "unknown-metric")
    assert "sm__inst_executed_pipe_fma_type_fp16.sum" in found.corrected


def test_the_installed_tool_knows_its_own_words() -> None:
    nsys, ncu = "/opt/nsight-systems/2026.2.1/nsys", "/opt/nsight-compute/2026.1/ncu"
    machine = replace(
        HERE,
        programs={"nsys": nsys, "ncu": ncu},
        answers={
            "nsys profile": ProgramOutput(0, HELP),
            "ncu --help": ProgramOutput(
                0, "--kernel-name arg --launch-count arg --target-processes --clock-control --new-one"
            ),
        },
    )
    assert "unknown-trace" not in {
        c.name for c in examine_command("nsys profile -t cuda,nccl python a.py", machine).checks
    }
    seen = [c.seen for c in examine_command("nsys profile -t cuda,osrt python a.py", machine).checks]
    assert "nsys 2026.2 does not know -t osrt" in seen
    assert "unknown-option" not in {c.name for c in examine_command(f"ncu --new-one 1 {REST}", machine).checks}
