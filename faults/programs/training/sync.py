"""Cause `sync`: graphs, confusion matrices and transcripts for which the CPU waits in the middle of the work."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


@planted("sync", "remove_sync")
def nodes_counted_in_every_layer(torch: Any, fix: str | None) -> Step:
    """A graph network sums over edges into `int(index.max()) + 1` rows, twice in each of six layers.

    The helper is not told how many nodes there are, so it reads the largest index back before it can allocate. The
    number of nodes is the number of rows of the features, which the CPU knows.
    """
    torch.backends.cuda.matmul.allow_tf32 = True
    nodes, edges, width = 16384, 98304, 128
    source, target = torch.randint(0, nodes, (2, edges), device="cuda").unbind(0)
    target[-1] = nodes - 1
    features = torch.randn(nodes, width, device="cuda")
    ones = torch.ones(edges, 1, device="cuda")
    layers = weights(torch, 6, width, width)

    def summed(messages: Any, index: Any) -> Any:
        rows = nodes if fix else int(index.max()) + 1  # planted
        return messages.new_zeros(rows, messages.shape[1]).index_add_(0, index, messages)

    def step() -> Any:
        x = features
        for weight in layers:
            total = summed(x.index_select(0, source), target)
            degree = summed(ones, target)
            x = ((total / degree.clamp_(min=1.0)) @ weight).relu_()
        return x

    return step


@planted("sync", "remove_sync")
def confusion_counted_with_bincount(torch: Any, fix: str | None) -> Step:
    """A segmentation network's confusion matrix is counted with `torch.bincount`, for each of eight batches.

    On a GPU it reads the least and the largest value back before it counts, though there can be only as many bins
    as pairs of classes. A histogram that is told its limits counts the same and waits for nothing.
    """
    classes, pixels, width = 24, 262144, 256
    (head,) = weights(torch, 1, width, classes, torch.bfloat16)
    batches = [torch.randn(pixels, width, device="cuda", dtype=torch.bfloat16) for _ in range(8)]
    labels = torch.randint(0, classes, (8, pixels), device="cuda").unbind(0)
    cells = classes * classes

    def step() -> Any:
        confusion = torch.zeros(cells, device="cuda")
        for features, truth in zip(batches, labels, strict=True):
            pairs = (features @ head).argmax(-1).add_(truth, alpha=classes)
            if fix:
                confusion += torch.histc(pairs.float(), cells, 0, cells)
            else:
                confusion += torch.bincount(pairs, minlength=cells)  # planted
        return confusion.view(classes, classes)

    return step


@planted("sync", "remove_sync")
def transcripts_read_batch_by_batch(torch: Any, fix: str | None) -> Step:
    """A speech evaluation takes each batch's best tokens with `.tolist()` and compares them with the text.

    While Python collapses repeats and counts errors the GPU has nothing to do, and Python waits while it has. Copied
    to pinned memory and read while the next batch runs, the tokens delay nobody.
    """
    utterances, frames, width, tokens = 32, 128, 1024, 64
    layers = weights(torch, 6, width, width, torch.bfloat16)
    (head,) = weights(torch, 1, width, tokens, torch.bfloat16)
    audio = torch.randn(5, utterances * frames * 4, width, device="cuda", dtype=torch.bfloat16).unbind(0)
    texts = [[[(i * j) % tokens for j in range(frames)] for i in range(utterances)] for _ in audio]
    places = [torch.empty(utterances, frames, dtype=torch.long, pin_memory=True) for _ in audio]
    arrivals = [torch.cuda.Event() for _ in audio]
    waiting: list[int] = []

    def errors_in(spoken: list[list[int]], text: list[list[int]]) -> int:
        wrong = 0
        for row, reference in zip(spoken, text, strict=True):
            before = 0
            for token, expected in zip(row, reference, strict=True):
                if token not in (before, expected):
                    wrong += 1
                before = token
        return wrong

    def step() -> int:
        wrong = 0
        for number, sound in enumerate(audio):
            x = sound
            for weight in layers:
                x = x @ weight
            best = (x.view(utterances, frames, 4, width).mean(2) @ head).argmax(-1)
            if fix:
                places[number].copy_(best, non_blocking=True)
                arrivals[number].record()
                waiting.append(number)
                if len(waiting) > 1:
                    ready = waiting.pop(0)
                    arrivals[ready].synchronize()
                    wrong += errors_in(places[ready].tolist(), texts[ready])
            else:
                wrong += errors_in(best.tolist(), texts[number])  # planted
        return wrong

    return step
