"""Cause `kernel`: the GPU is busy with kernels that do more than they have to, or do it in a slow way."""

from __future__ import annotations

import math
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import compiled, sizes
from faults.programs.unseen.decoder import decoder


@planted("kernel", "sdpa", steps=3)
def prompts_read_with_written_out_attention(torch: Any, fix: str | None) -> Step:
    """A decoder reads four prompts of 2048 tokens with attention written out: scores, mask, float32 softmax, mixture.

    The scores are half a gigabyte per layer, written and read again by each of these operations.
    `scaled_dot_product_attention` keeps them on the chip and skips the half that the causal mask hides.
    """
    functional = torch.nn.functional
    width, inner, layers, heads, vocabulary, batch, length = sizes(
        (2048, 5632, 3, 16, 16384, 4, 2048), (32, 48, 2, 2, 60, 2, 8)
    )
    model = decoder(torch, width, inner, layers, heads, vocabulary, length)
    tokens = torch.randint(0, vocabulary, (batch, length), device="cuda")
    places = torch.arange(length, device="cuda")
    hidden = torch.ones(length, length, device="cuda", dtype=torch.bool).triu(1)

    def attend(_: int, q: Any, k: Any, v: Any) -> Any:
        if fix:
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // heads)  # planted
        scores = scores.masked_fill(hidden, -math.inf)  # planted
        return scores.float().softmax(-1).to(q.dtype) @ v  # planted

    def step() -> Any:
        with torch.inference_mode():
            return model(tokens, places, attend).float().log_softmax(-1)

    return step


@planted("kernel", "pad")
def ranker_of_1677_features(torch: Any, fix: str | None) -> Step:
    """A deep and cross network ranks 65536 items in bfloat16; 26 embeddings of 64 and 13 numbers are 1677 features.

    Rows of an odd number of bfloat16 values are not aligned, and the fast matmul kernels cannot read them. With three
    zeros more a row has 1680 features. Cross layers multiply by the features, so that the zeros stay zero, and the
    ranks are the same.
    """
    functional = torch.nn.functional
    items, fields, rows, channels, numbers, depth, hidden = sizes(
        (65536, 26, 50_000, 64, 13, 4, 1024), (8, 3, 20, 4, 3, 2, 16)
    )
    features = fields * channels + numbers
    more = -features % 16 if fix else 0

    def weights(outputs: int, inputs: int) -> Any:
        return (torch.randn(outputs, inputs, device="cuda") / math.sqrt(inputs)).to(torch.bfloat16)

    table = weights(fields * rows, channels)
    offsets = torch.arange(fields, device="cuda") * rows
    crosses = [functional.pad(weights(features, features), (0, more, 0, more)) for _ in range(depth)]
    deep = [functional.pad(weights(hidden, features), (0, more)), weights(hidden, hidden), weights(1, hidden)]
    wide = functional.pad(weights(1, features), (0, more))
    ids = torch.randint(0, rows, (items, fields), device="cuda")
    dense = torch.rand(items, numbers, device="cuda", dtype=torch.bfloat16)
    zeros = torch.zeros(items, more, device="cuda", dtype=torch.bfloat16)

    def step() -> Any:
        with torch.inference_mode():
            x = first = torch.cat((table[ids + offsets].flatten(1), dense, zeros), 1)
            for weight in crosses:
                x = torch.addcmul(x, first, functional.linear(x, weight))  # planted
            y = functional.linear(first, deep[0]).relu_()  # planted
            y = functional.linear(y, deep[1]).relu_()
            return (functional.linear(x, wide) + functional.linear(y, deep[2])).sigmoid().squeeze(-1)

    return step


@planted("kernel", "torch_compile", stacks=False)
def detection_head_with_a_focal_loss_in_pieces(torch: Any, fix: str | None) -> Step:
    """A detection head with nine anchors per cell and 80 classes learns with a focal loss, written as the paper has it.

    Each sign, power and logarithm of the formula is a kernel that reads and writes 37 million numbers, and the backward
    pass has as many again. Compiled, the loss is one pass over the logits and its gradient another.
    """
    nn, functional = torch.nn, torch.nn.functional
    images, cells, channels, anchors, classes = sizes((8, 80, 256, 9, 80), (2, 6, 8, 2, 5))
    layers = [nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(inplace=True)]
    layers += [nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(inplace=True)]
    head = nn.Sequential(*layers, nn.Conv2d(channels, anchors * classes, 3, padding=1))
    nn.init.constant_(head[-1].bias, -4.6)
    head = head.to("cuda", memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(head.parameters(), lr=1e-4, momentum=0.9, fused=True)
    maps = torch.randn(images, channels, cells, cells, device="cuda").to(memory_format=torch.channels_last)
    objects = torch.randint(0, 100 * classes, (images, cells, cells, anchors), device="cuda")
    wanted = functional.one_hot(objects.clamp(max=classes), classes + 1)[..., :-1].to(torch.bfloat16)
    count = (objects < classes).sum().clamp(min=1)

    def focal_loss(logits: Any, wanted: Any) -> Any:
        logits, wanted = logits.float(), wanted.float()
        chance = logits.sigmoid()
        error = -wanted * (chance + 1e-6).log() - (1 - wanted) * (1 - chance + 1e-6).log()  # planted
        right = chance * wanted + (1 - chance) * (1 - wanted)  # planted
        share = 0.25 * wanted + 0.75 * (1 - wanted)  # planted
        return (share * (1 - right) ** 2 * error).sum()  # planted

    criterion = compiled(torch, focal_loss) if fix else focal_loss

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            logits = head(maps)
        logits = logits.permute(0, 2, 3, 1).unflatten(-1, (anchors, classes))
        loss = criterion(logits, wanted) / count
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
