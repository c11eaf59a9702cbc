"""Cause `memory`: caches that are emptied, and tables that are copied in order to change them."""

from __future__ import annotations

from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import sizes


@planted("memory", "no_empty_cache", steps=3)
def gan_that_empties_the_cache_after_each_player(torch: Any, fix: str | None) -> Step:
    """A GAN trains its critic and then its painter, and calls `torch.cuda.empty_cache()` after each of them.

    The allocator gives the memory of the activations back to the driver, and the other player must ask for as much
    again, call by call. Memory that stays in the cache is there for both.
    """
    nn, functional = torch.nn, torch.nn.functional
    width, batch, pixels, seeds = sizes((64, 64, 128, 128), (4, 2, 32, 8))

    def down(inputs: int, outputs: int) -> list[Any]:
        return [nn.Conv2d(inputs, outputs, 4, stride=2, padding=1), nn.LeakyReLU(0.2)]

    def up(inputs: int, outputs: int) -> list[Any]:
        return [nn.ConvTranspose2d(inputs, outputs, 4, stride=2, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]

    edge = pixels // 16
    begin = [nn.Linear(seeds, 8 * width * edge * edge), nn.Unflatten(1, (8 * width, edge, edge))]
    painter = nn.Sequential(
        *begin, *up(8 * width, 8 * width), *up(8 * width, 4 * width), *up(4 * width, 2 * width), *up(2 * width, width),
        nn.Conv2d(width, 3, 3, padding=1), nn.Tanh(),
    )  # fmt: skip
    critic = nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1), nn.LeakyReLU(0.2), *down(width, 2 * width), *down(2 * width, 4 * width),
        *down(4 * width, 8 * width), *down(8 * width, 8 * width), nn.Flatten(), nn.Linear(8 * width * edge * edge, 1),
    )  # fmt: skip
    players = [player.to("cuda", memory_format=torch.channels_last) for player in (painter, critic)]
    kind = {"lr": 2e-4, "betas": (0.5, 0.999), "fused": True}
    painting, judging = (torch.optim.Adam(player.parameters(), **kind) for player in players)
    photos = torch.rand(batch, 3, pixels, pixels, device="cuda").to(memory_format=torch.channels_last) * 2 - 1

    def improve(optimizer: Any, loss: Any) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def tidy() -> None:
        if not fix:
            torch.cuda.empty_cache()  # planted

    def judge() -> Any:
        with torch.autocast("cuda", torch.bfloat16):
            with torch.no_grad():
                painted = painter(torch.randn(batch, seeds, device="cuda"))
            loss = (functional.softplus(critic(painted)) + functional.softplus(-critic(photos))).mean()
        improve(judging, loss)
        return loss.detach()

    def paint() -> Any:
        with torch.autocast("cuda", torch.bfloat16):
            loss = functional.softplus(-critic(painter(torch.randn(batch, seeds, device="cuda")))).mean()
        improve(painting, loss)
        return loss.detach()

    def step() -> Any:
        judged = judge()
        tidy()
        painted = paint()
        tidy()
        return torch.stack((judged, painted))

    return step


@planted("memory", "drop_copies")
def contrastive_learner_that_copies_its_memory(torch: Any, fix: str | None) -> Step:
    """A contrastive learner keeps a vector of each of eight million images, and updates 512 of them with `index_copy`.

    Without the underscore it returns a new table: four gigabytes are allocated and copied to change a few rows, and
    once more for the table of the second view. `index_copy_` writes only these rows.
    """
    nn, functional = torch.nn, torch.nn.functional
    images, width, batch, others, pixels = sizes((8_000_000, 256, 512, 8192, 64), (30, 8, 3, 5, 16))
    layers: list[Any] = [nn.Conv2d(3, 64, 4, stride=4), nn.ReLU(), nn.Conv2d(64, 256, 4, stride=4), nn.ReLU()]
    encoder = nn.Sequential(*layers, nn.Flatten(), nn.Linear(pixels * pixels, width))
    encoder = encoder.to("cuda", torch.bfloat16).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01, momentum=0.9, fused=True)
    tables = [torch.empty(images, width, device="cuda", dtype=torch.bfloat16).normal_(0, width**-0.5) for _ in range(2)]
    views = torch.randn(2, batch, 3, pixels, pixels, device="cuda").to(torch.bfloat16).unbind(0)

    def remember(which: int, rows: Any, vectors: Any) -> None:
        if fix:
            tables[which].index_copy_(0, rows, vectors)
        else:
            tables[which] = tables[which].index_copy(0, rows, vectors)  # planted

    def step() -> Any:
        rows = torch.randint(0, images, (1,), device="cuda") + torch.arange(batch, device="cuda")
        rows = rows % images
        wrong = torch.randint(0, images, (others,), device="cuda")
        optimizer.zero_grad(set_to_none=True)
        loss = torch.zeros((), device="cuda")
        for which, view in enumerate(views):
            vectors = functional.normalize(encoder(view), dim=-1)
            right = (vectors * tables[1 - which][rows]).sum(-1, keepdim=True)
            chances = torch.cat((right, vectors @ tables[1 - which][wrong].T), -1).float() / 0.1
            loss = loss - chances.log_softmax(-1)[:, 0].mean()
            remember(which, rows, vectors.detach())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
