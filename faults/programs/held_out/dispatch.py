"""Cause `dispatch`: an ensemble, a GAN, averaged weights, a beam search, a policy in its environment."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.parts import graphed, weights


@planted("dispatch", "batch", also=("cuda_graph",), steps=4)
def ensemble_one_by_one(torch: Any, fix: str | None) -> Step:
    """Twelve small networks vote on the same input, and each is called in turn.

    Their weights differ but their shapes do not, so three batched matmuls do what thirty-six calls did.
    """
    nn, votes = torch.nn, 12
    members = [
        nn.Sequential(nn.Linear(128, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 10)).cuda()
        for _ in range(votes)
    ]
    x = torch.randn(64, 128, device="cuda")
    stacked = [
        (
            torch.stack([member[layer].weight.detach().t() for member in members]),
            torch.stack([member[layer].bias.detach() for member in members]).unsqueeze(1),
        )
        for layer in (0, 2, 4)
    ]

    def one_by_one() -> Any:
        with torch.no_grad():
            opinions = [torch.softmax(member(x), -1) for member in members]  # planted
            return torch.stack(opinions).mean(0)

    def batched() -> Any:
        y = x.expand(votes, 64, 128)
        for weight, bias in stacked[:2]:
            y = torch.tanh(torch.baddbmm(bias, y, weight))
        weight, bias = stacked[2]
        return torch.softmax(torch.baddbmm(bias, y, weight), -1).mean(0)

    if fix == "cuda_graph":
        return graphed(torch, one_by_one)
    return batched if fix == "batch" else one_by_one


@planted("dispatch", "cuda_graph", steps=4)
def adversarial_training(torch: Any, fix: str | None) -> Step:
    """A small GAN: two networks, two losses and two optimisers in one step, launched kernel by kernel.

    Nothing in the step needs the CPU, the noise is drawn on the GPU, and the shapes never change: it is one graph.
    """
    nn = torch.nn
    generator = nn.Sequential(
        nn.Linear(64, 256), nn.LeakyReLU(0.2), nn.Linear(256, 256), nn.LeakyReLU(0.2), nn.Linear(256, 784), nn.Tanh()
    ).cuda()
    critic = nn.Sequential(
        nn.Linear(784, 256), nn.LeakyReLU(0.2), nn.Linear(256, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1)
    ).cuda()
    of_generator, of_critic = (
        torch.optim.SGD(network.parameters(), lr=1e-4, momentum=0.5) for network in (generator, critic)
    )
    real, noise = torch.rand(64, 784, device="cuda"), torch.randn(64, 64, device="cuda")
    softplus = nn.functional.softplus

    def step() -> None:
        fake = generator(noise.normal_())  # planted
        of_critic.zero_grad(set_to_none=True)
        (softplus(-critic(real)).mean() + softplus(critic(fake.detach())).mean()).backward()  # planted
        of_critic.step()  # planted
        of_generator.zero_grad(set_to_none=True)
        softplus(-critic(fake)).mean().backward()  # planted
        of_generator.step()  # planted

    return graphed(torch, step) if fix == "cuda_graph" else step


@planted("dispatch", "batch", also=("cuda_graph",), steps=4)
def average_of_every_parameter(torch: Any, fix: str | None) -> Step:
    """A running average of the weights is kept with two calls for each of eighty small tensors.

    They are all updated alike, so one call with the list of them does it in one or two kernels.
    """
    parameters = [torch.randn(256, 64, device="cuda") for _ in range(80)]
    averages = [parameter.clone() for parameter in parameters]
    together = torch.optim.swa_utils.get_ema_multi_avg_fn(0.999)

    def one_by_one() -> None:
        for average, parameter in zip(averages, parameters, strict=True):
            average.mul_(0.999).add_(parameter, alpha=0.001)  # planted

    def at_once() -> None:
        together(averages, parameters, None)

    if fix == "cuda_graph":
        return graphed(torch, one_by_one)
    return at_once if fix == "batch" else one_by_one


@planted("dispatch", "cuda_graph", steps=4)
def beam_search(torch: Any, fix: str | None) -> Step:
    """Eight beams of a small decoder grow by a token: two layers, a search, and the caches put in the beams' order.

    Tokens, scores and caches stay on the GPU at the same addresses, so the step can be replayed as a graph.
    """
    beams, hidden, heads, context, words, layers = 8, 384, 6, 96, 8192, 2
    functional = torch.nn.functional
    table = torch.randn(words, hidden, device="cuda")
    projections, outputs = weights(torch, layers, hidden, 3 * hidden), weights(torch, layers, hidden, hidden)
    ups, downs = weights(torch, layers, hidden, 1536), weights(torch, layers, 1536, hidden)
    caches = [torch.randn(2, beams, heads, context, hidden // heads, device="cuda") for _ in range(layers)]
    tokens, totals = torch.zeros(beams, device="cuda", dtype=torch.long), torch.zeros(beams, 1, device="cuda")

    def step() -> Any:
        x = functional.embedding(tokens, table)
        for layer, cache in enumerate(caches):
            heard = functional.layer_norm(x, (hidden,)) @ projections[layer]  # planted
            query, key, value = heard.view(beams, 3, heads, 1, -1).unbind(1)
            cache[:, :, :, -1:].copy_(torch.stack((key, value)))  # planted
            seen = functional.scaled_dot_product_attention(query, cache[0], cache[1])  # planted
            x = x + seen.reshape(beams, hidden) @ outputs[layer]  # planted
            x = x + functional.gelu(functional.layer_norm(x, (hidden,)) @ ups[layer]) @ downs[layer]  # planted
        scores = torch.log_softmax(functional.layer_norm(x, (hidden,)) @ table.t(), -1) + totals  # planted
        best = torch.topk(scores.view(-1), beams)
        parents = torch.div(best.indices, words, rounding_mode="floor")
        tokens.copy_(best.indices.remainder(words))
        totals.copy_((best.values - best.values[0]).unsqueeze(1))
        for cache in caches:
            cache.copy_(cache.index_select(1, parents))  # planted
        return tokens

    return graphed(torch, step) if fix == "cuda_graph" else step


@planted("dispatch", "cuda_graph", innocent="pin_memory", trap=True, steps=4)
def policy_in_its_environment(torch: Any, fix: str | None) -> Step:
    """A small policy acts in an environment on the host: an observation comes in, an action goes back.

    The copy from pageable memory and the wait look guilty. But the environment cannot go on without the action, and
    a pinned observation comes no sooner; what takes the time is launching the kernels in between.
    """
    width, layers, functional = 256, 12, torch.nn.functional
    (read,), (act,) = weights(torch, 1, 32, width), weights(torch, 1, width, 8)
    blocks = weights(torch, layers, width, width)
    observation = torch.zeros(1, 32, pin_memory=fix == "pin_memory")
    seen, action = torch.zeros(1, 32, device="cuda"), torch.zeros(1, device="cuda", dtype=torch.long)

    def policy() -> None:
        y = seen @ read
        for block in blocks:
            y = y + functional.gelu(functional.layer_norm(y, (width,)) @ block)  # planted
        torch.argmax(y @ act, -1, out=action)

    launch = graphed(torch, policy) if fix == "cuda_graph" else policy

    def step() -> int:
        seen.copy_(observation, non_blocking=fix == "pin_memory")
        launch()
        chosen = int(action.item())
        observation.mul_(0.9)[0, chosen] += 1.0
        return chosen

    return step
