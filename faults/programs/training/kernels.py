"""Cause `kernel`: distances, log-probabilities, gradients and attention for which the GPU works longer than it must."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import compiled, weights


@planted("kernel", "torch_compile", also=("fewer_kernels",))
def distances_to_every_code(torch: Any, fix: str | None) -> Step:
    """An autoencoder's vectors are compared with a codebook by subtracting all pairs, squaring and summing.

    Each pair's difference is written out and read again, a gigabyte at a time, to make a single number. Compiled, a
    pair is subtracted, squared and summed in registers; expanded into squares and one matmul, it is never made.
    """
    vectors = torch.randn(4096, 256, device="cuda", dtype=torch.bfloat16)
    (into,) = weights(torch, 1, 256, 64, torch.bfloat16)
    codes = torch.randn(1024, 64, device="cuda")

    def distances(x: Any) -> Any:
        return (x[:, None] - codes[None]).square().sum(-1)  # planted

    def expanded(x: Any) -> Any:
        lengths = x.square().sum(-1, keepdim=True) + codes.square().sum(-1)
        return torch.addmm(lengths, x, codes.T, alpha=-2.0)

    function = {"torch_compile": compiled(torch, distances), "fewer_kernels": expanded}[fix] if fix else distances

    def step() -> Any:
        nearest, position = function((vectors @ into).float()).min(-1)
        return nearest.mean(), codes.index_select(0, position)

    return step


@planted("kernel", "torch_compile")
def entropy_over_the_vocabulary(torch: Any, fix: str | None) -> Step:
    """A language model tuned by reinforcement logs what it thinks of 2,048 tokens: their log-probability and entropy.

    The log-probabilities of all 65,536 words are written out in float32, and then their exponentials and the
    products of both. Compiled, the logits are read a few times and nothing as large as they is written.
    """
    tokens, width, words = 2048, 1024, 65536
    states = torch.randn(tokens, width, device="cuda", dtype=torch.bfloat16)
    (head,) = weights(torch, 1, width, words, torch.bfloat16)
    chosen = torch.randint(0, words, (tokens, 1), device="cuda")

    def judged(logits: Any) -> Any:
        logs = torch.log_softmax(logits, -1, dtype=torch.float32)  # planted
        entropy = -(logs.exp() * logs).sum(-1)  # planted
        return logs.gather(-1, chosen).squeeze(-1), entropy

    function = compiled(torch, judged) if fix else judged

    def step() -> Any:
        return function(states @ head)

    return step


@planted("kernel", "even_out", also=("at_roofline",))
def segments_looked_up_by_index(torch: Any, fix: str | None) -> Step:
    """Each of 8,192 tokens gets one of two segment vectors by `table[segments]`, and a loss goes back through it.

    The gradient of such an index adds all the tokens of a segment one after the other, with two rows' worth of
    threads, while the rest of the GPU looks on. That of `embedding`, which finds the same rows, adds them in parts.
    """
    functional = torch.nn.functional
    torch.backends.cuda.matmul.allow_tf32 = True
    tokens, width = 8192, 1024
    table = torch.randn(2, width, device="cuda", requires_grad=True)
    layers = [weight.requires_grad_() for weight in weights(torch, 3, width, width)]
    words = torch.randn(tokens, width, device="cuda")
    segments = (torch.arange(tokens, device="cuda") % 512) // 256

    def step() -> Any:
        for parameter in (table, *layers):
            parameter.grad = None
        added = functional.embedding(segments, table) if fix else table[segments]  # planted
        x = functional.layer_norm(words + added, (width,))
        for weight in layers:
            x = x @ weight
        loss = x.square().mean()
        loss.backward()  # planted
        return loss.detach(), table.grad

    return step


@planted("kernel", "bf16", also=("drop_casts",), innocent="remove_sync", trap=True)
def attention_raised_to_float(torch: Any, fix: str | None) -> Step:
    """A detector's encoder raises queries, keys and values to float32 for its attention, and logs each loss.

    The loss of both micro-batches is read back with `.item()`, behind so much work that nobody waits for it long.
    What takes the time is the fused attention, which in float32 has but a fraction of its speed in bfloat16.
    """
    functional = torch.nn.functional
    batch, tokens, width, heads = 2, 2048, 1024, 16
    (into,) = weights(torch, 1, width, 3 * width, torch.bfloat16)
    (out,) = weights(torch, 1, width, width, torch.bfloat16)
    parameters = (into.requires_grad_(), out.requires_grad_())
    images = torch.randn(2, batch, tokens, width, device="cuda", dtype=torch.bfloat16).unbind(0)
    raised = fix not in ("bf16", "drop_casts")

    def attended(x: Any) -> Any:
        parts = (x @ into).view(batch, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        query, key, value = (parts.float() if raised else parts).unbind(0)  # planted
        seen = functional.scaled_dot_product_attention(query, key, value)  # planted
        return seen.transpose(1, 2).reshape(batch, tokens, width).to(torch.bfloat16) @ out

    def step() -> Any:
        losses = []
        for parameter in parameters:
            parameter.grad = None
        for x in images:
            loss = attended(x).float().square().mean()
            loss.backward()
            losses.append(loss.detach() if fix == "remove_sync" else loss.item())
        return losses

    return step
