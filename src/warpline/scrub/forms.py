"""Texts that are the same in everybody's profiles, and words of a name that analyses look for."""

from __future__ import annotations

import re

_LISTED = """
    forward backward fwd bwd loss optimizer optim step steps train training eval evaluate validation inference
    infer iter iteration epoch batch data load loader input output warmup zero grad zero_grad update sync
    compute copy prefill decode generate layer layers block mlp attention attn head embedding norm linear
    softmax matmul gemm conv main init call next enter exit getitem len del new module lambda listcomp genexpr
    dictcomp setcomp wrapper inner run loop
"""
HARMLESS_WORDS = frozenset(_LISTED.split())
"""What every program calls its parts."""

KNOWN_RANGES = re.compile(
    r"ProfilerStep\*?#\d{1,9}|ProfilerStep\*|Optimizer\.(?:step|zero_grad)#[A-Za-z][\w.]{0,60}"
    r"|enumerate\(DataLoader\)#_\w{1,40}\.__next__|(?:DistributedDataParallel|FullyShardedDataParallel|DataParallel)\.\w{1,40}"
    r"|FSDP::[\w:]{1,60}|(?:nccl|gloo|mpi|ucc|c10d):+[\w:]{1,60}|(?:autograd|aten|cub|torch)::[\w: ]{1,100}"
    r"|Torch-Compiled Region(?:: \d{1,4}(?:/\d{1,4})?)?|CompiledFunction(?:Backward)?|Pregraph[\w ]{0,40}"
    r"|CUDAGraphNode\.\w{1,40}(?:: is_backward=(?:True|False), compile_id=\d{1,4}/\d{1,4})?|\[memory\]"
    r"|PyTorch Profiler \(0\)|Iteration Start: PyTorch Profiler|Record Window End|\[pytorch\|profiler\|[\w|]{1,60}\]"
    r"|(?:Activity )?Buffer Request|Memcpy[\w ()>-]{0,60}|Memset[\w ()]{0,40}",
    re.ASCII,
)
"""Ranges that torch and its libraries name themselves; what is variable in them still passes word by word."""

RANGE_TELLS = re.compile(
    r"(?i)layer|block|stage|head|expert|level|attention|attn|mlp|micro|chunk|bucket|dataloader|data_?load|load_?data"
    r"|next_batch|get_batch|imread|CompiledFxGraph|CompiledFunction|profiling|Buffer|CUPTI"
    r"|Instrumentation|Resource|dlopen|dlclose|JIT|LAZY"
)
"""Words by which analyses recognise parts of a step, loading and the profiler itself. They stay in a pseudonym."""

KERNEL_TELLS = re.compile(
    r"(?i)gemm|matmul|conv|softmax|layer_?norm|rms_?norm|batch_?norm|attention|attn|fmha|reduce|elementwise|transpose|copy"
    r"|all_?reduce|all_?gather|nccl|triton_(?:poi|red|per|tem)|adam|dropout|sort|topk|embedding|scatter|gather|quant"
)
"""Words that decide the class of a kernel."""

KNOWN_THREADS = re.compile(
    r"python[\d.]{0,6}|CPU|GPU ?\d{0,4}|stream (?:\d{1,10}|\([\w#]{0,12}\))?(?: \d{1,5}){0,2} ?|main"
    r"|thread \d{1,15}(?: \(python[\d.]{0,6}\))?|Spans|Traces|PyTorch Profiler|Trace|CPU functions|CUDA functions"
    r"|pt_main_thread|pt_autograd_\d{1,3}|pt_data_pin|pt_data_worker|pt_nccl_\w{1,10}|cuda-EvtHandlr|cuda\d{8,14}"
    r"|\[NSys\]|\[NSys Comms\]|CUPTI worker thread|TORCHRUN|julia(?:-[\d.]{1,8})?"
    r"|/device:GPU:\d{1,3}(?: [\w()]{0,12})?|/host:CPU|/host:python-tracer|Stream #\d{1,4}(?:\([A-Za-z,]{0,20}\))?"
    r"|Ascend(?: ?Hardware)?|CANN|HCCL|AI ?Core|NPU|TPU",
    re.ASCII,
)
"""Threads and processes that torch, CUDA and the profilers name themselves."""
