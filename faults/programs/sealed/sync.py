"""Cause `sync`: the CPU waits for the GPU, and then the GPU waits for the CPU."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.carts import Carts, perceptron
from faults.programs.sealed.parts import sizes
from faults.programs.sealed.vision import detector


@planted("sync", "remove_sync", steps=3)
def ppo_that_logs_every_update(torch: Any, fix: str | None) -> Step:
    """PPO plays carts with poles, simulated on the GPU, then updates its networks, and logs each update with `.item()`.

    The simulation is many tiny kernels, which the CPU could launch while the GPU still runs the heavy updates before
    it. Each `.item()` waits for them instead. The statistics can stay on the GPU until somebody looks at them.
    """
    nn, functional = torch.nn, torch.nn.functional
    carts, horizon, width, halves = sizes((6144, 32, 1024, 2), (8, 4, 16, 2))
    torch.backends.cuda.matmul.allow_tf32 = True

    actor, critic = perceptron(torch, 4, width, 2), perceptron(torch, 4, width, 1)
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-4, eps=1e-5, fused=True)
    game = Carts(torch, carts)
    history: list[dict[str, Any]] = []

    def step() -> Any:
        rollout = [part.flatten(0, 1) for part in game.play(actor, critic, horizon)]
        order = torch.randperm(carts * horizon, device="cuda")
        for chosen in order.chunk(halves):
            seen, taken, chances, gained, returns = (part[chosen] for part in rollout)
            gained = (gained - gained.mean()) / (gained.std() + 1e-8)
            logits = actor(seen).log_softmax(-1)
            change = logits.gather(-1, taken.unsqueeze(-1)).squeeze(-1) - chances
            ratio = change.exp()
            gain = torch.minimum(ratio * gained, ratio.clamp(0.8, 1.2) * gained).mean()
            entropy = -(logits.exp() * logits).sum(-1).mean()
            error = functional.mse_loss(critic(seen).squeeze(-1), returns)
            optimizer.zero_grad(set_to_none=True)
            (0.5 * error - gain - 0.01 * entropy).backward()
            norm = nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
            moved = ((ratio - 1) - change).mean().detach()
            record = {"policy": gain, "value": error, "entropy": entropy, "kl": moved, "norm": norm}
            if fix:
                history.append({name: value.detach() for name, value in record.items()})
            else:
                history.append({name: value.item() for name, value in record.items()})  # planted
        del history[:-8]
        return history[-1]

    return step


@planted("sync", "remove_sync", steps=3)
def detector_that_picks_objects_by_mask(torch: Any, fix: str | None) -> Step:
    """A detector's loss goes through the images of a batch and indexes the predictions with a mask of the objects.

    The size of `boxes[mask]` is known only on the GPU, so that each image waits for the backbone's forward pass, and
    the GPU then idles through the loop. Weights of zero and one give the same sums with sizes known in advance.
    """
    functional = torch.nn.functional
    images, pixels, width, classes = sizes((24, 320, 64, 20), (2, 64, 8, 3))
    model = detector(torch, width, classes).to("cuda", memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, fused=True)
    batch = torch.rand(images, 3, pixels, pixels, device="cuda").to(memory_format=torch.channels_last)
    cells = (pixels // 16) ** 2
    labels = (torch.randint(0, 20 * classes, (images, cells), device="cuda") - 19 * classes).clamp(min=-1)
    truth = torch.rand(images, cells, 4, device="cuda")

    def losses_of_objects(scores: Any, boxes: Any, label: Any, wanted: Any) -> tuple[Any, Any]:
        mask = label >= 0
        if fix:
            weight, count = mask.float(), mask.sum().clamp(min=1)
            named = functional.cross_entropy(scores[:, 1:], label.clamp(min=0), reduction="none")
            placed = functional.smooth_l1_loss(boxes.sigmoid(), wanted, reduction="none").mean(-1)
            return (named * weight).sum() / count, (placed * weight).sum() / count
        named = functional.cross_entropy(scores[mask][:, 1:], label[mask])  # planted
        placed = functional.smooth_l1_loss(boxes[mask].sigmoid(), wanted[mask])  # planted
        return named, placed

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            scores, boxes = model(batch)
        total = torch.zeros((), device="cuda")
        for score, box, label, wanted in zip(scores.float(), boxes.float(), labels, truth, strict=True):
            found = functional.binary_cross_entropy_with_logits(score[:, 0], (label >= 0).float())
            named, placed = losses_of_objects(score, box, label, wanted)
            total = total + found + named + 2.0 * placed
        loss = total / images
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
