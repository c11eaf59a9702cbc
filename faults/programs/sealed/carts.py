"""Carts that balance poles, simulated on the GPU, and the networks that drive them."""

from __future__ import annotations

from typing import Any

DISCOUNT, TRACE = 0.99, 0.95
"""Of rewards to come, and of the advantages estimated from them."""


def perceptron(torch: Any, inputs: int, width: int, outputs: int) -> Any:
    """A network of three hidden layers."""
    nn = torch.nn
    layers = [nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width)]
    return nn.Sequential(*layers, nn.Tanh(), nn.Linear(width, outputs)).to("cuda")


class Carts:
    """Many carts at once; one whose pole falls begins again."""

    def __init__(self, torch: Any, count: int) -> None:
        self._torch, self._count = torch, count
        self._fresh = torch.rand(count, 4, device="cuda") * 0.1 - 0.05
        self._state = self._fresh

    def play(self, actor: Any, critic: Any, horizon: int) -> tuple[Any, ...]:
        """States, actions, their log-probabilities, advantages and returns of some steps of all carts."""
        torch = self._torch
        with torch.no_grad():
            seen, taken, chances, dones = [], [], [], []
            for _ in range(horizon):
                logits = actor(self._state).log_softmax(-1)
                action = (torch.rand(self._count, device="cuda") < logits[:, 1].exp()).long()
                seen.append(self._state)
                taken.append(action)
                chances.append(logits.gather(-1, action.unsqueeze(-1)).squeeze(-1))
                self._state, done = self._after(self._state, action)
                dones.append(done)
            values = critic(torch.stack([*seen, self._state])).squeeze(-1)
            gained = self._advantages(values, dones)
            return torch.stack(seen), torch.stack(taken), torch.stack(chances), gained, gained + values[:-1]

    def _after(self, state: Any, action: Any) -> tuple[Any, Any]:
        torch = self._torch
        x, speed, angle, turning = state.unbind(-1)
        force = action * 20.0 - 10.0
        cosine, sine = angle.cos(), angle.sin()
        push = (force + 0.05 * turning.square() * sine) / 1.1
        twist = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine.square() / 1.1))
        pull = push - 0.05 * twist * cosine / 1.1
        after = torch.stack((x + 0.02 * speed, speed + 0.02 * pull, angle + 0.02 * turning, turning + 0.02 * twist), -1)
        done = (after[:, 0].abs() > 2.4) | (after[:, 2].abs() > 0.21)
        return torch.where(done.unsqueeze(-1), self._fresh, after), done

    def _advantages(self, values: Any, dones: list[Any]) -> Any:
        advantage, advantages = self._torch.zeros(self._count, device="cuda"), []
        for index in reversed(range(len(dones))):
            alive = 1.0 - dones[index].float()
            surprise = 1.0 + DISCOUNT * values[index + 1] * alive - values[index]
            advantage = surprise + DISCOUNT * TRACE * alive * advantage
            advantages.append(advantage)
        return self._torch.stack(advantages[::-1])
