"""Files of other tools are refused by their name."""

from __future__ import annotations

import gzip
import json
import lzma
import marshal
from pathlib import Path

import pytest

from warpline.errors import UnreadableFile
from warpline.sources.detect import READS, detect

SPEEDSCOPE = {"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": [], "shared": {"frames": []}}
REQUEST = [
    {"id": 1, "model_name": "resnet50", "model_version": 1},
    {"id": 1, "timestamps": [{"name": "REQUEST_START", "ns": 5}, {"name": "QUEUE_START", "ns": 6}]},
]
FILES = {
    "speedscope": json.dumps(SPEEDSCOPE).encode(),
    "Triton Inference Server": json.dumps(REQUEST).encode(),
    "OpenTelemetry": b'{"resourceSpans": [{"scopeSpans": []}]}',
    "Jaeger": b'{"data": [{"traceID": "a", "spans": [{"spanID": "b", "operationName": "c"}]}]}',
    "V8": b'{"nodes": [{"id": 1, "callFrame": {}}], "timeDeltas": []}',
    "cProfile": marshal.dumps({("program.py", 1, "main"): (1, 1, 0.5, 0.5, {})}),
    "memray": b"memray\x00\x0c\x00\x00",
    "perf": b"PERFILE2" + bytes(16),
    "Parquet": b"PAR1\x15\x04" + bytes(16),
    "Callgrind": b"# callgrind format\nversion: 1\n",
    "tfevents": b"\x18" + bytes(11) + b"\x09\x00\x00\x80\x9e\xc7\x1a\xd9\x41\x1a\x0dbrain.Event:2" + bytes(8),
    "rocprof": b'"Index","KernelName","gpu-id"\n0,"k",1\n',
    "nsys stats": b"Time (%),Total Time (ns),Instances\n50.0,10,2\n",
    "torch.profiler printed": b"-----  -----\n    Name    Self CPU %    Self CPU\n-----  -----\n",
    "Perfetto": b"\n\x20\x08\x01track_event" + bytes(8),
    "nvprof printed": b"==12== NVPROF is profiling process 12, command: ./a\n==12== Profiling result:\n",
    "TensorRT": b'[{"count": 10}, {"name": "conv", "timeMs": 1.0, "averageMs": 0.1, "percentage": 100}]',
    "DeepSpeed": b"-------------------------- DeepSpeed Flops Profiler --------------------------\n",
    "py-spy": b"main (a.py:3);step (a.py:9);relu (f.py:1) 12\nmain (a.py:3) 1\n",
    "project of Intel VTune": b'<?xml version="1.0" encoding="UTF-8"?>\n<bag xmlns:int="x"/>',
    "table of Intel VTune": b"Function,CPU Time,Module\nmain,1.0,a\n",
    "nvidia-smi": b"timestamp, name, utilization.gpu [%]\n2024/01/01 00:00:00.000, NVIDIA H200, 97 %\n",
}


@pytest.mark.parametrize("tool", FILES)
@pytest.mark.parametrize("packed", [bytes, gzip.compress, lzma.compress])
def test_the_refusal_names_the_tool(tool: str, packed: type[bytes], tmp_path: Path) -> None:
    path = tmp_path / "profile"
    path.write_bytes(packed(FILES[tool]))
    with pytest.raises(UnreadableFile, match=tool) as error:
        detect(path)
    assert error.value.code == "other-format"


def test_the_hint_says_what_to_give_instead(tmp_path: Path) -> None:
    path = tmp_path / "profile"
    path.write_bytes(FILES["Perfetto"])
    with pytest.raises(UnreadableFile) as error:
        detect(path)
    assert "rocpd" in error.value.hint
    path.write_bytes(FILES["memray"])
    with pytest.raises(UnreadableFile) as error:
        detect(path)
    assert error.value.hint == READS
