"""Cause `cold_start`: a measurement that begins with the process."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted


@planted("cold_start", "warm_up", own_process=True)
def speech_network_timed_from_its_first_batch(torch: Any, fix: str | None) -> Step:
    """The first five training steps of a recogniser of convolutions and a recurrent network are what is timed.

    The first of them loads the libraries and the kernels, chooses algorithms and makes the optimiser's state. After
    some steps that nobody times, a step takes what it takes ever after.
    """
    nn = torch.nn
    front = nn.Sequential(nn.Conv1d(80, 256, 5, padding=2), nn.GELU(), nn.Conv1d(256, 256, 3, stride=2, padding=1))
    front, recurrent = front.to("cuda"), nn.LSTM(256, 512, num_layers=2, batch_first=True).to("cuda")
    head = nn.Linear(512, 64).to("cuda")
    parameters = [*front.parameters(), *recurrent.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-5, fused=True)
    speech, letters = torch.randn(32, 80, 128, device="cuda"), torch.randint(0, 64, (32 * 64,), device="cuda")

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        hidden, _ = recurrent(front(speech).transpose(1, 2))  # planted
        loss = nn.functional.cross_entropy(head(hidden).flatten(0, 1), letters)
        loss.backward()
        optimizer.step()
        return loss.detach()

    if fix:
        for _ in range(5):
            step()
        torch.cuda.synchronize()
    return step
