"""Small traces in every layout that torch has written, legal and not."""

from __future__ import annotations

import json

TODAY = rb"""{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150110011392
    }
  ],
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1759449622000000000,
  "traceEvents": [
  {
    "ph": "X",
    "cat": "cpu_op",
    "name": "aten::add",
    "pid": 730,
    "tid": 730,
    "ts": 6187519811405.321,
    "dur": 12.053,
    "args": {
      "External id": 26625,
      "Sequence number": 7,
      "Fwd thread id": 0,
      "Concrete Inputs": ["", "1", "a \"quoted\" one"],
      "Input type": ["float", "Scalar"],
      "Input Strides": [[1], []],
      "Input Dims": [[67108864], []],
      "Ev Idx": 0
    }
  },
  {
    "ph": "X",
    "cat": "kernel",
    "name": "void at::native::vectorized_elementwise_kernel<4, float>(int, float)",
    "pid": 0,
    "tid": 7,
    "ts": 6187519811500.000,
    "dur": 0.960,
    "args": {
      "queued": 0, "device": 0, "context": 1,
      "stream": 7, "correlation": 201773, "External id": 26625,
      "registers per thread": 32, "shared memory": 0,
      "blocks per SM": inf, "warps per SM": 3.878788,
      "grid": [1056, 1, 1], "block": [128, 1, 1],
      "est. achieved occupancy %": 0
    }
  },
  {
    "ph": "s",
    "id": 201773,
    "pid": 730,
    "tid": 730,
    "ts": 6187519811410.100,
    "cat": "ac2g",
    "name": "ac2g"
  },
  {
    "ph": "i",
    "cat": "cpu_instant_event",
    "s": "t",
    "name": "[memory]",
    "pid": 730,
    "tid": 730,
    "ts": 6187519811411.5,
    "args": {"Total Reserved": 2097152, "Total Allocated": 512, "Bytes": -512, "Addr": 140193847377920,
             "Device Id": 0, "Device Type": 1}
  },
  {
    "ph": "M",
    "name": "process_name",
    "pid": "Spans",
    "tid": "",
    "ts": 6187519811405.321,
    "args": {
      "name": "Spans", "labels": "caf\u00e9 \ud83d\ude80"
    }
  }
  ],
  "traceName": "/tmp/trace.json"
}
"""

OF_2021 = rb"""{
  "schemaVersion": 1,
  "traceEvents": [
  {
    "ph": "X", "cat": "Operator",
    "name": "aten::empty", "pid": 24572, "tid": "24572",
    "ts": 1621401187223005, "dur": 15,
    "args": {
       "Device": 24572, "External id": 2,
       "Trace name": "PyTorch Profiler", "Trace iteration": 0

    }
  },
  {
    "ph": "X", "cat": "Kernel",
    "name": "volta_scudnn_128x64_relu_interior_nn_v1", "pid": 0, "tid": "stream 7",
    "ts": 1621401187226000, "dur": 70,
    "args": {
      "queued": 0, "device": 0, "context": 1,
      "stream": "7", "correlation": 335, "external id": 1340,
      "registers per thread": 128, "bytes": "12",
      "grid": "[32, 16, 1]", "block": [128, 1, 1]
    }
  },
  {
    "ph": "f", "id": 335, "pid": 0, "tid": "stream 7", "ts": 1621401187226000,
    "cat": "async", "name": "launch", "bp": "e"
  }
]}"""

# Each breaks JSON in a way that torch has written; the event behind it must survive.
ILLEGAL = [
    rb'{"ph":"X","cat":"user_annotation","name":"say "hello" twice","pid":1,"tid":1,"ts":1.0,"dur":1.0}',
    b'{"ph":"X","cat":"cpu_op","name":"two\nlines","pid":1,"tid":1,"ts":2.0,"dur":1.0}',
    b'{"ph":"X","cat":"cpu_op","name":"bell \x07 and nul \x00","pid":1,"tid":1,"ts":3.0,"dur":1.0}',
    rb'{"ph":"X","cat":"cpu_op","name":"C:\dev\pytorch","pid":1,"tid":1,"ts":4.0,"dur":1.0}',
    rb'{"ph":"X","cat":"gpu_memcpy","name":"Memcpy","pid":1,"tid":1,"ts":5.0,"args":{"memory bandwidth (GB/s)":inf,"bytes":4}}',
    rb'{"ph":"X","cat":"cpu_op","name":"half \ud83d pair","pid":1,"tid":1,"ts":6.0,"dur":nan}',
    b'{"ph":"X","cat":"cpu_op","name":"not utf-8: \xff\xfe","pid":1,"tid":1,"ts":7.0}',
    rb'{"ph":"X","cat":"cpu_op","name":"trailing comma","pid":1,"tid":1,"ts":8.0,"args":{"stream":7,},}',
    rb'{"ph":"X","cat":"cpu_op","name":"lost bracket","pid":1,"tid":1,"ts":9.0,"args":{"Input Dims":[[1,2],"stream":7}}',
    rb'{"ph":"X","cat":"cpu_op","name":"lost quote,"pid":1,"tid":1,"ts":10.0}',
    rb'{"ph":"X","cat":"cpu_op","name":"ends in a backslash\","pid":1,"tid":1,"ts":11.0}',
]

GOOD = (
    rb'{"ph":"X","cat":"kernel","name":"good","pid":0,"tid":7,"ts":99.125,"dur":1.5,"args":{"stream":7,"grid":[1,2,3]}}'
)


def in_layouts(text: bytes) -> dict[str, bytes]:
    """A legal trace as other writers would lay it out."""
    document = json.loads(text.replace(b": inf", b": 0"))
    events = document.pop("traceEvents")
    first = {"traceEvents": events} | document
    last = document | {"traceEvents": events}
    return {
        "compact": json.dumps(last, separators=(",", ":")).encode(),
        "one line": json.dumps(first).encode(),
        "indented": json.dumps(first, indent=2).encode(),
        "deeply indented": json.dumps(last, indent=9).encode(),
        "unicode": json.dumps(last, ensure_ascii=False).encode(),
        "bare list": json.dumps(events).encode(),
        "byte order mark": b"\xef\xbb\xbf" + json.dumps(last).encode(),
        "windows lines": json.dumps(last, indent=1).replace("\n", "\r\n").encode(),
        "keys sorted": json.dumps(last, sort_keys=True).encode(),
    }


def trace_of(*events: bytes) -> bytes:
    return b'{"schemaVersion":1,"traceEvents":[\n' + b",\n".join(events) + b'\n],"traceName":"t.json"}'
