"""Cause `sync`: numbers that are read back in the middle of a computation, so that the GPU goes idle."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted


@planted("sync", "remove_sync")
def conjugate_gradients_with_python_numbers(torch: Any, fix: str | None) -> Step:
    """A conjugate gradient solver keeps its two scalars as Python numbers, read back with `.item()`.

    Every iteration waits twice, and launches what follows into an empty queue. As tensors the scalars stay on the
    GPU, and the arithmetic is the same.
    """
    size, iterations = 7168, 12
    noise = torch.randn(size, size, device="cuda") * (0.5 * size**-0.5)
    matrix = noise + noise.T
    matrix.diagonal().add_(1.7)
    right = torch.randn(size, device="cuda")

    def number(value: Any) -> Any:
        return value if fix else value.item()  # planted

    def step() -> Any:
        solution, residual, direction = torch.zeros_like(right), right, right
        energy = number(residual.dot(residual))
        for _ in range(iterations):
            product = torch.mv(matrix, direction)
            length = energy / number(direction.dot(product))
            solution = solution + length * direction
            residual = residual - length * product
            after = number(residual.dot(residual))
            direction = residual + (after / energy) * direction
            energy = after
        return solution

    return step


@planted("sync", "remove_sync")
def activations_watched_with_item(torch: Any, fix: str | None) -> Step:
    """A convolutional network in inference records each layer's deviation with `.std().item()` against drift.

    After each of ten layers the CPU waits for a number before it launches the next convolution. Kept on the GPU
    and read together at the end, the numbers hold nothing up.
    """
    batch, channels, side = 64, 128, 28
    filters = [
        (torch.randn(channels, channels, 3, 3, device="cuda") * (4.5 * channels) ** -0.5).to(
            torch.bfloat16, memory_format=torch.channels_last
        )
        for _ in range(10)
    ]
    images = torch.randn(batch, channels, side, side, device="cuda", dtype=torch.bfloat16)
    images = images.to(memory_format=torch.channels_last)

    def step() -> Any:
        deviations = []
        y = images
        for weight in filters:
            y = torch.relu(torch.nn.functional.conv2d(y, weight, padding=1))
            spread = y.std()
            deviations.append(spread if fix else spread.item())  # planted
        return y, deviations

    return step


@planted("sync", "remove_sync")
def proposals_accepted_in_python(torch: Any, fix: str | None) -> Step:
    """A Metropolis sampler of a logistic regression decides with `if` on a tensor, and traces the likelihood.

    Both the test and the trace read a number of the GPU's for every proposal. `torch.where` takes the decision on
    the GPU, and the trace can stay there until the chain ends.
    """
    rows, features, proposals = 8192, 6144, 12
    design = torch.randn(rows, features, device="cuda")
    signs = torch.randint(0, 2, (rows,), device="cuda") * 2.0 - 1.0
    moves = (torch.randn(proposals, features, device="cuda") * 1e-4).unbind(0)
    thresholds = torch.rand(proposals, device="cuda").log().unbind(0)
    start = torch.zeros(features, device="cuda")
    softplus = torch.nn.functional.softplus

    def likelihood(theta: Any) -> Any:
        return -softplus(-signs * torch.mv(design, theta)).sum()

    begun = likelihood(start)

    def step() -> Any:
        theta, current, trace = start, begun, []
        for move, threshold in zip(moves, thresholds, strict=True):
            proposal = theta + move
            new = likelihood(proposal)
            if fix:
                accepted = threshold < new - current
                theta, current = torch.where(accepted, proposal, theta), torch.where(accepted, new, current)
                trace.append(current)
            else:
                if threshold < new - current:  # planted
                    theta, current = proposal, new
                trace.append(current.item())  # planted
        return theta, trace

    return step
