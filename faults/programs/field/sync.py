"""Sizes, checks and scalars that make the CPU wait, with small work to launch right after the wait.

The cause is `sync`, or `dispatch` where free launches give more back by the stopwatch (`faults/other_fix.py`).
"""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import weights


def _sinusoids(torch: Any, position: Any, frequencies: Any) -> Any:
    """An embedding of a position: about ten small kernels."""
    angle = position * frequencies
    both = torch.cat([angle.sin(), angle.cos()], -1)
    both = both - both.mean(-1, keepdim=True)
    return both / (both.square().mean(-1, keepdim=True) + 1e-5).sqrt()


@planted("dispatch", "remove_sync")
def timestep_made_from_a_number(torch: Any, fix: str | None) -> Step:
    """A diffusion sampler makes `torch.tensor([t], device="cuda")` from a Python number in each of six steps.

    That is a copy from the host, and it returns only when everything launched before it is done; the small kernels of
    the time embedding are launched after that, to an idle GPU. `torch.full` fills the tensor there and waits for
    nothing.
    """
    functional = torch.nn.functional
    frequencies = torch.rand(64, device="cuda")
    mixes = weights(torch, 4, 128, 128)
    filters = [
        (torch.randn(128, 128, 3, 3, device="cuda") * 0.03).to(torch.bfloat16, memory_format=torch.channels_last)
        for _ in range(3)
    ]
    noise = torch.randn(48, 128, 64, 64, device="cuda", dtype=torch.bfloat16).to(memory_format=torch.channels_last)

    def step() -> Any:
        x = noise
        for index in range(6):
            time = 1.0 - index / 6
            t = torch.full((1,), time, device="cuda") if fix else torch.tensor([time], device="cuda")  # planted
            embedded = _sinusoids(torch, t[:, None], frequencies)
            for mix in mixes:
                embedded = functional.silu(embedded @ mix) + embedded
                embedded = embedded / (embedded.square().mean() + 1e-5).sqrt()
            x = x + embedded.to(torch.bfloat16)[:, :, None, None]
            for kernel in filters:
                x = functional.conv2d(x, kernel, padding=1)
        return x

    return step


@planted("sync", "remove_sync")
def distribution_that_validates(torch: Any, fix: str | None) -> Step:
    """A policy update builds a `Normal` for each of six minibatches, and torch checks its arguments each time.

    To know whether every scale is positive it reads a flag back, and again for every value, behind the matmuls of the
    trunk. `validate_args=False` says that they are.
    """
    normal = torch.distributions.Normal
    trunk = weights(torch, 3, 2048, 2048, torch.bfloat16)
    (head,) = weights(torch, 1, 2048, 16, torch.bfloat16)
    states = torch.randn(6, 13312, 2048, device="cuda", dtype=torch.bfloat16).unbind(0)
    actions = torch.randn(6, 13312, 8, device="cuda").unbind(0)
    old = torch.randn(6, 13312, device="cuda").unbind(0)
    advantages = torch.randn(6, 13312, device="cuda").unbind(0)

    def step() -> Any:
        losses = []
        for state, action, before, advantage in zip(states, actions, old, advantages, strict=True):
            x = state
            for weight in trunk:
                x = x @ weight
            mean, spread = (x @ head).float().chunk(2, -1)
            check = {"validate_args": False} if fix else {}
            policy = normal(mean, spread.clamp(-2.0, 2.0).exp(), **check)  # planted
            likelihood = policy.log_prob(action).sum(-1)  # planted
            ratio = (likelihood - before).clamp(-10.0, 10.0).exp()
            centred = (advantage - advantage.mean()) / (advantage.std() + 1e-5)
            clipped = ratio.clamp(0.8, 1.2) * centred
            gained = torch.minimum(ratio * centred, clipped).mean()
            entropy = policy.entropy().sum(-1).mean()
            moved = ((ratio - 1.0) - (likelihood - before)).mean()
            share = ((ratio - 1.0).abs() > 0.2).float().mean()
            losses.append(torch.stack([-gained - 0.01 * entropy, moved, share]))
        return losses

    return step


@planted("dispatch", "remove_sync")
def padding_trimmed_to_the_longest(torch: Any, fix: str | None) -> Step:
    """A speech encoder cuts each of six batches to `int(lengths.max())`, with lengths that lie on the GPU.

    The number is behind the previous batch's layers, and the masks and positions are launched only once it is there.
    The loader had the lengths as Python numbers.
    """
    width, frames = 1024, 256
    known = [[frames - 8 * ((5 * row + batch) % 24) for row in range(64)] for batch in range(6)]
    lengths = [torch.tensor(row, device="cuda") for row in known]
    sounds = torch.randn(6, 64, 320, width, device="cuda", dtype=torch.bfloat16).unbind(0)
    layers = weights(torch, 2, width, 2 * width, torch.bfloat16)
    backs = weights(torch, 2, 2 * width, width, torch.bfloat16)
    frequencies = torch.rand(width // 2, device="cuda")

    def step() -> Any:
        results = []
        for sound, length, numbers in zip(sounds, lengths, known, strict=True):
            longest = max(numbers) if fix else int(length.max())  # planted
            places = torch.arange(longest, device="cuda")
            valid = places[None, :] < length[:, None]
            inverse = valid.float() / valid.float().sum(-1, keepdim=True).clamp(min=1.0)
            angle = _sinusoids(torch, places[:, None].float() / longest, frequencies)
            angle = angle * torch.rsqrt(angle.square().sum(-1, keepdim=True) + 1e-5)
            forward, backward = places.float() / longest, (longest - places).float() / longest
            slope = torch.minimum(forward, backward) - forward * backward
            slope = (slope - slope.mean()) / (slope.std() + 1e-5)
            angle = (angle + 0.01 * slope[:, None]).clamp(-3.0, 3.0)
            x = sound[:, :longest] + angle.to(torch.bfloat16)
            for out, back in zip(layers, backs, strict=True):
                x = x @ out @ back
            results.append((x * inverse[:, :, None].to(torch.bfloat16)).sum(1))
        return results

    return step


@planted("dispatch", "remove_sync")
def classes_counted_for_one_hot(torch: Any, fix: str | None) -> Step:
    """An evaluation calls `one_hot(labels)` for each of six batches without saying how many classes there are.

    torch looks for the largest label and reads it back, behind the classifier's matmuls, and the calibration and the
    scores that follow are launched to an idle GPU. Told the number of classes it need not look.
    """
    functional = torch.nn.functional
    classes = 128
    layers = weights(torch, 2, 2048, 2048, torch.bfloat16)
    (head,) = weights(torch, 1, 2048, classes, torch.bfloat16)
    images = torch.randn(6, 6144, 2048, device="cuda", dtype=torch.bfloat16).unbind(0)
    labels = torch.randint(0, classes, (6, 6144), device="cuda")
    labels[:, 0] = classes - 1
    edges = torch.linspace(0.0, 1.0, 16, device="cuda")

    def step() -> Any:
        scores = []
        for image, truth in zip(images, labels.unbind(0), strict=True):
            x = image
            for weight in layers:
                x = x @ weight
            chances = (x @ head).float().softmax(-1)
            target = functional.one_hot(truth, classes if fix else -1)[:, :classes].float()  # planted
            brier = (chances - target).square().sum(-1).mean()
            sure, chosen = chances.max(-1)
            right = (chosen == truth).float()
            places = torch.bucketize(sure, edges)
            sums = torch.zeros(3, 17, device="cuda")
            sums[0].index_add_(0, places, sure)
            sums[1].index_add_(0, places, right)
            sums[2].index_add_(0, places, torch.ones_like(sure))
            gap = ((sums[0] - sums[1]).abs() / sums[2].clamp(min=1.0)).mean()
            recall = (target * chances).sum(0) / target.sum(0).clamp(min=1.0)
            precision = (target * chances).sum(0) / chances.sum(0).clamp(min=1e-6)
            balanced = (2.0 * recall * precision / (recall + precision).clamp(min=1e-6)).mean()
            scores.append(torch.stack([brier, gap, balanced, right.mean()]))
        return scores

    return step


@planted("sync", "remove_sync")
def experts_split_by_counts(torch: Any, fix: str | None) -> Step:
    """Each of four layers splits its tokens among 16 small experts with `bincount(...).tolist()`.

    The routes are hashes of the tokens, so that every expert gets the same number and the counts are known before. Read
    back from the GPU they come after the layer's dense matmuls, and the experts are launched only then.
    """
    functional = torch.nn.functional
    tokens, width, narrow, experts = 8192, 2048, 128, 16
    dense = weights(torch, 4, width, width, torch.bfloat16)
    (into,) = weights(torch, 1, width, narrow, torch.bfloat16)
    (out,) = weights(torch, 1, narrow, width, torch.bfloat16)
    inner = [weights(torch, experts, narrow, narrow, torch.bfloat16) for _ in dense]
    routes = [torch.randperm(tokens, device="cuda") % experts for _ in dense]
    orders = [chosen.argsort() for chosen in routes]
    returns = [order.argsort() for order in orders]
    batch = torch.randn(tokens, width, device="cuda", dtype=torch.bfloat16)
    even = [tokens // experts] * experts

    def step() -> Any:
        x = batch
        for first, chosen, order, home, own in zip(dense, routes, orders, returns, inner, strict=True):
            x = x @ first
            counts = even if fix else torch.bincount(chosen, minlength=experts).tolist()  # planted
            parts = (x @ into)[order].split(counts)
            done = [functional.silu(part @ weight) for part, weight in zip(parts, own, strict=True)]
            x = x + (torch.cat(done) @ out)[home]
        return x

    return step
