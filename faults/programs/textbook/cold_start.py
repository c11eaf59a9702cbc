"""Cause `cold_start`: what happens only once, inside the measured window."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted


@planted("cold_start", "warm_up", own_process=True)
def first_factorisation_in_the_window(torch: Any, fix: str | None) -> Step:
    """A Gaussian process is fitted, and the clock runs from the very first fit.

    The first matmul and the first factorisation load their libraries and make their handles, which takes longer
    than all the fits. One fit before the clock starts leaves the window to the work itself.
    """
    points, features = 2048, 16
    inputs = torch.randn(points, features, device="cuda")
    values = torch.randn(points, 1, device="cuda")

    def step() -> Any:
        squares = inputs.square().sum(-1)
        distances = squares[:, None] + squares[None, :] - 2 * inputs @ inputs.T
        covariance = torch.exp(-0.5 * distances.clamp(min=0) / features)
        covariance.diagonal().add_(0.1)
        factor, _ = torch.linalg.cholesky_ex(covariance)  # planted
        white = torch.linalg.solve_triangular(factor, values, upper=False)
        return factor.diagonal().log().sum() + 0.5 * white.square().sum()

    if fix:
        step()
        torch.cuda.synchronize()
    return step
