"""Cause `sync`: numbers that are read back for a check, a log or a lookup while the GPU waits for its next work."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted

from .models import residual_mlp


@planted("sync", "remove_sync")
def nan_check_in_a_forward_hook(torch: Any, fix: str | None) -> Step:
    """A hook, left over from debugging, looks for NaN in the output of each of sixteen layers with an `if`.

    The `if` needs the answer, so the CPU waits for each layer before it launches the next one. The flags can be
    gathered on the GPU, and looked at once in a while.
    """
    nn = torch.nn
    model = nn.Sequential(*(nn.Sequential(nn.Linear(2048, 2048), nn.GELU()) for _ in range(16)))
    model = model.to("cuda", torch.bfloat16).eval()
    rows = torch.randn(3072, 2048, device="cuda", dtype=torch.bfloat16)
    flags: list[Any] = []

    def check(module: Any, inputs: Any, output: Any) -> None:
        bad = torch.isnan(output).any()
        if fix:
            flags.append(bad)
        elif bad:  # planted
            raise FloatingPointError(f"NaN after {module}")

    for layer in model:
        layer.register_forward_hook(check)

    def step() -> Any:
        with torch.no_grad():
            flags.clear()
            return model(rows)

    return step


@planted("sync", "remove_sync", steps=3)
def norms_logged_parameter_by_parameter(torch: Any, fix: str | None) -> Step:
    """A training step writes the norm of every weight and of every gradient to its log as a Python number.

    The CPU waits for seventy numbers one after the other while the GPU is idle but for the norms. They can stay on
    the GPU until the log is written.
    """
    model = residual_mlp(torch, 1024, 2048, 6).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    rows = torch.randn(8192, 1024, device="cuda")
    targets = torch.randn(8192, 1024, device="cuda")

    def step() -> Any:
        log: dict[str, Any] = {}
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.mse_loss(model(rows), targets)
        loss.backward()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                gradient, weight = parameter.grad.norm(), parameter.norm()
                log[f"gradient/{name}"] = gradient if fix else gradient.item()  # planted
                log[f"weight/{name}"] = weight if fix else weight.item()  # planted
        optimizer.step()
        return log

    return step


@planted("sync", "remove_sync")
def timestep_looked_up_on_the_gpu(torch: Any, fix: str | None) -> Step:
    """A diffusion sampler finds its place in a schedule on the GPU with `nonzero` and `item`, in each of ten steps.

    It then asks whether the next noise level is zero, which is a third wait. The place is the loop's own counter, and
    the levels are known on the CPU.
    """
    nn = torch.nn

    class Denoiser(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(4, 384, 3, padding=1, bias=False)
            self.middle = nn.ModuleList(nn.Conv2d(384, 384, 3, padding=1, bias=False) for _ in range(2))
            self.last = nn.Conv2d(384, 4, 3, padding=1, bias=False)
            self.act = nn.SiLU(inplace=True)

        def forward(self, x: Any) -> Any:
            x = self.act(self.first(x))
            for conv in self.middle:
                x = self.act(conv(x))
            return self.last(x)

    class Scheduler:
        def __init__(self) -> None:
            self.levels = [1 - index / 10 for index in range(11)]
            self.sigmas = torch.tensor(self.levels, device="cuda", dtype=torch.bfloat16)
            self.timesteps = torch.arange(900, -1, -100, device="cuda")

        def place(self, count: int) -> tuple[int, bool]:
            if fix:
                return count, self.levels[count + 1] == 0
            found = (self.timesteps == self.timesteps[count]).nonzero()  # planted
            index = int(found[0].item())  # planted
            return index, bool(self.sigmas[index + 1] == 0)  # planted

        def step(self, noise: Any, count: int, x: Any) -> Any:
            index, last = self.place(count)
            cleaner = x + noise * (self.sigmas[index + 1] - self.sigmas[index])
            return cleaner.clamp(-4, 4) if last else cleaner

    model = Denoiser().to("cuda", torch.bfloat16, memory_format=torch.channels_last).eval()
    scheduler = Scheduler()
    start = torch.randn(16, 4, 32, 32, device="cuda", dtype=torch.bfloat16)
    start = start.contiguous(memory_format=torch.channels_last)

    def step() -> Any:
        with torch.no_grad():
            x = start
            for count in range(10):
                x = scheduler.step(model(x), count, x)
            return x

    return step
