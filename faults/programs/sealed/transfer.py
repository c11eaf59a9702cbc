"""Cause `transfer`: copies between CPU and GPU that are too many or too large."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import endless, hugging_face, sizes


class Clicks:
    """A data set of clicks: each item is a whole batch, with a tensor for each column of the table."""

    def __init__(self, torch: Any, batch: int, columns: int, rows: int) -> None:
        self._torch, self._batch, self._columns, self._rows = torch, batch, columns, rows
        self._kept = [self._read(index) for index in range(8)]

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self._kept[index % len(self._kept)]

    def _read(self, index: int) -> dict[str, Any]:
        torch, size = self._torch, (self._batch,)
        table = {f"category_{column}": torch.randint(0, self._rows, size) for column in range(self._columns)}
        table |= {f"number_{column}": torch.rand(size) for column in range(self._columns // 2)}
        return {**table, "clicked": (torch.rand(size) < 0.1).float()}


@planted("transfer", "coalesce_copies")
def recommender_that_moves_column_by_column(torch: Any, fix: str | None) -> Step:
    """A click model is trained on tables of 60 columns, and each column is copied to the GPU by itself.

    A copy of 16 KB takes the GPU a microsecond and the CPU many times that, and it waits for each. Packed into one
    array for the categories and one for the numbers, a batch takes two copies.
    """
    nn = torch.nn
    batch, columns, rows, width = sizes((2048, 40, 5_000, 32), (16, 4, 50, 4))
    loader = torch.utils.data.DataLoader(Clicks(torch, batch, columns, rows), batch_size=None)
    table = nn.Embedding(columns * rows, width).to("cuda")
    offsets = torch.arange(columns, device="cuda") * rows
    inputs = columns * width + columns // 2
    top = nn.Sequential(nn.Linear(inputs, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 1)).to("cuda")
    optimizer = torch.optim.Adagrad([*table.parameters(), *top.parameters()], lr=1e-3, foreach=True)
    names = [f"category_{column}" for column in range(columns)]
    numbers = [f"number_{column}" for column in range(columns // 2)]

    def on_the_gpu(batch: dict[str, Any]) -> tuple[Any, Any, Any]:
        if fix:
            ids = torch.stack([batch[name] for name in names]).to("cuda").T
            values = torch.stack([*(batch[name] for name in numbers), batch["clicked"]]).to("cuda").T
            return ids, values[:, :-1], values[:, -1]
        moved = {name: column.to("cuda") for name, column in batch.items()}  # planted
        ids = torch.stack([moved[name] for name in names], 1)
        return ids, torch.stack([moved[name] for name in numbers], 1), moved["clicked"]

    source = endless(loader)

    def step() -> Any:
        ids, values, clicked = on_the_gpu(next(source))
        optimizer.zero_grad(set_to_none=True)
        known = table(ids + offsets).flatten(1)
        logits = top(torch.cat((known, values), -1)).squeeze(-1)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, clicked)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@planted("transfer", "reduce_before_copy")
def sentence_vectors_averaged_on_the_cpu(torch: Any, fix: str | None) -> Step:
    """A BERT makes sentence vectors, and the vectors of all tokens are copied to the CPU, which averages them.

    64 sentences are 50 MB of token vectors and 200 KB of averages. The average belongs before the copy.
    """
    transformers = hugging_face()
    width, layers, heads, vocabulary, batch, length = sizes((768, 6, 12, 30522, 64, 256), (32, 2, 2, 100, 2, 8))
    config = transformers.BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    model = transformers.BertModel(config).to("cuda", torch.bfloat16).eval()
    tokens = torch.randint(0, vocabulary, (batch, length), device="cuda")
    lengths = torch.randint(length // 2, length + 1, (batch, 1), device="cuda")
    mask = (torch.arange(length, device="cuda") < lengths).long()
    mask_on_the_cpu = mask.cpu()

    def average(vectors: Any, present: Any) -> Any:
        weight = present.unsqueeze(-1).float()
        return (vectors * weight).sum(1) / weight.sum(1)

    def step() -> Any:
        with torch.inference_mode():
            vectors = model(input_ids=tokens, attention_mask=mask).last_hidden_state.float()
            sentences = average(vectors, mask).cpu() if fix else average(vectors.cpu(), mask_on_the_cpu)  # planted
            return torch.nn.functional.normalize(sentences, dim=-1).numpy()

    return step
