"""Cause `dispatch`: classes, substeps and requests that Python takes one at a time."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import graphed, weights


def _suppressed(torch: Any, scores: Any, boxes: Any) -> Any:
    """The scores of the boxes that no better box of their class covers; the last two dimensions are boxes and four."""
    low, high = boxes[..., :2], boxes[..., 2:]
    corner = torch.maximum(low[..., :, None, :], low[..., None, :, :])
    other = torch.minimum(high[..., :, None, :], high[..., None, :, :])
    shared = (other - corner).clamp(min=0).prod(-1)
    area = (high - low).prod(-1)
    overlap = shared / (area[..., :, None] + area[..., None, :] - shared)
    return scores * (overlap.triu(1).amax(-2) <= 0.5)


@planted("dispatch", "batch", trap=True, innocent="tf32")
def boxes_suppressed_class_by_class(torch: Any, fix: str | None) -> Step:
    """A detector ranks and thins out the boxes of each of its 24 classes in a loop, some fifteen small kernels each.

    The kernels are shorter than their launches. All classes fit into one batch of the same calls. The head's matmul
    without tensor cores catches the eye, but the GPU has long finished it when the loop goes on.
    """
    classes, kept = 24, 100
    torch.backends.cuda.matmul.allow_tf32 = fix == "tf32"
    features = torch.randn(2048, 1024, device="cuda")
    (tower,) = weights(torch, 1, 1024, 1024)
    (head,) = weights(torch, 1, 1024, classes + 4)

    def step() -> Any:
        found = features @ tower @ head
        scores, place = found[:, :classes].sigmoid().t(), found[:, classes:]
        size = place[:, 2:].exp()
        boxes = torch.cat((place[:, :2] - size, place[:, :2] + size), -1)
        if fix == "batch":
            best = scores.topk(kept)
            return _suppressed(torch, best.values, boxes[best.indices])
        results = []
        for one in scores:  # planted
            best = one.topk(kept)  # planted
            results.append(_suppressed(torch, best.values, boxes[best.indices]))  # planted
        return torch.stack(results)

    return step


@planted("dispatch", "cuda_graph")
def orbits_in_small_steps(torch: Any, fix: str | None) -> Step:
    """A simulation moves 128 bodies by 40 leapfrog steps, each a dozen kernels over arrays that fit into a cache.

    Every kernel takes two microseconds and every launch more, so the GPU waits for Python. The steps are always the
    same ones: captured as a graph they run without it.
    """
    start, motion = torch.randn(128, 3, device="cuda"), torch.randn(128, 3, device="cuda") * 0.1
    mass, tick = torch.rand(128, 1, device="cuda") / 128, 1e-3

    def pull(place: Any) -> Any:
        apart = place[None] - place[:, None]
        nearness = (apart.square().sum(-1, keepdim=True) + 1e-2).pow(-1.5)
        return (apart * (nearness * mass)).sum(1)

    def step() -> Any:
        place, speed = start, motion
        force = pull(place)
        for _ in range(40):
            speed = speed.add(force, alpha=tick / 2)  # planted
            place = place.add(speed, alpha=tick)  # planted
            force = pull(place)  # planted
            speed = speed.add(force, alpha=tick / 2)  # planted
        return place, speed

    return graphed(torch, step) if fix else step


@planted("dispatch", "batch")
def settings_of_every_request(torch: Any, fix: str | None) -> Step:
    """A server samples the next token of 24 requests one by one, because each has its own temperature and penalty.

    A dozen kernels over one row of the vocabulary are nothing for the GPU. With the settings in columns, one for each
    request, the same dozen serve all rows.
    """
    requests, vocabulary, width = 24, 32000, 2048
    hidden = torch.randn(requests, width, device="cuda", dtype=torch.bfloat16)
    (head,) = weights(torch, 1, width, vocabulary, torch.bfloat16)
    seen = torch.randint(0, vocabulary, (requests, 256), device="cuda")
    noise = torch.empty(requests, vocabulary, device="cuda").exponential_()
    temperatures = [0.6 + 0.02 * index for index in range(requests)]
    penalties = [1.0 + 0.01 * index for index in range(requests)]
    floors = [0.02 + 0.001 * index for index in range(requests)]
    columns = [torch.tensor(values, device="cuda")[:, None] for values in (temperatures, penalties, floors)]

    def sample(row: Any, used: Any, waits: Any, temperature: Any, penalty: Any, floor: Any) -> Any:
        score = row.gather(-1, used)
        row = row.scatter(-1, used, torch.where(score > 0, score / penalty, score * penalty))
        chance = (row / temperature).softmax(-1)
        chance = chance * (chance >= floor * chance.amax(-1, keepdim=True))
        return (chance / waits).argmax(-1)

    def step() -> Any:
        logits = (hidden @ head).float()
        if fix:
            return sample(logits, seen, noise, *columns)
        tokens = []
        for index, settings in enumerate(zip(temperatures, penalties, floors, strict=True)):
            tokens.append(sample(logits[index], seen[index], noise[index], *settings))  # planted
        return torch.stack(tokens)

    return step
