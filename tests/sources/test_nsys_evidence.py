"""What an export tells of its own recording: outputs, remarks, processes with kernels, row counts."""

from __future__ import annotations

from pathlib import Path

from nsys_files import PID, Export, small

from warpline.sources.nsys.evidence import MAX_OUTPUT_CHARS, read_evidence


def test_everything_that_a_recording_tells(tmp_path: Path) -> None:
    export = small().error_output("x" * (MAX_OUTPUT_CHARS + 5) + "the end\n").option("PROCESS_0:COMMAND", "python")
    export.remark("Loaded CUPTI library: /opt/nsys/target-linux-x64/libcupti.so.12.9", severity=1)
    evidence = read_evidence(export.write(tmp_path / "r.sqlite"))
    assert evidence.facts.program == "python"
    assert evidence.outputs[0].endswith("the end\n")
    assert len(evidence.outputs[0]) == MAX_OUTPUT_CHARS
    assert evidence.remarks == ("Loaded CUPTI library: /opt/nsys/target-linux-x64/libcupti.so.12.9",)
    assert evidence.kernel_processes == {PID}
    assert evidence.rows["CUPTI_ACTIVITY_KIND_KERNEL"] == 2
    assert "OSRT_API" not in evidence.rows


def test_an_empty_recording_tells_little(tmp_path: Path) -> None:
    evidence = read_evidence(Export().add("ANALYSIS_DETAILS", duration=1).write(tmp_path / "r.sqlite"))
    assert (evidence.outputs, evidence.remarks, evidence.kernel_processes) == ((), (), frozenset())
