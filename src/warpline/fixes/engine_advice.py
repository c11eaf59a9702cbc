"""Advice in the words of a serving engine: its options instead of changes to a model that the user does not write."""

from __future__ import annotations

from warpline.analyses.serving import Engine, step_tokens, with_graphs
from warpline.trace.trace import Trace

ADVICE: dict[str, dict[Engine, str]] = {
    "cuda_graph": {
        "vllm": (
            "Start vLLM with CUDA graphs: enforce_eager=False (no --enforce-eager), with sizes up to the "
            "batches that run (--cudagraph-capture-sizes, --max-num-seqs)."
        ),
        "sglang": (
            "Start SGLang with CUDA graphs: no --disable-cuda-graph, and --cuda-graph-bs or --cuda-graph-max-"
            "bs up to the batches that run."
        ),
        "tensorrt_llm": (
            "Turn CUDA graphs on: cuda_graph_config with batch_sizes or max_batch_size up to the batches that"
            " run, and enable_padding: true."
        ),
        "tgi": "Start TGI with CUDA graphs: --cuda-graphs with the batch sizes that run.",
    },
    "torch_compile": {
        "vllm": "Let vLLM compile the model: enforce_eager=False (no --enforce-eager), which compiles by default.",
        "sglang": (
            "Let SGLang compile the model: --enable-torch-compile, with --torch-compile-max-bs up to the "
            "batches that run."
        ),
        "tensorrt_llm": "Let TensorRT-LLM compile the model: torch_compile_config.",
        "tgi": "TGI does not compile models; CUDA graphs (--cuda-graphs) take the launches away.",
    },
    "larger_batch": {
        "vllm": (
            "Let more requests run together: a larger max_num_seqs and max_num_batched_tokens, if requests "
            "wait and the KV cache has room (gpu_memory_utilization). Compare tokens per second and the time "
            "per token."
        ),
        "sglang": (
            "Let more requests run together: a larger --max-running-requests, if requests wait and the KV "
            "cache has room (--mem-fraction-static). Compare tokens per second and the time per token."
        ),
        "tensorrt_llm": (
            "Let more requests run together: a larger max_batch_size and max_num_tokens, if requests wait and"
            " the KV cache has room. Compare tokens per second and the time per token."
        ),
        "tgi": (
            "Let more requests run together: a larger --max-batch-total-tokens and --max-concurrent-requests."
            " Compare tokens per second and the time per token."
        ),
    },
}
"""By fix and engine. Sources: the documentation of vLLM (engine arguments), SGLang (server arguments), TensorRT-LLM
(LlmArgs) and text-generation-inference (launcher arguments)."""
CHUNKED_PREFILL: dict[Engine, str] = {
    "vllm": "--enable-chunked-prefill with a smaller --max-num-batched-tokens",
    "sglang": "--chunked-prefill-size with --enable-mixed-chunk",
    "tensorrt_llm": "enable_chunked_prefill: true with a smaller max_num_tokens",
    "tgi": "a smaller --max-batch-prefill-tokens",
}
GRAPH_SIZES: dict[Engine, str] = {
    "vllm": "--cudagraph-capture-sizes",
    "sglang": "--cuda-graph-bs",
    "tensorrt_llm": "batch_sizes in cuda_graph_config",
    "tgi": "--cuda-graphs",
}


LARGER_PREFILL: dict[Engine, str] = {
    "sglang": "a larger --chunked-prefill-size",
    "tensorrt_llm": "a larger max_num_tokens",
    "tgi": "a larger --max-batch-prefill-tokens",
}
"""Of engines whose graphs are of decode steps. vLLM's piecewise graphs are of all steps."""


def engine_advice(fix: str, engine: Engine | None, trace: Trace) -> str | None:
    """How to make a fix with an engine's options; None where no engine is recorded, or it has no such option."""
    if engine is None:
        return None
    return (_graph_advice(engine, trace) if fix == "cuda_graph" else None) or ADVICE.get(fix, {}).get(engine)


def _graph_advice(engine: Engine, trace: Trace) -> str | None:
    """What is left to do where graphs are on, or where no graph is made for these steps; None where neither is so."""
    graphs = with_graphs(trace)
    eager = {one.phase for one, graph in zip(step_tokens(trace), graphs, strict=True) if one and not graph}
    if eager == {"prefill"} and engine in LARGER_PREFILL:
        return (
            "The engine captures graphs of decode steps, and the steps without one read prompts: let a step read more "
            f"tokens ({LARGER_PREFILL[engine]}), so that there are fewer of them."
        )
    if graphs.any():
        return f"Graphs are on: capture the batches that still run without one ({GRAPH_SIZES[engine]})."
    return None
