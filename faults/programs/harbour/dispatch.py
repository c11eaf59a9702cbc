"""Cause `dispatch`: the CPU launches kernels more slowly than the GPU runs them."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.harbour.networks import learn
from faults.programs.sealed.parts import graphed, hugging_face, sizes


@planted("dispatch", "cuda_graph", steps=3)
def world_model_that_imagines_moment_by_moment(torch: Any, fix: str | None) -> Step:
    """A planner imagines 24 moments ahead of 256 plans with a recurrent world model, one moment after another.

    A moment is some thirty kernels on matrices of 256 rows, each done before the next one is launched. Neither shapes
    nor addresses change, so that all moments can be one CUDA graph.
    """
    nn = torch.nn
    plans, moments, deep, groups, kinds, moves = sizes((256, 24, 512, 16, 16, 6), (3, 4, 8, 2, 3, 2))
    chance = groups * kinds

    def perceptron(before: int, after: int) -> Any:
        return nn.Sequential(nn.Linear(before, deep), nn.LayerNorm(deep), nn.SiLU(), nn.Linear(deep, after))

    parts = nn.ModuleDict(
        {
            "enter": nn.Sequential(nn.Linear(chance + moves, deep), nn.LayerNorm(deep), nn.SiLU()),
            "memory": nn.GRUCell(deep, deep),
            "prior": perceptron(deep, chance),
            "actor": perceptron(deep + chance, moves),
            "reward": perceptron(deep + chance, 1),
        }
    )
    parts = parts.to("cuda", torch.bfloat16).requires_grad_(False)
    noise = torch.rand(moments, plans, groups, kinds, device="cuda").clamp(1e-6, 1 - 1e-6).log().neg().log().neg()
    start = torch.randn(plans, deep, device="cuda", dtype=torch.bfloat16)
    returns = torch.zeros(plans, device="cuda")

    def imagine() -> None:
        memory, state = start, torch.zeros(plans, chance, device="cuda", dtype=torch.bfloat16)
        total, weight = torch.zeros(plans, device="cuda"), 1.0
        for moment in range(moments):
            move = torch.tanh(parts["actor"](torch.cat((memory, state), -1)))
            memory = parts["memory"](parts["enter"](torch.cat((state, move), -1)), memory)  # planted
            logits = parts["prior"](memory).float().unflatten(-1, (groups, kinds))  # planted
            chances = 0.99 * logits.softmax(-1) + 0.01 / kinds
            drawn = (chances.log() + noise[moment]).argmax(-1, keepdim=True)
            state = torch.zeros_like(chances).scatter_(-1, drawn, 1.0).flatten(1).to(torch.bfloat16)
            total = total + weight * parts["reward"](torch.cat((memory, state), -1)).float().squeeze(-1)
            weight *= 0.997
        returns.copy_(total)

    with torch.inference_mode():
        run = graphed(torch, imagine) if fix else imagine

    def step() -> Any:
        with torch.inference_mode():
            run()
            return returns.topk(2).values.tolist()

    return step


@planted("dispatch", "batch", steps=3)
def protein_folder_that_attends_row_by_row(torch: Any, fix: str | None) -> Step:
    """A network that folds proteins attends to the 32 rows of an alignment in a loop, in each of four blocks.

    A row is 384 residues of 256 channels: each of its dozen kernels takes a few microseconds, less than its launch.
    All rows share the weights and the bias from the pairs, so that one call can take the whole alignment.
    """
    nn, functional = torch.nn, torch.nn.functional
    rows, residues, channels, heads, between, blocks = sizes((32, 384, 256, 8, 128, 4), (3, 6, 16, 2, 8, 1))

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.norm_pairs = nn.LayerNorm(channels), nn.LayerNorm(between)
            self.enter, self.gate = nn.Linear(channels, 3 * channels, bias=False), nn.Linear(channels, channels)
            self.leave, self.bias = nn.Linear(channels, channels), nn.Linear(between, heads, bias=False)
            self.left, self.right = nn.Linear(between, between), nn.Linear(between, between)
            self.norm_edges = nn.LayerNorm(between)
            self.wide, self.narrow = nn.Linear(between, 4 * between), nn.Linear(4 * between, between)

        def attend(self, rows: Any, bias: Any) -> Any:
            x = self.norm(rows)
            query, key, value = self.enter(x).unflatten(-1, (3, heads, channels // heads)).permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
            return rows + self.leave(torch.sigmoid(self.gate(x)) * mixed.transpose(1, 2).flatten(2))

        def forward(self, alignment: Any, pairs: Any) -> Any:
            normed = self.norm_pairs(pairs)
            bias = self.bias(normed).permute(2, 0, 1).contiguous()
            if fix:
                alignment = self.attend(alignment, bias.expand(len(alignment), -1, -1, -1))
            else:
                alignment = torch.cat([self.attend(row, bias.unsqueeze(0)) for row in alignment.split(1)])  # planted
            edges = torch.einsum("ikc,jkc->ijc", torch.sigmoid(self.left(normed)), self.right(normed))
            pairs = pairs + self.norm_edges(edges)
            return alignment, pairs + self.narrow(functional.relu(self.wide(self.norm_pairs(pairs))))

    folder = nn.ModuleList(Block() for _ in range(blocks)).to("cuda", torch.bfloat16).requires_grad_(False)
    first = torch.randn(rows, residues, channels, device="cuda", dtype=torch.bfloat16)
    near = torch.randn(residues, residues, between, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        with torch.inference_mode():
            alignment, pairs = first, near
            for block in folder:
                alignment, pairs = block(alignment, pairs)
            return alignment[0].float().mean() + pairs.float().mean()

    return step


@planted("dispatch", "fused_optimizer", steps=2)
def mpnet_updated_parameter_by_parameter(torch: Any, fix: str | None) -> Step:
    """An MPNet learns which sentences belong together, with `foreach=False` in its AdamW to save memory.

    The optimizer then takes about ten kernels for each of two hundred small parameters. The fused one takes a few for
    all of them.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, pairs, length = sizes((384, 12, 12, 8192, 64, 64), (16, 1, 2, 50, 3, 8))
    config = transformers.MPNetConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=length + 2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = transformers.MPNetModel(config, add_pooling_layer=False).to("cuda", torch.bfloat16).train()
    kind = {"fused": True} if fix else {"foreach": False}  # planted
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **kind)
    sentences = torch.randint(3, vocabulary, (2 * pairs, length), device="cuda")
    whole = torch.ones_like(sentences)
    partners = torch.arange(pairs, device="cuda")

    def step() -> Any:
        vectors = model(input_ids=sentences, attention_mask=whole).last_hidden_state.mean(1)
        one, other = torch.nn.functional.normalize(vectors.float(), dim=-1).chunk(2)
        loss = torch.nn.functional.cross_entropy(20 * one @ other.T, partners)
        return learn(optimizer, loss)  # planted

    return step
