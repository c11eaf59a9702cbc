"""Cause `sync`: the CPU waits for the GPU within the step, and the GPU then waits for the CPU."""

from __future__ import annotations

import itertools
from typing import Any

from faults.programs.case import Step, planted
from faults.programs.sealed.parts import hugging_face, sizes
from faults.programs.ward.networks import scaled


@planted("sync", "remove_sync", steps=2)
def segformer_validated_class_by_class(torch: Any, fix: str | None) -> Step:
    """A SegFormer is validated, and a loop over 64 classes adds up what each shares with the truth, by `.item()`.

    The first number waits for the whole forward pass, and every further one for a few short kernels. The sums can stay
    on the GPU until the last class, so that the loop is launched while the network still computes.
    """
    transformers = hugging_face()
    widths, depths, heads, classes, batch, side = sizes(
        ((64, 128, 320, 512), (2, 2, 3, 2), (1, 2, 5, 8), 64, 12, 512), ((8, 16), (1, 1), (1, 2), 3, 2, 32)
    )
    stages = len(widths)
    config = transformers.SegformerConfig(
        num_encoder_blocks=stages,
        depths=list(depths),
        hidden_sizes=list(widths),
        num_attention_heads=list(heads),
        sr_ratios=[8, 4, 2, 1][:stages],
        patch_sizes=[7, 3, 3, 3][:stages],
        strides=[4, 2, 2, 2][:stages],
        mlp_ratios=[4] * stages,
        decoder_hidden_size=widths[-1] // 2,
        num_labels=classes,
    )
    model = transformers.SegformerForSemanticSegmentation(config).to("cuda", torch.bfloat16).eval()
    images = torch.randn(batch, 3, side, side, device="cuda", dtype=torch.bfloat16)
    truth = torch.randint(0, classes, (batch, side // 4, side // 4), device="cuda")

    def shared(guess: Any) -> list[tuple[float, float]]:
        sums = []
        for kind in range(classes):
            guessed, true = guess == kind, truth == kind
            both, either = (guessed & true).sum(), (guessed | true).sum()
            if fix:
                sums += [both, either]
            else:
                sums += [both.item(), either.item()]  # planted
        numbers = torch.stack(sums).tolist() if fix else sums
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    def step() -> Any:
        with torch.inference_mode():
            guess = model(pixel_values=images).logits.argmax(1)
            return [both / max(either, 1) for both, either in shared(guess)]

    return step


@planted("sync", "remove_sync", steps=2)
def hubert_whose_words_are_cut_on_the_gpu(torch: Any, fix: str | None) -> Step:
    """A HuBERT writes down 24 recordings, and each one's letters are merged and freed of blanks on the GPU in turn.

    `unique_consecutive` and a mask give results of unknown length, so that the CPU waits for each, three times for each
    recording. The letters of the whole batch can be fetched at once, and merging them is nothing for a CPU.
    """
    transformers = hugging_face()
    width, layers, heads, letters, batch, samples = sizes((1024, 6, 16, 32, 24, 48000), (32, 1, 2, 8, 2, 1600))
    config = transformers.HubertConfig(
        vocab_size=letters,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        conv_dim=[width // 2] * 7,
        feat_extract_norm="layer",
        do_stable_layer_norm=True,
        conv_bias=True,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=heads,
        pad_token_id=0,
    )
    model = transformers.HubertForCTC(config).to("cuda", torch.bfloat16).eval()
    speech = torch.randn(batch, samples, device="cuda", dtype=torch.bfloat16)

    def words(best: Any) -> list[list[int]]:
        texts = []
        for row in best:
            merged = torch.unique_consecutive(row)  # planted
            texts.append(merged[merged != 0].tolist())  # planted
        return texts

    def words_by_the_cpu(best: Any) -> list[list[int]]:
        return [[letter for letter, _ in itertools.groupby(row) if letter] for row in best.tolist()]

    def step() -> Any:
        with torch.inference_mode():
            best = model(input_values=speech).logits.argmax(-1)
            texts = words_by_the_cpu(best) if fix else words(best)
            return [sum(text) + len(text) for text in texts]

    return step


@planted("sync", "remove_sync", steps=2)
def glow_that_asks_whether_it_has_begun(torch: Any, fix: str | None) -> Step:
    """A Glow judges how likely images are, and each of its norms asks a tensor on the GPU whether it has been set.

    `if not self.begun` waits for all work before it, three times in each of 24 layers, and the GPU is then idle until
    the next kernels are launched. After training all norms are set, and a flag of Python says so without a wait.
    """
    nn, functional = torch.nn, torch.nn.functional
    channels, hidden, depth, batch, side = sizes((12, 512, 24, 40, 32), (4, 8, 2, 2, 8))

    class Norm(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, count: int) -> None:
            super().__init__()
            self.shift = nn.Parameter(0.1 * torch.randn(1, count, 1, 1))
            self.scale = nn.Parameter(1 + 0.1 * torch.randn(1, count, 1, 1))
            self.register_buffer("begun", torch.tensor(True))
            self.is_set = bool(fix)

        def begin(self, x: Any) -> None:
            self.scale.copy_(1 / x.std((0, 2, 3), keepdim=True))
            self.shift.copy_(-x.mean((0, 2, 3), keepdim=True) * self.scale)
            self.begun.fill_(True)

        def forward(self, x: Any) -> Any:
            if not self.is_set and not self.begun:  # planted
                self.begin(x)
            return torch.addcmul(self.shift, x, self.scale)

    class Flow(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm = Norm(channels)
            self.turn = nn.Conv2d(channels, channels, 1, bias=False)
            self.enter = nn.Conv2d(channels // 2, hidden, 3, padding=1, bias=False)
            self.mix = nn.Conv2d(hidden, hidden, 1, bias=False)
            self.leave = nn.Conv2d(hidden, channels, 3, padding=1)
            self.norms = nn.ModuleList((Norm(hidden), Norm(hidden)))

        def forward(self, x: Any) -> tuple[Any, Any]:
            x = self.turn(self.norm(x))
            kept, changed = x.chunk(2, 1)
            inner = functional.relu(self.norms[0](self.enter(kept)))
            inner = functional.relu(self.norms[1](self.mix(inner)))
            shift, scale = self.leave(inner).chunk(2, 1)
            scale = torch.sigmoid(scale.float() + 2)
            gain = side * side * self.norm.scale.abs().log().sum() + scale.log().sum((1, 2, 3))
            return torch.cat((kept, ((changed + shift) * scale).to(x.dtype)), 1), gain

    flows = scaled(torch, nn.ModuleList(Flow() for _ in range(depth)), 0.3).requires_grad_(False)
    for flow in flows:
        nn.init.orthogonal_(flow.turn.weight)
    flows = flows.to("cuda", torch.bfloat16, memory_format=torch.channels_last)
    images = torch.rand(batch, channels, side, side, device="cuda", dtype=torch.bfloat16)
    images = images.contiguous(memory_format=torch.channels_last)

    def step() -> Any:
        with torch.inference_mode():
            x, likely = images, torch.zeros(batch, device="cuda")
            for flow in flows:
                x, gain = flow(x)
                likely = likely + gain
            likely = likely - 0.5 * x.float().square().sum((1, 2, 3))
            return (likely / x[0].numel()).tolist()

    return step
