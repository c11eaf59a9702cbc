"""For programs that tests start with this folder on their path: a torch without its compiler.

The first step of an optimizer and the first recording load `torch._dynamo` and `torch._inductor`, only to learn that
nothing is compiled; that takes as long as loading all the rest of torch. Of that rest, two fifths are the rules by
which the compiler predicts shapes, and exporting.
"""

import sys
from types import SimpleNamespace

config = SimpleNamespace(triton=SimpleNamespace(cudagraphs=False))
dynamo = SimpleNamespace(
    disable=lambda function, *_, **__: function,
    graph_break=lambda: None,
    trace_rules=SimpleNamespace(clear_lru_cache=lambda: None),  # asked for by torch.distributed
)
sys.modules |= {
    "torch._dynamo": dynamo,
    "torch._inductor": SimpleNamespace(config=config),
    "torch._inductor.config": config,
    "torch._meta_registrations": SimpleNamespace(),
    "torch.export": SimpleNamespace(),
}
